"""`python -m bench.peers`: Headgate beside other systems, as tables on the terminal."""

from __future__ import annotations

from bench.command import command
from bench.figures import Benchmark
from bench.peers import tables, topics

COMPARISONS: dict[str, Benchmark] = {"topics": topics.run, "tables": tables.run}
main = command(COMPARISONS, "Headgate beside Flink SQL and Debezium's JDBC sink, in the same run.")

if __name__ == "__main__":
    main()
