"""Statements -> statements with every outside answer written in. The only I/O before planning.

In: a parsed statement, the catalog, and the outside (``outside``). Out: the same statement with topics known to
exist, registry schemas frozen as SEED clauses, connections checked. Purifying a purified statement changes nothing.
Imports everything up to ``connectors``.
"""
