"""Plans on Spark. The only package (beside ``schema/formats/spark.py``) that imports pyspark.

In: plans and the settings of a session. Out: a Spark session with Headgate's jars, and queries that run on it.
Imports everything before it in the house; no private py4j.
"""
