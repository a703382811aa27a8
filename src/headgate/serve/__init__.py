"""The engine's HTTP API, and the clients of it.

In: statements over HTTP, from the command line, the spec engine and other programs. Out: ``protocol`` (the events that
answer a statement, the same for both sides, and a result as text), ``client`` (talks to a running engine, or starts one
as a child process), ``server`` (the API itself) and ``metrics`` (Prometheus). ``server`` and ``metrics`` import everything
below them in the house; clients need only ``errors``.
"""

import os

# The engine only forks to run another program. gRPC would print a line about its handlers for each of them.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
