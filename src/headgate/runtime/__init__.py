"""Runs tasks and queries on Spark. Only this package and ``schema/formats/spark.py`` import pyspark.

In: definitions (`plan/definitions.py`) and the settings of a session. Out: a Spark session with Headgate's jars, and the tasks
and queries that run on it. It may import the packages below it in the table of CONTRIBUTING.md, and no private parts of py4j.
"""
