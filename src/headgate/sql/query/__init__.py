"""Query bodies: PostgreSQL flavour in, Spark SQL and typed columns out. The only package that uses sqlglot.

In: the exact text of a query and the relations that it may name. Out: an ``AnalysedQuery``: its output columns
with types, nullability and docs, the relations it reads, and the Spark SQL that means the same.
``normalise`` prepares the text so that sqlglot sees grammar only, ``scope`` finds what names mean, ``typing`` and
``functions`` say what expressions are, ``analyse`` walks the query, ``translate`` writes Spark SQL. Pure.
Imports ``errors``, ``schema`` and the lexer.
"""
