"""Rows -> records by the writers of INSERT, in Arrow batches in Python workers (`given/`): of given schemas, and keys whose bytes
depend on the version of Java."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, functions as F
from pyspark.sql.pandas.functions import arrow_udf

from headgate.plan.definitions import RecordEncoding
from headgate.runtime.formats.frame import framed
from headgate.runtime.formats.given.values import Unwritable
from headgate.runtime.formats.given.writer import protobuf_writer, side_body
from headgate.runtime.formats.protobuf_files import compiled

RESULT = "struct<body: binary, path: string, reason: string>"
_ARROW = pa.struct([("body", pa.binary()), ("path", pa.string()), ("reason", pa.string())])


class GivenWriter:
    """Encodes columns as one side of a record. Used by one thread at a time."""

    def __init__(self, side: RecordEncoding) -> None:
        self._side = side
        self._made: tuple[Mapping[str, Column], Column] | None = None

    @property
    def can_reject(self) -> bool:
        return True

    def accepts(self, row: Mapping[str, Column]) -> Column:
        return self._encoded(row)["body"].isNotNull()

    def error(self, row: Mapping[str, Column]) -> Column:
        encoded = self._encoded(row)
        found = F.struct(encoded["path"].alias("path"), encoded["reason"].alias("reason"))
        return F.when(encoded["body"].isNull(), found)

    def encode(self, row: Mapping[str, Column]) -> Column:
        body = self._encoded(row)["body"]
        return body if self._side.schema_id is None else framed(self._side.schema_id, body)

    def _encoded(self, row: Mapping[str, Column]) -> Column:
        """The same column for the same row: Spark then computes it once, however often it is used."""
        if self._made is not None and self._made[0] is row:
            return self._made[1]
        side, descriptors = self._side, self._descriptors
        names = tuple(field.name for field in side.record.fields)

        def encode_batch(*columns: pa.Array) -> pa.Array:
            return encoded_batch(batch_writer(side, descriptors), names, side.whole, columns)

        made: Column = arrow_udf(encode_batch, RESULT)(*[row[name] for name in names])  # type: ignore[call-overload]
        self._made = (row, made)
        return made

    @cached_property
    def _descriptors(self) -> bytes:
        """Compiled here, so that no worker runs protoc."""
        written = self._side.written
        return compiled(written) if written is not None and self._side.encoding == "PROTOBUF" else b""


@lru_cache(maxsize=64)
def batch_writer(side: RecordEncoding, descriptors: bytes) -> Callable[[Any], bytes]:
    if side.encoding == "PROTOBUF":
        return protobuf_writer(descriptors, side.record, side.message).encode
    return side_body(side)


def encoded_batch(
    write: Callable[[Any], bytes], names: tuple[str, ...], whole: bool, columns: tuple[pa.Array, ...]
) -> pa.Array:
    """The body of each row, or the path and the reason of one that cannot be written."""
    bodies: list[dict[str, Any]] = []
    for values in zip(*[_python_values(column) for column in columns], strict=True):
        try:
            body = write(values[0] if whole else dict(zip(names, values, strict=True)))
            bodies.append({"body": body, "path": None, "reason": None})
        except Unwritable as wrong:
            bodies.append({"body": None, "path": wrong.path, "reason": wrong.reason})
    return pa.array(bodies, _ARROW)


def _python_values(column: pa.Array) -> list[Any]:
    """The values as Python's. pyarrow takes ten times as long for numbers and texts if it is told how to show maps."""
    nested = pa.types.is_nested(column.type)
    return column.to_pylist(maps_as_pydicts="strict") if nested else column.to_pylist()  # type: ignore[no-any-return]
