"""How schemas change: the changes between two, what each does to readers and targets, and a type that fits both.

Enters: two records, an old one and a new one. Leaves: `changes.diff`, the list of changes; `verdicts`, what one change
does to one target; `merge.widen`, the smallest type that holds the values of two types; `merge.merge`, the schema of a
reader after ON SCHEMA CHANGE = FOLLOW or an accepted change; `verdicts.arriving`, whether a schema that arrives is
followed.

No I/O. Imports only `headgate.schema`.
"""
