"""The engine's HTTP API, and the clients of it.

In: statements over HTTP, from the command line, the spec engine and other programs. Out: ``protocol`` (the events that
answer a statement, one JSON object per line, the same for both sides), ``client`` (talks to a running engine), ``process``
(starts an engine as a child process), ``result_table`` (a result as text), ``server`` (the API itself) and ``metrics``
(Prometheus). ``server`` and ``metrics`` import everything below them in the house; clients need only ``errors``.
"""
