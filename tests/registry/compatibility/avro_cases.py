"""Pairs of Avro schemas with what keeps the reader from reading the writer, checked by eye against the specification.

One row: a claim, the reader, the writer, and the expected path and kind of each incompatibility, none when it reads.
"""

from __future__ import annotations

from typing import NamedTuple

from headgate.schema.written import Json


class Case(NamedTuple):
    claim: str
    reader: Json
    writer: Json
    expected: tuple[tuple[str, str], ...] = ()


def record(*fields: Json, name: str = "R", **more: Json) -> Json:
    return {"type": "record", "name": name, "fields": [*fields], **more}


def field(name: str, type_: Json, **more: Json) -> Json:
    return {"name": name, "type": type_, **more}


def enum(*symbols: str, name: str = "E", **more: Json) -> Json:
    return {"type": "enum", "name": name, "symbols": [*symbols], **more}


def fixed(size: int, name: str = "F", **more: Json) -> Json:
    return {"type": "fixed", "name": name, "size": size, **more}


def array(items: Json) -> Json:
    return {"type": "array", "items": items}


def map_(values: Json) -> Json:
    return {"type": "map", "values": values}


def decimal(precision: int, scale: int) -> Json:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


MISMATCH = (("$", "TYPE_MISMATCH"),)
NO_DEFAULT = "READER_FIELD_MISSING_DEFAULT_VALUE"

PRIMITIVES = (
    Case("int reads int", "int", "int"),
    Case("long reads int", "long", "int"),
    Case("int does not read long", "int", "long", MISMATCH),
    Case("float reads int", "float", "int"),
    Case("float reads long, losing digits", "float", "long"),
    Case("float does not read double", "float", "double", MISMATCH),
    Case("double reads int", "double", "int"),
    Case("double reads long", "double", "long"),
    Case("double reads float", "double", "float"),
    Case("int does not read double", "int", "double", MISMATCH),
    Case("string reads bytes", "string", "bytes"),
    Case("bytes reads string", "bytes", "string"),
    Case("string does not read int", "string", "int", MISMATCH),
    Case("boolean does not read int", "boolean", "int", MISMATCH),
    Case("null does not read int", "null", "int", MISMATCH),
    Case("bytes does not read fixed", "bytes", fixed(4), MISMATCH),
    Case("string does not read enum", "string", enum("A"), MISMATCH),
    Case("enum does not read string", enum("A"), "string", MISMATCH),
    Case("record does not read map", record(), map_("int"), MISMATCH),
    Case("array does not read map", array("int"), map_("int"), MISMATCH),
)

LOGICAL = (
    Case("a decimal may change precision and scale", decimal(4, 2), decimal(9, 3)),
    Case("a decimal may become bytes", "bytes", decimal(4, 2)),
    Case("a date may become an int", "int", {"type": "int", "logicalType": "date"}),
    Case("a time in millis may become one in micros", {"type": "long", "logicalType": "time-micros"}, "int"),
    Case("a decimal does not read an int", decimal(4, 2), "int", MISMATCH),
)

