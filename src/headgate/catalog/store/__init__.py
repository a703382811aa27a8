"""The stored catalog. The only part of the catalog that touches files, the clock and processes.

In: lists of changes, each committed whole or not at all, with its history and events. Out: snapshots. `sqlite` does both with
one file, one writer by lease and any number of readers. The progress of tasks and the quarantine go through the same writer.
May import all of `headgate.catalog`.
"""
