"""How schemas change: the changes between two, what each does to readers and targets, and a type that fits both.

Enters: two records, an old one and a new one. Leaves: `diff`, the list of changes; `verdicts`, what one change does
to one target; `widen`, the smallest type that holds the values of two types; `merge`, the schema of a reader after
ON SCHEMA CHANGE = FOLLOW or an accepted change.

No I/O. Imports only `headgate.schema`.
"""
