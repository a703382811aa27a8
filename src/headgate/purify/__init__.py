"""Statements -> statements with every outside answer written in. The only I/O before planning.

In: a resolved statement, its context, and a way to ask the systems outside (``lookups``). Out: the same statement with
topics known to exist, registry schemas frozen as SEED clauses, connections checked. Purifying a purified statement changes
nothing.
Imports everything up to ``connectors``.
"""
