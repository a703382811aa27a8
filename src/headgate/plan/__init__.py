"""Purified statements -> plans. Pure: the same statement and catalog give the same plan, and nothing is asked of anyone.

In: a purified statement and a catalog. Out: changes to the catalog with what must be done outside for them
(``statements``), the plan of a source, a sink or a chain of relations that the runtime builds Spark queries from.
Imports ``errors``, ``schema``, ``sql``, ``catalog`` and values of ``registry``.
"""
