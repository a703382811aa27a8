"""How schemas change: what differs, what that does to whoever reads or holds the data, and the type that fits both.

In: two records, an old one and a new one. Out: `diff`, the list of changes; `verdict`, what one change does to one
target; `widen`, the least type that holds the values of two; `merge` and `follows`, the reader's schema after a
change under ON SCHEMA CHANGE = FOLLOW. Pure; imports only `headgate.schema`.
"""
