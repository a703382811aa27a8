"""Verdicts on Protobuf files, by table and by really reading what was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import assume, given, strategies as st

from headgate.errors import ErrorGroup
from headgate.registry.compatibility.protobuf import incompatibilities
from headgate.registry.schemas import ParsedSchema, Schema
from headgate.schema.errors import SchemaError
from headgate.schema.formats.protobuf import read_files
from headgate.schema.formats.protobuf.read import link
from headgate.schema.written import SchemaFormat
from tests.laws import examples as law
from tests.registry.compatibility.protobuf_cases import CASES, Case

pytestmark = pytest.mark.unit

# Changes of the table that Confluent's registry calls compatible.
HARMLESS = frozenset(
    {
        "PACKAGE_CHANGED", "MESSAGE_ADDED", "MESSAGE_MOVED", "ENUM_ADDED", "ENUM_REMOVED", "ENUM_CONST_ADDED",
        "ENUM_CONST_CHANGED", "ENUM_CONST_REMOVED", "FIELD_ADDED", "FIELD_REMOVED", "FIELD_NAME_CHANGED",
        "FIELD_STRING_OR_BYTES_LABEL_CHANGED", "ONEOF_ADDED", "ONEOF_REMOVED", "ONEOF_FIELD_ADDED",
    }
)  # fmt: skip


def parsed(text: str, imported: str = "") -> ParsedSchema:
    references = [("other.proto", _proto3(imported))] if imported else []
    files = tuple(read_files(_proto3(text), references))
    return ParsedSchema(Schema(text, SchemaFormat.PROTOBUF), text, files)


def _proto3(text: str) -> str:
    return text if text.startswith("syntax") else f'syntax = "proto3"; {text}'


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.claim)
def test_case(case: Case) -> None:
    reader, writer = parsed(case.reader, case.imported[1]), parsed(case.writer, case.imported[0])
    found = incompatibilities(reader, writer)
    harmful = [change for change in case.changes if change.split()[0] not in HARMLESS]
    assert sorted(f"{change.kind} {change.path}" for change in found) == sorted(harmful)
    assert all(change.path in change.message for change in found)


def test_the_table_is_of_use() -> None:
    assert len(CASES) == len({case.claim for case in CASES}) >= 50
    kinds = {change.split()[0] for case in CASES for change in case.changes}
    assert kinds > HARMLESS
    assert kinds - HARMLESS == {
        "MESSAGE_REMOVED", "FIELD_KIND_CHANGED", "FIELD_SCALAR_KIND_CHANGED", "FIELD_NAMED_TYPE_CHANGED",
        "FIELD_NUMERIC_LABEL_CHANGED", "REQUIRED_FIELD_ADDED", "REQUIRED_FIELD_REMOVED", "ONEOF_FIELD_REMOVED",
        "MULTIPLE_FIELDS_MOVED_TO_ONEOF", "FIELD_MOVED_TO_EXISTING_ONEOF",
    }  # fmt: skip
    assert sum(any(change.split()[0] not in HARMLESS for change in case.changes) for case in CASES) > 25


def test_a_message_says_what_changed_and_where() -> None:
    (found,) = incompatibilities(parsed("message M { string a = 7; }"), parsed("message M { int32 a = 7; }"))
    assert found.message == (
        'field "a" (number 7) changed from int32 to string, which is another form on the wire at #/M/a'
    )


# Really reading


@dataclass(frozen=True, slots=True)
class Member:
    """A field of the message M. `home` is the oneof it is in; label and type as they are written."""

    name: str
    number: int
    type: str
    label: str = ""
    home: str = ""

    def text(self) -> str:
        return f"{self.label} {self.type} {self.name} = {self.number};"


SCALARS = ["int32", "int64", "uint32", "uint64", "bool", "sint32", "sint64", "fixed32", "sfixed32", "fixed64", "sfixed64", "float", "double", "string", "bytes"]  # fmt: skip
TYPES = [*SCALARS, "E", "N", "O"]
MAPS = [
    "map<int32, string>",
    "map<int64, bytes>",
    "map<string, N>",
    "map<string, E>",
    "map<bool, int32>",
    "map<string, O>",
]
SHARED = "enum E { A = 0; B = 1; } message N { int64 x = 1; } message O { int64 x = 1; }"
LABELS = {"proto2": ["optional", "required", "repeated"], "proto3": ["", "optional", "repeated"]}


@st.composite
def members(draw: st.DrawFn, syntax: str) -> list[Member]:
    found = []
    for number in range(1, draw(st.integers(1, 5)) + 1):
        home = draw(st.sampled_from(["", "", "", "o", "p"]))
        if home:
            found.append(Member(f"f{number}", number, draw(st.sampled_from(TYPES)), "", home))
        elif draw(st.integers(0, 4)) == 0:
            found.append(Member(f"f{number}", number, draw(st.sampled_from(MAPS))))
        else:
            label = draw(st.sampled_from(LABELS[syntax]))
            found.append(Member(f"f{number}", number, draw(st.sampled_from(TYPES)), label))
    return found


@st.composite
def changed(draw: st.DrawFn, before: list[Member], syntax: str) -> list[Member]:
    """The same fields, some of them with one thing changed; some gone, some new."""
    after = []
    for member in before:
        change = draw(st.sampled_from(["", "", "", "name", "type", "label", "home", "gone", "map"]))
        plain = not member.home and not member.type.startswith("map")
        match change:
            case "gone":
                continue
            case "name":
                after.append(replace(member, name=f"g{member.number}"))
            case "type" if not member.type.startswith("map"):
                after.append(replace(member, type=draw(st.sampled_from(TYPES))))
            case "map" if member.type.startswith("map"):
                after.append(replace(member, type=draw(st.sampled_from(MAPS))))
            case "label" if plain:
                after.append(replace(member, label=draw(st.sampled_from(LABELS[syntax]))))
            case "home" if plain:
                after.append(replace(member, label="", home=draw(st.sampled_from(["o", "p"]))))
            case "home" if member.home:
                label = "optional" if syntax == "proto2" else ""
                after.append(replace(member, label=label, home=""))
            case _:
                after.append(member)
    if draw(st.integers(0, 3)) == 0:
        gathered = [replace(member, label="", home="o") for member in before if member.type in TYPES]
        after = gathered[: draw(st.integers(1, 5))]
    if draw(st.booleans()):
        after.append(Member("extra", 20, draw(st.sampled_from(TYPES)), LABELS[syntax][draw(st.integers(0, 2))]))
    return after


def source(fields: list[Member], syntax: str) -> str:
    body = [member.text() for member in fields if not member.home]
    for oneof in ("o", "p"):
        inside = " ".join(member.text() for member in fields if member.home == oneof)
        body.append(f"oneof {oneof} {{ {inside} }}" if inside else "")
    return f'syntax = "{syntax}"; message M {{ {" ".join(body)} }}' + (
        SHARED if syntax == "proto3" else SHARED.replace("int64 x", "optional int64 x")
    )


def message_class(text: str) -> type[Message]:
    return GetMessageClass(link(read_files(text)).message_types_by_name["M"])


def fill(message: Message, fields: list[Member], chosen: Mapping[str, int]) -> None:
    """One value in every field, and of a oneof in the chosen one: a value that every type of its wire form can hold."""
    for member in fields:
        inside = [other.number for other in fields if other.home == member.home]
        if member.home and inside[chosen[member.home] % len(inside)] != member.number:
            continue
        if member.type.startswith("map"):
            key, value = member.type[4:-1].split(", ")
            target = getattr(message, member.name)
            if value in ("N", "O"):
                target[SAMPLES[key]].x = 1
            else:
                target[SAMPLES[key]] = SAMPLES[value]
        elif member.type in ("N", "O"):
            holder = getattr(message, member.name)
            (holder.add() if member.label == "repeated" else holder).x = 1
        elif member.label == "repeated":
            getattr(message, member.name).append(SAMPLES[member.type])
        else:
            setattr(message, member.name, SAMPLES[member.type])


SAMPLES: Mapping[str, object] = dict.fromkeys(SCALARS, 1) | {
    "string": "text",
    "bytes": b"text",
    "E": 1,
    "float": 1.5,
    "double": 1.5,
}


def content(message: Message) -> dict[int, object]:
    """What a message holds, by number, so that types of one wire form compare alike."""
    return {field.number: _plain(value) for field, value in message.ListFields()}


def _plain(value: object) -> object:
    match value:
        case Message():
            return [content(value)]
        case str():
            return [value.encode()]
        case bytes():
            return [value]
        case int() | float():
            return [float(value)]
        case Mapping():
            return {repr(_plain(key)): _plain(item) for key, item in value.items()}
        case _:
            return [item for each in value for item in _plain(each)]  # type: ignore[attr-defined]


@given(st.sampled_from(["proto2", "proto3"]), st.data())
@law(60)
def test_what_is_compatible_is_really_read_with_every_kept_field(syntax: str, data: st.DataObject) -> None:
    before = data.draw(members(syntax))
    after = data.draw(changed(before, syntax))
    try:
        classes = message_class(source(before, syntax)), message_class(source(after, syntax))
    except (SchemaError, ErrorGroup):
        assume(False)
    verdict = incompatibilities(parsed(source(after, syntax)), parsed(source(before, syntax)))
    assume(not verdict)
    written, read = classes[0](), classes[1]()
    fill(written, before, {"o": data.draw(st.integers(0, 4)), "p": data.draw(st.integers(0, 4))})
    read.ParseFromString(written.SerializeToString())
    assert read.IsInitialized()
    kept = {member.number for member in after}
    assert content(read) == {number: value for number, value in content(written).items() if number in kept}


@given(st.sampled_from(["proto2", "proto3"]), st.data())
@law(20)
def test_a_file_is_compatible_with_itself(syntax: str, data: st.DataObject) -> None:
    text = source(data.draw(members(syntax)), syntax)
    assert incompatibilities(parsed(text), parsed(text)) == ()
