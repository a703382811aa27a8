"""Headgate: schema-first streaming SQL on Spark.

Read the packages in the order in which data and statements travel: ``errors``, ``schema``, ``sql``, ``catalog``,
``registry``, ``embedded``, ``cli``. A package imports only from those before it in the list
that ``[tool.importlinter]`` in ``pyproject.toml`` holds.
"""
