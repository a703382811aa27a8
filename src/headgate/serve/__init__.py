"""The doors of the engine, and how a client finds and opens them.

In: statements over HTTP, from the command line, the spec engine and other programs. Out: ``protocol`` (the events
that answer a statement, one JSON object per line, the same file for both sides), ``client`` (an engine that runs),
``process`` (starting one for the time of a command), ``result_table`` (a result as people read it), ``server`` (the
doors themselves). Imports ``errors`` and everything above it in the house; clients need only ``errors``.
"""
