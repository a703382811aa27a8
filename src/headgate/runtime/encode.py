"""Rows -> keys and values of records, on the JVM."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import to_avro

from headgate.plan.definitions import RecordEncoding
from headgate.runtime.formats.frame import framed
from headgate.runtime.json_text import json_ready
from headgate.schema.formats.spark_ddl import spark_identifier


def encode(side: RecordEncoding) -> Column:
    """The bytes of one side over the columns of the relation."""
    match side.encoding:
        case "AVRO":
            assert side.schema is not None
            assert side.schema_id is not None
            return framed(side.schema_id, to_avro(_record(side), side.schema))
        case "JSON":
            return F.to_json(_json_record(side), {"ignoreNullFields": "false"}).cast("binary")
        case "TEXT":
            return F.col(spark_identifier(side.columns[0])).cast("string").cast("binary")
        case "BYTES":
            return F.col(spark_identifier(side.columns[0])).cast("binary")


def _record(side: RecordEncoding) -> Column:
    names = side.names or side.columns
    return F.struct(*[F.col(spark_identifier(c)).alias(n) for c, n in zip(side.columns, names, strict=True)])


def _json_record(side: RecordEncoding) -> Column:
    fields = [json_ready(F.col(spark_identifier(f.name)), f.type).alias(f.name) for f in side.record.fields]
    return F.struct(*fields)
