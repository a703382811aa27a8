"""What a statement means in a catalog: the context in which it is read, and what its names stand for.

In: a parsed statement, a snapshot of the catalog and a search path. Out: the same statement in which every name of
another object carries that object's id, so that later stages never look up a name again; the catalog stores it so.
`printing` writes it with the names that the objects have now, `compare` says in which parts two statements differ, and
`context` holds what `purify` and `plan` share. Imports everything up to ``catalog``. Does no I/O and reads no clock.
"""
