"""Why we and Apicurio answer differently about a pair: every class that was seen, with its reason.

An explanation is not taken on trust. For JSON Schema, documents that the old version accepts are put to the new one,
which shows who is right. For Protobuf, Apicurio does not say what it found, so its rules are looked for in the pair.
What none of this explains is reported as such.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum

import jsonschema_rs
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from bench.pairs import TextPair, drawn
from headgate.registry.errors import Incompatibility
from headgate.schema.formats.protobuf import read_files
from headgate.schema.written import Json, SchemaFormat
from tests.registry.strategies import json_instances

SAMPLES = 100


class Reason(Enum):
    """The classes. A value is the sentence that explains it."""

    # JSON Schema, we accept
    MOVED_INTO_SUM = (
        "a schema became a member of an anyOf or oneOf, or left one of a single member, and accepts all it did; "
        "Apicurio takes every change between a combination and a plain schema for another type"
    )
    MEMBER_WITHOUT_PARTNER = (
        "a member of a combination changed in a way that we accept and Apicurio does not (it became a combination "
        "itself, or requires more), and no document of the old version was found that the new one refuses"
    )
    ANY_TO_ONE = (
        "an anyOf of one member became a oneOf that has it; Apicurio refuses every change of anyOf to oneOf, "
        "Confluent allows this one"
    )
    OVERLAPPING_ONE_OF = (
        "a oneOf gained members that overlap, so that a value may match two of them and be refused: too kind, on "
        "purpose, as Confluent is"
    )
    REQUIRED_UNSEEN = (
        "a property became required that one of the versions does not name, that may hold anything, or that has a "
        "default: too kind, as Confluent is; the new version refuses old documents without it, and Apicurio is right"
    )
    # JSON Schema, we refuse
    CRITERION_ENDS_IT = (
        "a oneOf became an anyOf and lost or narrowed members; Apicurio calls that extended and does not look at "
        "the members, although the new version refuses what only they accepted"
    )
    ONE_PARTNER_EACH = (
        "each old member of a combination needs a new member of its own, as in Confluent's registry; Apicurio does not "
        "look at the members once the combination itself was extended, and no document was found that breaks"
    )
    # Protobuf, we accept
    REMOVED = (
        "a field was removed; a reader skips what it does not know, but Apicurio (its rules are those of protolock) "
        "guards the number against another use, and refuses the removal even with number and name reserved"
    )
    RENAMED = "a field was renamed; the wire has numbers only, but Apicurio guards generated code and JSON"
    SAME_WIRE_FORM = (
        "a type changed within one form on the wire (int32 to int64, string to bytes, enum to int32), which readers of "
        "Protobuf understand; Apicurio compares types as text"
    )
    LABEL = (
        "a label changed where the wire stays readable (proto3's optional, a single string or message to repeated, "
        "proto2's optional into a oneof); Apicurio compares labels as text"
    )
    # Protobuf, we refuse
    ONEOF_GATHERED = (
        "fields that could be set together before share a oneof now, so that all but the last are lost; Apicurio does "
        "not look at oneofs"
    )
    UNEXPLAINED = "no explanation is known: look at the pair"


@dataclass(frozen=True, slots=True)
class Disagreement:
    pair: TextPair
    ours: tuple[Incompatibility, ...]
    theirs: str  # what Apicurio says; empty when it accepts

    def reason(self) -> Reason:
        if self.pair.type is SchemaFormat.PROTOBUF:
            return self._protobuf_accepted() if self.theirs else self._protobuf_refused()
        broken = _broken_document(self.pair)
        return self._json_accepted(broken) if self.theirs else self._json_refused(broken)

    def _json_accepted(self, broken: Json) -> Reason:
        if broken is not _NONE:
            new = json.loads(self.pair.new)
            if _accepts(_without(new, "required"), broken):
                return Reason.REQUIRED_UNSEEN
            return Reason.OVERLAPPING_ONE_OF if _accepts(_any_of(new), broken) else Reason.UNEXPLAINED
        kinds = set(re.findall(r"([A-Z_]+) at /", self.theirs))
        if kinds <= {"SUBSCHEMA_TYPE_CHANGED"}:
            return Reason.MOVED_INTO_SUM
        if kinds <= {"SUBSCHEMA_TYPE_CHANGED", "COMBINED_TYPE_SUBSCHEMA_NOT_COMPATIBLE"}:
            return Reason.MEMBER_WITHOUT_PARTNER
        is_criterion = "COMBINED_TYPE_CRITERION_NARROWED" in kinds and '"anyOf"' in self.pair.old
        return Reason.ANY_TO_ONE if is_criterion else Reason.UNEXPLAINED

    def _json_refused(self, broken: Json) -> Reason:
        kinds = {each.kind for each in self.ours}
        if not kinds <= {"SUM_TYPE_NARROWED", "COMBINED_TYPE_SUBSCHEMAS_CHANGED"}:
            return Reason.UNEXPLAINED
        is_lost = "SUM_TYPE_NARROWED" in kinds or broken is not _NONE
        return Reason.CRITERION_ENDS_IT if is_lost else Reason.ONE_PARTNER_EACH

    def _protobuf_refused(self) -> Reason:
        gathered = {"MULTIPLE_FIELDS_MOVED_TO_ONEOF", "FIELD_MOVED_TO_EXISTING_ONEOF"}
        return Reason.ONEOF_GATHERED if {each.kind for each in self.ours} <= gathered else Reason.UNEXPLAINED

    def _protobuf_accepted(self) -> Reason:
        old, new = _fields(self.pair.old), _fields(self.pair.new)
        both = [(old[place], new[place]) for place in old if place in new]
        if any(place not in new for place in old):
            return Reason.REMOVED
        if any(before.name != after.name for before, after in both):
            return Reason.RENAMED
        if any(_type(before) != _type(after) for before, after in both):
            return Reason.SAME_WIRE_FORM
        if any(_label(before, self.pair.old) != _label(after, self.pair.new) for before, after in both):
            return Reason.LABEL
        return Reason.UNEXPLAINED


_NONE: Json = {"no such": "document"}  # told apart by identity: null is a document


def _broken_document(pair: TextPair) -> Json:
    """A document that the old version accepts and the new one does not, if some can be found."""
    old, new = json.loads(pair.old), json.loads(pair.new)
    for document in drawn(json_instances(old), SAMPLES):
        if _accepts(old, document) and not _accepts(new, document):
            return document
    return _NONE


def _accepts(schema: Json, document: Json) -> bool:
    return jsonschema_rs.Draft7Validator(json.dumps(schema)).is_valid(document)


def _without(schema: Json, keyword: str) -> Json:
    if isinstance(schema, list):
        return [_without(each, keyword) for each in schema]
    if isinstance(schema, dict):
        return {key: _without(value, keyword) for key, value in schema.items() if key != keyword}
    return schema


def _any_of(schema: Json) -> Json:
    replaced: Json = json.loads(json.dumps(schema).replace('"oneOf"', '"anyOf"'))
    return replaced


def _fields(text: str) -> dict[tuple[str, int], FieldDescriptorProto]:
    file: FileDescriptorProto = read_files(text)[0]
    return {(message.name, field.number): field for message in file.message_type for field in message.field}


def _type(field: FieldDescriptorProto) -> tuple[int, str]:
    return field.type, field.type_name


def _label(field: FieldDescriptorProto, text: str) -> str:
    """As it is written, which is what Apicurio compares."""
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return "repeated"
    if field.label == FieldDescriptorProto.LABEL_REQUIRED:
        return "required"
    in_oneof = field.HasField("oneof_index") and not field.proto3_optional
    is_written = field.proto3_optional or (text.startswith('syntax = "proto2"') and not in_oneof)
    return "optional" if is_written else ""
