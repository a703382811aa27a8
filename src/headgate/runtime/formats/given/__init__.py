"""Rows -> records of a schema that somebody else wrote: by name at every depth, with the defaults of the schema.

In: a `WrittenSchema`, the type of the rows, and Python values (`schema/values.py`). Out: the bytes of a record without the
frame, or `Unwritable` with the path and the reason. The rows must fit the schema (`plan/fitting.py`). Imports `headgate.schema`;
no Spark, so that INSERT uses it as well as the workers of Spark.
"""
