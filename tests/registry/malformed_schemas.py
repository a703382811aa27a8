"""Schemas that must be refused, with the path of the fault and, for Avro, the words; and defaults that must not."""

from __future__ import annotations

from headgate.schema.written import Json
from tests.registry.compatibility.avro_cases import array, enum, field, fixed, map_, record

MALFORMED_AVRO: tuple[tuple[Json, str, str], ...] = (
    (5, "$", "a type is a name, an object or an array of types"),
    ({}, "$", 'a type written as an object needs a text in "type"'),
    ({"type": ["int"]}, "$", 'a type written as an object needs a text in "type"'),
    ("sting", "$", 'type "sting" is not defined before its use; did you mean "string"?'),
    (record(field("a", "Unknown")), "$.fields[0].type", 'type "Unknown" is not defined before its use'),
    ({"type": "record", "fields": []}, "$", 'record without "name"'),
    ({"type": "record", "name": "R"}, "$", 'record "R" needs an array of "fields"'),
    (record(name="1R"), "$.name", '"1R" is no name: write letters, digits and "_"'),
    (record(name="a..R"), "$.name", '"a." is no namespace'),
    (record(namespace="a-b"), "$.namespace", '"a-b" is no namespace'),
    (record(namespace=1), "$.namespace", "a namespace is a text"),
    (record(name="int"), "$.name", '"int" is a primitive type and no name for another'),
    (record(5), "$.fields[0]", "a field is an object"),
    (record({"name": "a"}), "$.fields[0]", 'field "a" has no type'),
    (
        record(field("a-b", "int")),
        "$.fields[0].name",
        '"a-b" is no name of a field: write letters, digits and "_"',
    ),
    (
        record(field("é", "int")),
        "$.fields[0].name",
        '"é" is no name of a field: write letters, digits and "_"',
    ),
    (record(field("a", "int"), field("a", "int")), "$.fields[1]", 'field "a" is there twice'),
    (
        record(field("a", "int", order="up")),
        "$.fields[0].order",
        "the order of a field is one of ascending, descending, ignore",
    ),
    (record(field("a", "int", aliases="b")), "$.fields[0].aliases", '"aliases" is an array of texts'),
    (record(field("a", record())), "$.fields[0].type.name", '"R" is already defined'),
    ([fixed(1), fixed(2)], "$[1].name", '"F" is already defined'),
    ({"type": "enum", "name": "E"}, "$", 'enum "E" needs an array of "symbols"'),
    (enum("A", "A"), "$.symbols[1]", 'symbol "A" is there twice'),
    (enum("A-B"), "$.symbols[0]", '"A-B" is no symbol of an enum'),
    (enum("A", default="B"), "$.default", '"B" is no symbol of enum "E"'),
    (enum("A", default=1), "$.default", "the default of an enum is one of its symbols"),
    (fixed(-1), "$.size", 'fixed "F" needs a "size" that is a number of bytes'),
    ({"type": "array"}, "$", 'array without "items"'),
    ({"type": "map"}, "$", 'map without "values"'),
    (array("x"), "$.items", 'type "x" is not defined before its use'),
    (map_("x"), "$.values", 'type "x" is not defined before its use'),
    ([], "$", "a union needs at least one branch"),
    (["int", ["null"]], "$[1]", "a union cannot directly contain another union"),
    (["int", "int"], "$[1]", "the union has int twice"),
    ([array("int"), array("string")], "$[1]", "the union has array twice"),
)

BAD_DEFAULTS: tuple[tuple[Json, Json, str, str], ...] = (
    ("int", "1", "", 'text "1" is no value of type int'),
    ("int", 2**31, "", "number 2147483648 is no value of type int"),
    ("int", 1.5, "", "number 1.5 is no value of type int"),
    ("int", True, "", "true is no value of type int"),
    ("long", 2**63, "", "number 9223372036854775808 is no value of type long"),
    ("float", "x", "", 'text "x" is no value of type float'),
    ("boolean", 0, "", "number 0 is no value of type boolean"),
    ("null", 0, "", "number 0 is no value of type null"),
    ("string", None, "", "null is no value of type string"),
    ("bytes", "\u0100", "", 'text "\u0100" is no value of type bytes'),
    (fixed(2), "a", "", 'text "a" is no value of type fixed "F"'),
    (enum("A"), "B", "", 'text "B" is no value of type enum "E"'),
    (array("int"), {}, "", "an object is no value of type array"),
    (array("int"), [1, "x"], "[1]", 'text "x" is no value of type int'),
    (map_("int"), {"k": "x"}, ".k", 'text "x" is no value of type int'),
    (["null", "int"], "x", "", 'text "x" fits no branch of union of null and int'),
    (
        record(field("b", "int"), name="I"),
        {},
        "",
        'field "b" of record "I" has neither a value nor a default',
    ),
    (record(field("b", "int"), name="I"), {"b": "x"}, ".b", 'text "x" is no value of type int'),
)

GOOD_DEFAULTS: tuple[tuple[Json, Json], ...] = (
    ("int", -(2**31)),
    ("double", 1),
    ("double", "NaN"),
    ("bytes", "\u00ff"),
    (fixed(2), "ab"),
    (["null", "int"], None),
    (["null", "int"], 5),  # any branch since Avro 1.12, not only the first
    (record(field("b", "int", default=1), name="I"), {}),
    (array(map_("int")), [{"k": 1}]),
)

MALFORMED_JSON_SCHEMA: tuple[tuple[Json, str], ...] = (
    ("string", "/"),
    ([], "/"),
    ({"type": "objekt"}, "/type"),
    ({"properties": {"a": {"minLength": -1}}}, "/properties/a/minLength"),
    ({"properties": {"a/b": {"type": 1}}}, "/properties/a~1b/type"),
    ({"required": "a"}, "/required"),
    ({"pattern": "("}, "/pattern"),
    ({"patternProperties": {"(": {}}}, "/patternProperties/("),
    ({"$ref": "#/definitions/a"}, "/$ref"),
    ({"properties": {"a": {"$ref": "other.json"}}}, "/properties/a/$ref"),
    ({"items": [{"$ref": "http://example.com/x"}]}, "/items/0/$ref"),
    ({"$schema": "https://json-schema.org/draft/2020-12/schema", "items": [{}]}, "/items"),
    (
        {"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMaximum": 5, "maximum": 6},
        "/exclusiveMaximum",
    ),
)
