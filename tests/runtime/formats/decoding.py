"""Bodies decoded as a worker does it, without Spark: what came out, or why nothing did."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headgate.registry import wire
from headgate.runtime.formats.arrow_reader import BatchDecoder, Decoding, names_of_writers
from headgate.runtime.formats.json_reader import json_decoder
from headgate.runtime.formats.protobuf_reader import ProtobufDecoders
from headgate.schema.encodings import SchemaEncoding, decoded_type
from headgate.schema.written import WrittenSchema


@dataclass(frozen=True)
class Bad:
    reason: str


def written(schema: object, id_: int | None = None, **references: object) -> WrittenSchema:
    others = tuple((name, _text(other)) for name, other in references.items())
    return WrittenSchema(_text(schema), others, id_)


def _text(schema: object) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)


def decoded(side: SchemaEncoding, bodies: Sequence[bytes | None], *writers: WrittenSchema) -> list[Any]:
    """Values in the order of the bodies. Without ``writers`` those of the side itself."""
    known = writers or side.schemas
    decoding = Decoding(
        decoded_type(side),
        side.schemas,
        tuple(known),
        side.framed,
        side.message,
        names_of_writers(side, known),
    )
    make = ProtobufDecoders.of((*side.schemas, *known)) if side.format == "PROTOBUF" else json_decoder
    made = BatchDecoder(decoding, make)(pa.array(bodies, pa.binary()))
    return [_shown(row["v"], row["reason"]) for row in made.to_pylist(maps_as_pydicts="strict")]


def one(side: SchemaEncoding, body: bytes, *writers: WrittenSchema) -> Any:
    return decoded(side, [body], *writers)[0]


def framed(id_: int, payload: bytes, place: tuple[int, ...] | None = None) -> bytes:
    return wire.encode(id_, payload if place is None else wire.encode_message_indexes(place) + payload)


def _shown(value: Any, reason: str | None) -> Any:
    return value if reason is None else Bad(reason)
