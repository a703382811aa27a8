"""Names to objects: what exists, what it is made of, what uses what, and how it came to be so.

In: changes (`changes`), each a frozen value that a plan made. Out: `Catalog`, an immutable snapshot that answers
every question about names, columns, comments and dependencies, and from which the relations of
`information_schema` and `headgate_catalog` are computed. `apply` is pure, so a script is planned against a
snapshot that nobody else sees; only `store/` touches files, processes and the clock, commits a list of changes in
one transaction and reads the same snapshot back. Secrets are values that do not print.

May import `headgate.errors`, `headgate.schema` and `headgate.sql`; nothing here knows Spark, Kafka or a registry.
"""
