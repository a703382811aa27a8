"""Rows and targets over a real OpenSearch, for tests: rows have a text key, an integer value and a position."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count

from pyspark.sql import DataFrame, SparkSession, functions as F

from headgate.connectors.elasticsearch import SearchClient
from headgate.plan.definitions import AT
from headgate.plan.target_definitions import IndexDefinition, TargetErrorPolicy, TargetField, ValuePath
from headgate.runtime.ports import Target
from headgate.runtime.targets.search import SearchTarget
from headgate.runtime.targets.search_documents import DOCUMENT
from headgate.schema.parse import parse_type
from tests.spark import small_frame

Row = tuple[str, int | None]


def field(name: str, type_: str, native: str | None = None, *, key: bool = False) -> TargetField:
    parsed = parse_type(type_)
    return TargetField(name, ValuePath(name), parsed, parsed, not key, native, key=key)


def definition(
    index: str,
    *fields: TargetField,
    on_error: TargetErrorPolicy = "HALT",
    adopt: bool = False,
) -> IndexDefinition:
    key = tuple(one.name for one in fields if one.key)
    return IndexDefinition("m", 1, 1, index, fields, key, on_error, adopt=adopt)


class OwnTarget(SearchTarget):
    """A target with a client of its own, which it closes."""

    def __init__(self, url: str, made: IndexDefinition, task: str = "t") -> None:
        self.client = SearchClient(url)
        super().__init__(made, self.client, task)

    def close(self) -> None:
        self.client.close()


class SearchRows:
    """One index, and frames of rows for it."""

    def __init__(self, session: SparkSession, url: str, index: str, *, keyed: bool) -> None:
        self._session = session
        self._url = url
        fields = field("key", "text", key=keyed), field("value", "bigint")
        self._definition = definition(index, *fields)
        self._offsets = count()

    def target(self) -> SearchTarget:
        return OwnTarget(self._url, self._definition)

    def frame(self, rows: Sequence[Row]) -> DataFrame:
        placed = [(*row, next(self._offsets)) for row in rows]
        made = small_frame(self._session, placed, "key string, value bigint, offset bigint")
        position = F.struct(
            F.lit("orders").alias("topic"),
            F.lit(0).alias("partition"),
            F.col("offset"),
            F.timestamp_seconds(F.lit(0)).alias("timestamp"),
        )
        return made.withColumn(AT, position).drop("offset")

    def held(self, target: Target) -> list[Row]:
        found = target.contents(self._session).rows.select(DOCUMENT).collect()
        values = [json.loads(row[0]) for row in found]
        return sorted((value["key"], value["value"]) for value in values)
