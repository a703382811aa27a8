"""`python -m bench`: every benchmark, or those named by `--only`, as tables on the terminal.

The exit status says whether they ran, never whether they were quick.
"""

from __future__ import annotations

from bench import (
    by_id,
    catalog,
    changes,
    compatibility,
    decoding,
    delivery,
    given,
    language,
    mappers,
    materializations,
    pipeline,
    queries,
    realtime,
    sinks,
    statements,
    tasks,
    views,
    wide,
    world,
)
from bench.command import command
from bench.figures import Benchmark

BENCHMARKS: dict[str, Benchmark] = {
    "language": language.run,
    "catalog": catalog.run,
    "mappers": mappers.run,
    "queries": queries.run,
    "statements": statements.run,
    "avro": compatibility.avro_library,
    "registry": compatibility.registry,
    "decoding": decoding.run,
    "by_id": by_id.run,
    "given": given.run,
    "wide": wide.run,
    "world": world.run,
    "pipeline": pipeline.run,
    "delivery": delivery.run,
    "sinks": sinks.run,
    "tasks": tasks.run,
    "realtime": realtime.run,
    "changes": changes.run,
    "views": views.run,
    "materializations": materializations.run,
}
main = command(BENCHMARKS, "What Headgate promises, measured beside a peer in the same run.")

if __name__ == "__main__":
    main()
