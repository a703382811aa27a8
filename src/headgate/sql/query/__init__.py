"""Query bodies: queries in PostgreSQL's style in, Spark SQL and typed columns out. The only package that uses sqlglot.

In: the exact text of a query and the relations that it may name (``select.analyse``). Out: a ``scope.AnalysedQuery``
with its output columns (types, nullability, docs), the relations it reads, and the Spark SQL that computes it. ``text``
prepares the text so that sqlglot sees grammar only; ``select``, ``from_clause`` and ``grouping`` walk the clauses;
``expressions`` calls the handlers in ``operators``, ``calls`` and ``casts``; ``scope`` finds what names mean; ``types``
and ``functions`` have Spark's typing rules. ``tree_builder`` and ``tree_select`` make the relational tree (``tree``,
imported as ``n``) of an analysed query; ``growth`` derives from it how its rows come and which key they have; ``tree_sql``
prints it for Spark.

Pure: no I/O. Imports only ``headgate.errors``, ``headgate.text`` and ``headgate.schema``.
"""
