"""The catalog: objects, their columns, comments and dependencies, and the history of their changes.

In: changes (`changes`), frozen values that a plan consists of. Out: `Catalog`, an immutable snapshot that answers every
question about names, columns, comments and dependencies, and from which the relations of `information_schema` and
`headgate_catalog` are computed. `apply` is pure, so a script can be planned against a copy that nobody else sees. Only
`store/` touches files, processes and the clock. It commits a list of changes in one transaction.

May import `headgate.errors`, `headgate.schema` and `headgate.sql`; nothing here knows Spark, Kafka or a registry.
"""
