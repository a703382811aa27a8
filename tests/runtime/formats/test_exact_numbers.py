"""Numbers of documents of a JSON Schema that are kept as json have every digit of the text."""

from __future__ import annotations

import json

import pytest

from headgate.runtime.formats.arrow_reader import Decoding
from headgate.runtime.formats.json_reader import json_decoder
from headgate.schema.encodings import SchemaEncoding, decoded_type
from headgate.schema.evolve.verdicts import Target, arriving
from headgate.schema.written import SchemaFormat, WrittenSchema

pytestmark = pytest.mark.unit

NUMBER = {"type": "number"}


def schema(**properties: object) -> WrittenSchema:
    text = json.dumps({"type": "object", "properties": properties})
    return WrittenSchema(text, id=len(properties), format=SchemaFormat.JSON)


WRITER = schema(id=NUMBER, plain=NUMBER, inner={"type": "object", "properties": {"big": NUMBER}})
READ = SchemaEncoding(SchemaFormat.JSON, (WRITER,), as_json=(("id",), ("inner", "big")))


def test_they_are_decoded_as_their_text_and_others_as_doubles() -> None:
    decoder = json_decoder(Decoding(decoded_type(READ), READ.schemas, (WRITER,), framed=True), WRITER)
    bodies = [b'{"id": 9007199254740993, "plain": 0.1, "inner": {"big": 1.10}}', b'{"id": null}', b'{"id": 2.0}']
    parsed, wrong = decoder.parse(bodies)
    assert list(wrong) == [1]  # the schema does not allow null
    found = decoder.columns([parsed[0], parsed[2]]).to_pylist()
    assert found == [
        {"id": "9007199254740993", "plain": 0.1, "inner": {"big": "1.10"}},
        {"id": "2.0", "plain": None, "inner": None},
    ]


def test_a_schema_that_arrives_later_is_followed_all_the_same() -> None:
    later = schema(id=NUMBER, plain=NUMBER, inner={"type": "object", "properties": {"big": NUMBER}}, more=NUMBER)
    assert arriving(READ, later, Target.READER).grows
    assert not arriving(READ, WRITER, Target.READER).changes