RECORDS = (
    Case("a field may go", record(field("a", "int")), record(field("a", "int"), field("b", "int"))),
    Case("a field with a default may come", record(field("a", "int", default=1)), record()),
    Case("a null default is a default", record(field("a", ["null", "int"], default=None)), record()),
    Case("a field needs a default", record(field("a", "int")), record(), (("$.fields[0]", NO_DEFAULT),)),
    Case(
        "a nullable field needs a default too",
        record(field("a", "int"), field("b", ["null", "int"])),
        record(field("a", "int")),
        (("$.fields[1]", NO_DEFAULT),),
    ),
    Case(
        "every field without a default is named",
        record(field("a", "int"), field("b", "string")),
        record(),
        (("$.fields[0]", NO_DEFAULT), ("$.fields[1]", NO_DEFAULT)),
    ),
    Case(
        "fields may change places",
        record(field("a", "int"), field("b", "int")),
        record(field("b", "int"), field("a", "int")),
    ),
    Case("a field's type may widen", record(field("a", "long")), record(field("a", "int"))),
    Case(
        "a field's type must not narrow",
        record(field("a", "int")),
        record(field("a", "long")),
        (("$.fields[0].type", "TYPE_MISMATCH"),),
    ),
    Case(
        "a default does not help a type that changed",
        record(field("a", "int", default=1)),
        record(field("a", "string")),
        (("$.fields[0].type", "TYPE_MISMATCH"),),
    ),
    Case(
        "a field may be renamed with an alias",
        record(field("b", "int", aliases=["a"])),
        record(field("a", "int")),
    ),
    Case(
        "an alias of the writer does not count",
        record(field("b", "int")),
        record(field("a", "int", aliases=["b"])),
        (("$.fields[0]", NO_DEFAULT),),
    ),
    Case(
        "the renamed field must fit as well",
        record(field("b", "int", aliases=["a"])),
        record(field("a", "string")),
        (("$.fields[0].type", "TYPE_MISMATCH"),),
    ),
    Case(
        "a field may not stand for two of the writer",
        record(field("b", "int", aliases=["a"])),
        record(field("a", "int"), field("b", "int")),
        (("$.fields[0]", "NAME_MISMATCH"),),
    ),
    Case(
        "docs and orders do not count",
        record(field("a", "int", doc="x", order="ignore")),
        record(field("a", "int")),
    ),
    Case(
        "inner records are looked into",
        record(field("a", record(field("b", "int"), name="I"))),
        record(field("a", record(name="I"))),
        (("$.fields[0].type.fields[0]", NO_DEFAULT),),
    ),
    Case("an error is read as a record", record(field("a", "int"), type="error"), record(field("a", "int"))),
)

NAMES = (
    Case("another name is another record", record(name="A"), record(name="B"), (("$.name", "NAME_MISMATCH"),)),
    Case("an alias makes it the same", record(name="A", aliases=["B"]), record(name="B")),
    Case("the namespace alone does not count", record(name="one.R"), record(name="two.R")),
    Case("an alias is relative to its namespace", record(name="one.A", aliases=["B"]), record(name="one.B")),
    Case(
        "so it is none for another namespace",
        record(name="one.A", aliases=["B"]),
        record(name="two.B"),
        (("$.name", "NAME_MISMATCH"),),
    ),
    Case("a full alias is for any", record(name="one.A", aliases=["two.B"]), record(name="two.B")),
    Case("an enum may be aliased", enum("X", name="A", aliases=["B"]), enum("X", name="B")),
    Case(
        "an enum of another name is another",
        enum("X", name="A"),
        enum("X", name="B"),
        (("$.name", "NAME_MISMATCH"),),
    ),
    Case("a fixed may be aliased", fixed(2, "A", aliases=["B"]), fixed(2, "B")),
    Case("a fixed of another name is another", fixed(2, "A"), fixed(2, "B"), (("$.name", "NAME_MISMATCH"),)),
    Case("a fixed must keep its size", fixed(2), fixed(3), (("$.size", "FIXED_SIZE_MISMATCH"),)),
    Case(
        "name and size are both named",
        fixed(2, "A"),
        fixed(3, "B"),
        (("$.name", "NAME_MISMATCH"), ("$.size", "FIXED_SIZE_MISMATCH")),
    ),
)

ENUMS = (
    Case("symbols may come", enum("A", "B"), enum("A")),
    Case("symbols may change places", enum("B", "A"), enum("A", "B")),
    Case("symbols must not go", enum("A"), enum("A", "B"), (("$.symbols", "MISSING_ENUM_SYMBOLS"),)),
    Case("unless there is a default for them", enum("A", default="A"), enum("A", "B")),
    Case(
        "the writer's default is of no use",
        enum("A"),
        enum("A", "B", default="B"),
        (("$.symbols", "MISSING_ENUM_SYMBOLS"),),
    ),
    Case(
        "an enum's default is no default of its field",
        record(field("a", enum("A", default="A"))),
        record(),
        (("$.fields[0]", NO_DEFAULT),),
    ),
)

