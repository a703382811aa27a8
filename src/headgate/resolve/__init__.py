"""What a statement means in a catalog: the context in which it is read, and what its names stand for.

In: a parsed statement, a snapshot of the catalog and a search path. Out: the same statement in which every name of
another object carries that object's id, so that later stages never look up a name again; the catalog stores it so.
`statements` also has the `Context` that `purify` and `plan` share. `definitions` prints a stored definition with the names
that the objects have now, and says in which parts two definitions differ. Imports everything up to ``catalog``. Does no
I/O and reads no clock.
"""
