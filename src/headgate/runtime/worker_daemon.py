"""The process from which Spark forks its Python workers, with everything imported that each of them needs.

PySpark's own daemon imports nothing, and every worker then spends about 0.8 seconds of CPU on importing pyarrow, pandas and
our readers. Workers that are forked from here have them already, and share their memory.

A process must not be forked while another thread of it holds a lock. Imports start two threads: those of OpenBLAS, which one
variable turns off, and one of jemalloc, which prepares itself for a fork. Used on Linux only, where this was tried.
"""

from __future__ import annotations

import gc
import importlib
import os

MODULE = "headgate.runtime.worker_daemon"  # as Spark is told: `__name__` is another one where it runs
# What PySpark's worker imports for Arrow, and the modules of the functions that we send to workers.
NEEDED = (
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "pandas",
    "pyarrow.compute",
    "pyarrow.pandas_compat",
    "headgate.runtime.formats.json_reader",
    "headgate.runtime.formats.protobuf_reader",
    "headgate.runtime.formats.protobuf_writer",
    "headgate.runtime.json_fields",
    "headgate.runtime.quarantine",
    "headgate.runtime.push",
)


def main() -> None:
    """Import, and serve Spark until it closes our input."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _import_for_workers()
    # What was imported stays: the collector of a worker need not look at it, and its memory stays shared.
    gc.collect()
    gc.freeze()
    from pyspark.daemon import manager

    manager()


def _import_for_workers() -> None:
    for name in NEEDED:
        importlib.import_module(name)


if __name__ == "__main__":
    main()
