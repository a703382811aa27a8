"""Pairs of Protobuf files with every difference between them, checked by eye against Confluent's rules.

One row: a claim, the file that data was written with, the file that it is read with, and the differences as kind and
path. A file without a first line is proto3. `stricter` marks the rows where Confluent's registry would let data be
lost, and ours does not.
"""

from __future__ import annotations

from typing import NamedTuple

PROTO2 = 'syntax = "proto2";'


class Case(NamedTuple):
    claim: str
    writer: str
    reader: str
    changes: tuple[str, ...] = ()
    stricter: bool = False
    imported: tuple[str, str] = ("", "")  # what "other.proto" is for the writer and for the reader


def _m(body: str, rest: str = "") -> str:
    return f"message M {{ {body} }} {rest}"


def _two(body: str) -> str:
    return f"{PROTO2} {_m(body)}"


N = "message N { string x = 1; }"
E = "enum E { A = 0; B = 1; }"
USES = 'import "other.proto";'
OTHER = 'syntax = "proto3"; package o; message T {{ {} }}'

CASES = [
    # files and messages
    Case("nothing_changes", _m("int32 a = 1;"), _m("int32 a = 1;")),
    Case("a_package_may_change", "package p; " + _m("M m = 1;"), "package q; " + _m("M m = 1;"), ("PACKAGE_CHANGED #/",)),
    Case("a_message_is_added", _m(""), _m("", N), ("MESSAGE_ADDED #/N",)),
    Case("a_message_is_removed", _m("", N), _m(""), ("MESSAGE_REMOVED #/N",)),
    Case("a_nested_message_is_removed", _m(N), _m(""), ("MESSAGE_REMOVED #/M/N",)),
    Case("a_nested_message_is_added", _m(""), _m(N), ("MESSAGE_ADDED #/M/N",)),
    Case("messages_change_places", _m("", N), f"{N} {_m('')}", ("MESSAGE_MOVED #/M", "MESSAGE_MOVED #/N")),
    Case("a_message_is_renamed", "message A {}", "message B {}", ("MESSAGE_REMOVED #/A", "MESSAGE_ADDED #/B")),
    Case("a_nested_message_moves_out", _m(f"N n = 1; {N}"), _m("N n = 1;", N),
         ("FIELD_NAMED_TYPE_CHANGED #/M/n", "MESSAGE_REMOVED #/M/N", "MESSAGE_ADDED #/N")),
    Case("names_may_be_written_in_another_way", "package p; " + _m(f"N n = 1; {N}"), "package p; " + _m(f".p.M.N n = 1; {N}")),
    Case("a_change_in_a_nested_message_is_named_there", _m(N), _m("message N { int32 x = 1; }"), ("FIELD_SCALAR_KIND_CHANGED #/M/N/x",)),
    Case("a_service_does_not_matter", _m("", "service S { rpc R(M) returns (M); }"), _m("")),
    Case("an_option_does_not_matter", _m("int32 a = 1 [deprecated = true];"), _m("int32 a = 1;")),
    Case("a_comment_does_not_matter", _m("int32 a = 1; // old\n"), _m("int32 a = 1;")),
    # enums
    Case("an_enum_is_added", _m(""), _m("", E), ("ENUM_ADDED #/E",)),
    Case("an_enum_is_removed", _m(E), _m(""), ("ENUM_REMOVED #/M/E",)),
    Case("a_value_is_added", E, "enum E { A = 0; B = 1; C = 2; }", ("ENUM_CONST_ADDED #/E/C",)),
    Case("a_value_is_removed", E, "enum E { A = 0; }", ("ENUM_CONST_REMOVED #/E/B",)),
    Case("a_value_is_renamed", E, "enum E { A = 0; X = 1; }", ("ENUM_CONST_CHANGED #/E/X",)),
    Case("an_enum_becomes_a_number", _m("E e = 1;", E), _m("int32 e = 1;"), ("ENUM_REMOVED #/E",)),
    Case("a_number_becomes_an_enum", _m("uint64 e = 1;"), _m("E e = 1;", E), ("ENUM_ADDED #/E",)),
    Case("an_enum_becomes_another", _m("E e = 1;", E), _m("F e = 1;", f"{E} enum F {{ Z = 0; }}"), ("ENUM_ADDED #/F",)),
    Case("an_enum_becomes_a_string", _m("E e = 1;", E), _m("string e = 1;", E), ("FIELD_SCALAR_KIND_CHANGED #/M/e",)),
    # fields
    Case("a_field_is_added", _m(""), _m("int32 a = 1;"), ("FIELD_ADDED #/M/a",)),
    Case("a_field_is_removed", _m("int32 a = 1;"), _m(""), ("FIELD_REMOVED #/M/a",)),
    Case("a_removed_field_is_reserved", _m("int32 a = 1;"), _m('reserved 1; reserved "a";'), ("FIELD_REMOVED #/M/a",)),
    Case("a_field_is_renamed", _m("int32 a = 1;"), _m("int32 b = 1;"), ("FIELD_NAME_CHANGED #/M/b",)),
    Case("a_field_gets_another_number", _m("int32 a = 1;"), _m("int32 a = 2;"), ("FIELD_REMOVED #/M/a", "FIELD_ADDED #/M/a")),
    Case("fields_may_be_in_another_order", _m("int32 a = 1; int32 b = 2;"), _m("int32 b = 2; int32 a = 1;")),
    Case("int32_becomes_int64", _m("int32 a = 1;"), _m("int64 a = 1;")),
    Case("int64_becomes_bool", _m("int64 a = 1;"), _m("bool a = 1;")),
    Case("uint32_becomes_int64", _m("uint32 a = 1;"), _m("int64 a = 1;")),
    Case("sint32_becomes_sint64", _m("sint32 a = 1;"), _m("sint64 a = 1;")),
    Case("int32_becomes_sint32", _m("int32 a = 1;"), _m("sint32 a = 1;"), ("FIELD_SCALAR_KIND_CHANGED #/M/a",)),
    Case("string_becomes_bytes", _m("string a = 1;"), _m("bytes a = 1;")),
    Case("string_becomes_int32", _m("string a = 1;"), _m("int32 a = 1;"), ("FIELD_SCALAR_KIND_CHANGED #/M/a",)),
    Case("fixed32_becomes_sfixed32", _m("fixed32 a = 1;"), _m("sfixed32 a = 1;")),
    Case("fixed64_becomes_sfixed64", _m("fixed64 a = 1;"), _m("sfixed64 a = 1;")),
    Case("fixed32_becomes_fixed64", _m("fixed32 a = 1;"), _m("fixed64 a = 1;"), ("FIELD_SCALAR_KIND_CHANGED #/M/a",)),
    Case("fixed32_becomes_float", _m("fixed32 a = 1;"), _m("float a = 1;"), ("FIELD_SCALAR_KIND_CHANGED #/M/a",)),
    Case("float_becomes_double", _m("float a = 1;"), _m("double a = 1;"), ("FIELD_SCALAR_KIND_CHANGED #/M/a",)),
    Case("a_renamed_field_changes_type_too", _m("int32 a = 1;"), _m("string b = 1;"),
         ("FIELD_NAME_CHANGED #/M/b", "FIELD_SCALAR_KIND_CHANGED #/M/b")),
    Case("a_number_becomes_a_message", _m("int32 a = 1;", N), _m("N a = 1;", N), ("FIELD_KIND_CHANGED #/M/a",)),
    Case("bytes_become_a_message", _m("bytes a = 1;", N), _m("N a = 1;", N), ("FIELD_KIND_CHANGED #/M/a",)),
    Case("a_message_becomes_another", _m("N a = 1;", N + "message O { string x = 1; }"), _m("O a = 1;", N + "message O { string x = 1; }"),
         ("FIELD_NAMED_TYPE_CHANGED #/M/a",)),
    Case("a_group_becomes_a_message", f"{PROTO2} {_m('optional group G = 1 { }')}", f"{PROTO2} {_m('optional G g = 1; message G { }')}",
         ("FIELD_KIND_CHANGED #/M/g",), stricter=True),
    # labels
    Case("optional_is_added_in_proto3", _m("int32 a = 1;"), _m("optional int32 a = 1;")),
    Case("a_number_becomes_repeated", _m("optional int32 a = 1;"), _m("repeated int32 a = 1;"), ("FIELD_NUMERIC_LABEL_CHANGED #/M/a",)),
    Case("a_number_without_label_becomes_repeated", _m("int32 a = 1;"), _m("repeated int32 a = 1;"),
         ("FIELD_NUMERIC_LABEL_CHANGED #/M/a",), stricter=True),
    Case("a_repeated_number_becomes_single", _m("repeated int32 a = 1;"), _m("int32 a = 1;"),
         ("FIELD_NUMERIC_LABEL_CHANGED #/M/a",), stricter=True),
    Case("a_repeated_enum_becomes_single", _m("repeated E a = 1;", E), _m("optional E a = 1;", E), ("FIELD_NUMERIC_LABEL_CHANGED #/M/a",)),
    Case("a_string_becomes_repeated", _m("optional string a = 1;"), _m("repeated string a = 1;"), ("FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/a",)),
    Case("a_message_becomes_repeated", _m("optional N a = 1;", N), _m("repeated N a = 1;", N)),
    Case("a_required_number_becomes_optional", _two("required int32 a = 1;"), _two("optional int32 a = 1;"), ("FIELD_NUMERIC_LABEL_CHANGED #/M/a",)),
    Case("a_required_string_becomes_optional", _two("required string a = 1;"), _two("optional string a = 1;"),
         ("FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/a",)),
    Case("an_optional_string_becomes_required", _two("optional string a = 1;"), _two("required string a = 1;"),
         ("REQUIRED_FIELD_ADDED #/M/a",), stricter=True),
    Case("a_required_field_is_added", _two(""), _two("required int32 a = 1;"), ("REQUIRED_FIELD_ADDED #/M/a",)),
    Case("a_required_field_is_removed", _two("required int32 a = 1;"), _two(""), ("REQUIRED_FIELD_REMOVED #/M/a",)),
    # maps
    Case("a_map_is_added", _m(""), _m("map<string, int32> a = 1;"), ("FIELD_ADDED #/M/a",)),
    Case("a_map_changes_its_value_on_the_wire", _m("map<string, int32> a = 1;"), _m("map<string, string> a = 1;"), ("FIELD_SCALAR_KIND_CHANGED #/M/a",)),
    Case("a_map_changes_its_key_within_a_form", _m("map<int32, N> a = 1;", N), _m("map<int64, N> a = 1;", N)),
    Case("a_map_changes_its_key_on_the_wire", _m("map<int32, N> a = 1;", N), _m("map<string, N> a = 1;", N), ("FIELD_SCALAR_KIND_CHANGED #/M/a",)),
    Case("a_map_becomes_a_message", _m("map<string, string> a = 1;", N), _m("repeated N a = 1;", N), ("FIELD_KIND_CHANGED #/M/a",)),
    Case("a_map_changes_its_message", _m("map<string, N> a = 1;", N + "message O {}"), _m("map<string, O> a = 1;", N + "message O {}"),
         ("FIELD_NAMED_TYPE_CHANGED #/M/a",)),
    # oneofs
    Case("one_field_moves_into_a_new_oneof", _m("string a = 1; string b = 2;"), _m("string a = 1; oneof o { string b = 2; int32 c = 3; }"),
         ("ONEOF_ADDED #/M/o",)),
    Case("two_fields_move_into_a_oneof", _m("string a = 1; string b = 2;"), _m("oneof o { string a = 1; string b = 2; }"),
         ("MULTIPLE_FIELDS_MOVED_TO_ONEOF #/M/o", "ONEOF_ADDED #/M/o")),
    Case("a_field_moves_into_a_oneof_that_is_in_use", _m("string a = 1; oneof o { string b = 2; }"), _m("oneof o { string a = 1; string b = 2; }"),
         ("FIELD_MOVED_TO_EXISTING_ONEOF #/M/o",)),
    Case("two_oneofs_become_one", _m("oneof o { string a = 1; } oneof p { string b = 2; }"), _m("oneof o { string a = 1; string b = 2; }"),
         ("MULTIPLE_FIELDS_MOVED_TO_ONEOF #/M/o", "ONEOF_REMOVED #/M/p"), stricter=True),
    Case("a_field_is_added_to_a_oneof", _m("oneof o { string a = 1; }"), _m("oneof o { string a = 1; string b = 2; }"), ("ONEOF_FIELD_ADDED #/M/o/b",)),
    Case("a_field_is_removed_from_a_oneof", _m("oneof o { string a = 1; string b = 2; }"), _m("oneof o { string a = 1; }"),
         ("ONEOF_FIELD_REMOVED #/M/o/b",)),
    Case("a_field_moves_out_of_a_oneof", _m("oneof o { string a = 1; string b = 2; }"), _m("oneof o { string a = 1; } string b = 2;")),
    Case("a_oneof_is_dissolved", _m("oneof o { string a = 1; string b = 2; }"), _m("string a = 1; string b = 2;"), ("ONEOF_REMOVED #/M/o",)),
    Case("a_oneof_is_renamed", _m("oneof o { string a = 1; }"), _m("oneof p { string a = 1; }"), ("ONEOF_ADDED #/M/p", "ONEOF_REMOVED #/M/o")),
    Case("a_renamed_oneof_hides_no_change_of_type", _m("oneof o { string a = 1; }"), _m("oneof p { int32 a = 1; }"),
         ("ONEOF_ADDED #/M/p", "ONEOF_REMOVED #/M/o", "FIELD_SCALAR_KIND_CHANGED #/M/a")),
    # imports
    Case("an_imported_message_changes", f"{USES} {_m('o.T t = 1;')}", f"{USES} {_m('o.T t = 1;')}",
         ("FIELD_SCALAR_KIND_CHANGED #/T/x", "FIELD_NAMED_TYPE_CHANGED #/M/t"),
         imported=(OTHER.format("int32 x = 1;"), OTHER.format("string x = 1;"))),
    Case("an_imported_message_grows", f"{USES} {_m('o.T t = 1;')}", f"{USES} {_m('o.T t = 1;')}", ("FIELD_ADDED #/T/y",),
         imported=(OTHER.format("int32 x = 1;"), OTHER.format("int32 x = 1; int32 y = 2;"))),
    Case("an_imported_message_changes_only_its_package", f"{USES} {_m('o.T t = 1;')}", f"{USES} {_m('z.T t = 1;')}",
         imported=(OTHER.format("int32 x = 1;"), OTHER.format("int32 x = 1;").replace("package o", "package z"))),
    Case("an_imported_message_that_holds_itself_changes", f"{USES} {_m('o.T t = 1;')}", f"{USES} {_m('o.T t = 1;')}",
         ("FIELD_SCALAR_KIND_CHANGED #/T/x", "FIELD_NAMED_TYPE_CHANGED #/M/t"),
         imported=(OTHER.format("int32 x = 1; T t = 2;"), OTHER.format("string x = 1; T t = 2;"))),
    Case("a_message_moves_into_an_import", _m("T t = 1;", "message T { int32 x = 1; }"), f"{USES} {_m('o.T t = 1;')}", ("MESSAGE_REMOVED #/T",),
         imported=("", OTHER.format("int32 x = 1;"))),
    Case("a_well_known_type_stays", 'import "google/protobuf/timestamp.proto";' + _m("google.protobuf.Timestamp t = 1;"),
         'import "google/protobuf/timestamp.proto";' + _m(".google.protobuf.Timestamp t = 1;")),
    Case("a_well_known_type_becomes_another", 'import "google/protobuf/wrappers.proto";' + _m("google.protobuf.StringValue t = 1;"),
         'import "google/protobuf/wrappers.proto";' + _m("google.protobuf.Int32Value t = 1;"), ("FIELD_NAMED_TYPE_CHANGED #/M/t",)),
]  # fmt: skip