COLLECTIONS = (
    Case("items may widen", array("long"), array("int")),
    Case("items must not narrow", array("int"), array("long"), (("$.items", "TYPE_MISMATCH"),)),
    Case("values may widen", map_("double"), map_("float")),
    Case("values must not narrow", map_("float"), map_("double"), (("$.values", "TYPE_MISMATCH"),)),
    Case("collections nest", array(map_("int")), array(map_("string")), (("$.items.values", "TYPE_MISMATCH"),)),
)

UNIONS = (
    Case("a union may grow", ["null", "int", "string"], ["null", "int"]),
    Case("a union must not shrink", ["null"], ["null", "int"], (("$", "MISSING_UNION_BRANCH"),)),
    Case("each lost branch is named", ["null"], ["int", "string"], (("$", "MISSING_UNION_BRANCH"),) * 2),
    Case("branches may change places", ["int", "null"], ["null", "int"]),
    Case("a type may become a union with it", ["null", "int"], "int"),
    Case("a branch may promote", ["null", "long"], "int"),
    Case("a type must be one of the branches", ["null", "int"], "string", (("$", "MISSING_UNION_BRANCH"),)),
    Case("a union may become a type that reads all of it", "double", ["int", "float"]),
    Case("a type must read each branch", "int", ["null", "int"], MISMATCH),
    Case("a union of one is a type", "int", ["int"]),
    Case("a branch may widen", ["null", "long"], ["null", "int"]),
    Case("a branch must not narrow", ["null", "int"], ["null", "long"], (("$", "MISSING_UNION_BRANCH"),)),
    Case("records in unions match by name", ["null", record(name="A")], ["null", record(name="A")]),
    Case("a branch may be found by alias", [record(name="A", aliases=["B"])], record(name="B")),
    Case(
        "a record in a union is looked into",
        ["null", record(field("a", "int"))],
        ["null", record()],
        (("$", "MISSING_UNION_BRANCH"), ("$[1].fields[0]", NO_DEFAULT)),
    ),
    Case(
        "an array in a union is looked into",
        ["null", array("int")],
        array("string"),
        (("$", "MISSING_UNION_BRANCH"), ("$[1].items", "TYPE_MISMATCH")),
    ),
    Case("text in a union reads bytes", ["null", "string"], "bytes"),
)

NODE: Json = record(field("value", "long"), field("next", ["null", "Node"]), name="Node")
NODE_OF_INT: Json = record(field("value", "int"), field("next", ["null", "Node"]), name="Node")
TREE: Json = record(field("children", array("Tree")), name="Tree")
TREE_WITH_LABEL: Json = record(field("children", array("Tree")), field("label", "string"), name="Tree")

RECURSION = (
    Case("a list reads itself", NODE, NODE),
    Case("a list may widen its values", NODE, NODE_OF_INT),
    Case(
        # The union reads the writer's node only if the node does, which it does not: both places are named.
        "a list must not narrow its values",
        NODE_OF_INT,
        NODE,
        (("$.fields[0].type", "TYPE_MISMATCH"), ("$.fields[1].type", "MISSING_UNION_BRANCH")),
    ),
    Case("a tree reads itself", TREE, TREE),
    Case("a tree may lose a field", TREE, TREE_WITH_LABEL),
    Case("a tree needs a default for a new one", TREE_WITH_LABEL, TREE, (("$.fields[1]", NO_DEFAULT),)),
    Case(
        "a type used twice is reported once, where it is first used",
        record(field("a", fixed(2)), field("b", "F")),
        record(field("a", fixed(3)), field("b", "F")),
        (("$.fields[0].type.size", "FIXED_SIZE_MISMATCH"),),
    ),
)

CASES = (*PRIMITIVES, *LOGICAL, *RECORDS, *NAMES, *ENUMS, *COLLECTIONS, *UNIONS, *RECURSION)
