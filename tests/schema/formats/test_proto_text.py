"""Reading and printing .proto text, held against protoc itself."""

from __future__ import annotations

import pathlib
import pickle
import re

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.type import (
    calendar_period_pb2,
    date_pb2,
    datetime_pb2,
    dayofweek_pb2,
    decimal_pb2,
    fraction_pb2,
    interval_pb2,
    latlng_pb2,
    money_pb2,
    month_pb2,
    timeofday_pb2,
)
from headgate.schema.formats.proto_text import parse_proto, resolve
from headgate.schema.formats.proto_text.literals import json_name, map_entry_name
from headgate.schema.formats.proto_text.well_known import well_known
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import ErrorGroup
from headgate.schema.errors import SchemaError
from headgate.schema.formats.protobuf.errors import (
    InvalidProto,
    MalformedProto,
    MissingImport,
    ProtoTooDeep,
    UnknownProtoOption,
    UnresolvedProtoType,
)
from headgate.schema.formats.protobuf.print import print_proto
from tests.laws import examples
from tests.schema.formats import protoc
from tests.schema.formats.proto_texts import proto_text, strewn, with_one_wrong_word
from tests.schema.formats.protoc import comments, without_places

pytestmark = pytest.mark.unit

CORPUS = sorted(pathlib.Path(__file__).with_name("proto_files").glob("*.proto"))
OURS = "(of.our.own)"  # options on these lines are not known to protoc


def _without_ours(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if OURS not in line)


# Against protoc


@pytest.mark.parametrize("name", sorted(protoc.compile_bundled()))
def test_the_files_that_come_with_protoc_give_its_descriptors_and_comments(name: str) -> None:
    parsed = parse_proto((protoc.BUNDLED / name).read_text(encoding="utf-8"))
    expected = protoc.compile_bundled()
    resolved = resolve(parsed, list(expected.values()))
    assert without_places(resolved) == without_places(expected[name])
    assert comments(resolved) == comments(expected[name])


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_every_construct_gives_the_descriptors_and_comments_of_protoc(path: pathlib.Path) -> None:
    text = _without_ours(path.read_text(encoding="utf-8"))
    expected = protoc.compile_files({path.name: text})[path.name]
    resolved = resolve(parse_proto(text), [])
    assert without_places(resolved) == without_places(expected)
    assert comments(resolved) == comments(expected)


def test_random_files_give_the_descriptors_and_comments_of_protoc() -> None:
    texts = {f"f{seed}.proto": proto_text(seed, f"p{seed}.q") for seed in range(120)}
    texts |= {f"s{seed}.proto": strewn(proto_text(seed, f"s{seed}"), seed) for seed in range(120)}
    for name, expected in protoc.compile_files(texts).items():
        resolved = resolve(parse_proto(texts[name]), [])
        assert without_places(resolved) == without_places(expected), texts[name]
        assert comments(resolved) == comments(expected), texts[name]


def test_an_imported_type_is_found_as_protoc_finds_it() -> None:
    texts = {
        "a.proto": 'syntax = "proto3"; package x.y; message A { message In {} } enum E { Z = 0; }',
        "b.proto": 'syntax = "proto3"; package x; import public "a.proto"; message y2 {}',
        "c.proto": 'syntax = "proto3"; package x.z; import "b.proto"; message C { y.A a = 1; x.y.A.In b = 2; y.E e = 3; .x.y2 d = 4;'
        " message A { C c = 1; } A own = 5; string Z = 6; }",
    }
    expected = protoc.compile_files(texts)
    parsed = {name: parse_proto(text) for name, text in texts.items()}
    for name, file in parsed.items():
        file.name = name
    for name, file in parsed.items():
        assert without_places(resolve(file, list(parsed.values()))) == without_places(expected[name])


def test_derived_names_are_those_of_protoc() -> None:
    names = ["a_b", "_a", "a__b", "aB", "A_b", "a_", "a1_2b", "__", "URL_x"]
    messages = [f"message M{i} {{ map<string, string> {name} = 1; }}" for i, name in enumerate(names)]
    compiled = protoc.compile_files({"n.proto": 'syntax = "proto3"; ' + "\n".join(messages)})["n.proto"]
    assert [json_name(name) for name in names] == [
        message.field[0].json_name for message in compiled.message_type
    ]
    assert [map_entry_name(name) for name in names] == [
        message.nested_type[0].name for message in compiled.message_type
    ]


@pytest.mark.parametrize(
    "module",
    [
        calendar_period_pb2,
        date_pb2,
        datetime_pb2,
        dayofweek_pb2,
        decimal_pb2,
        fraction_pb2,
        interval_pb2,
        latlng_pb2,
        money_pb2,
        month_pb2,
        timeofday_pb2,
    ],
    ids=lambda module: module.DESCRIPTOR.name,
)
def test_our_files_of_google_type_are_the_published_ones(module: object) -> None:
    published = FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)  # type: ignore[attr-defined]
    ours = resolve(well_known()[published.name], [])
    published.ClearField("options")
    for message in (*ours.message_type, *published.message_type):
        for field in message.field:
            field.ClearField("json_name")
    assert without_places(ours) == without_places(published)


# Printing


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_a_printed_file_is_read_as_the_same_with_its_comments(path: pathlib.Path) -> None:
    parsed = parse_proto(path.read_text(encoding="utf-8"))
    again = parse_proto(print_proto(parsed))
    assert without_places(again) == without_places(parsed)
    assert comments(again) == comments(parsed)
    assert print_proto(again) == print_proto(parsed)


@pytest.mark.parametrize("name", sorted(protoc.compile_bundled()))
def test_a_compiled_file_without_positions_prints_to_text_that_means_the_same(name: str) -> None:
    compiled = FileDescriptorProto()
    compiled.CopyFrom(protoc.compile_bundled()[name])
    compiled.ClearField("source_code_info")
    again = resolve(parse_proto(print_proto(compiled)), list(protoc.compile_bundled().values()))
    assert without_places(again) == without_places(compiled)


@given(st.integers(0, 10**6))
@examples(25)
def test_printing_and_reading_are_inverse(seed: int) -> None:
    parsed = parse_proto(strewn(proto_text(seed, "p"), seed))
    again = parse_proto(print_proto(parsed))
    assert without_places(again) == without_places(parsed)
    assert comments(again) == comments(parsed)


@given(st.integers(0, 10**6))
@examples(15)
def test_a_resolved_file_prints_and_resolves_to_itself(seed: int) -> None:
    resolved = resolve(parse_proto(proto_text(seed, "p")), [])
    again = resolve(parse_proto(print_proto(resolved)), [])
    assert without_places(again) == without_places(resolved)


def test_a_file_prints_in_the_order_it_was_written() -> None:
    text = """syntax = "proto3";

package p;

// what comes first
enum First {
  A = 0;
}

/* a block */
message Second {
  int32 x = 1; // trails

  message Inner {
    int32 y = 1;
  }

  // leads z
  Inner z = 2;
  oneof either {
    string s = 3;
    bytes t = 4;
  }

  map<string, Inner> m = 5;
}
"""
    assert print_proto(parse_proto(text)) == text.replace("  oneof", "\n  oneof")


# What we take that protoc alone cannot


def test_custom_options_are_kept_as_they_are_written() -> None:
    text = """
        syntax = "proto2";
        option (a.b).c = -1; option (.d) = "x\\001" 'y'; option (e) = 1e3; option (f) = -inf; option (g) = IDENT;
        message M { optional int32 x = 1 [(h) = { p: [1, 2] q { r: "}" } // gone
          s: 1 }, (i).(j.k) = 18446744073709551615]; }"""
    parsed = parse_proto(text)
    assert [option.name[0].name_part for option in parsed.options.uninterpreted_option] == [
        "a.b",
        ".d",
        "e",
        "f",
        "g",
    ]
    first, second = parsed.message_type[0].field[0].options.uninterpreted_option
    assert first.aggregate_value.split() == ["p:", "[1,", "2]", "q", "{", "r:", '"}"', "}", "s:", "1"]
    assert second.positive_int_value == 2**64 - 1
    assert without_places(parse_proto(print_proto(parsed))) == without_places(parsed)


def test_custom_options_of_a_compiled_file_are_printed_if_their_extension_is_known() -> None:
    meta = print_proto(well_known()["confluent/meta.proto"])
    own = """syntax = "proto3"; package p; import "google/protobuf/descriptor.proto"; import "confluent/meta.proto";
        extend google.protobuf.FieldOptions { string unit = 50001; repeated int32 codes = 50002; }
        option (confluent.file_meta).doc = "a file";
        message M { int32 x = 1 [(unit) = "kg", (codes) = 1, (codes) = -2, (confluent.field_meta) = { tags: "PII" }]; }"""
    compiled = protoc.compile_files({"own.proto": own, "confluent/meta.proto": meta})["own.proto"]
    text = print_proto(compiled)
    assert '(p.unit) = "kg", (p.codes) = 1, (p.codes) = -2' in text
    assert '(confluent.field_meta) = { tags: "PII" }' in text
    again = protoc.compile_files({"own.proto": text, "confluent/meta.proto": meta})["own.proto"]
    assert without_places(again) == without_places(compiled)


def test_confluent_and_google_type_files_need_not_be_given() -> None:
    text = """syntax = "proto3"; import "confluent/meta.proto"; import "confluent/type/decimal.proto";
        import "google/type/date.proto";
        message M { confluent.type.Decimal d = 1; google.type.Date e = 2; .confluent.Meta m = 3; }"""
    resolved = resolve(parse_proto(text), [])
    names = [field.type_name for field in resolved.message_type[0].field]
    assert names == [".confluent.type.Decimal", ".google.type.Date", ".confluent.Meta"]


# Errors


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [
        ('syntax = "proto4";', 1, 10, '"proto2" or "proto3"'),
        ('edition = "1999";', 1, 11, "an edition that is known, such as 2023"),
        ("syntax proto3;", 1, 8, '"="'),
        ("message {", 1, 9, "a message name"),
        ("message M {\n  int32 x = 1;\n}", 2, 3, '"required", "optional" or "repeated"'),
        ('syntax = "proto3";\nmessage M { int32 x; }', 2, 20, "the field's number"),
        ('syntax = "proto3"; message M { int32 x = 1 }', 1, 44, '";"'),
        ('syntax = "proto3"; message M { int32 x = 99999999999; }', 1, 42, "an integer of at most 2147483647"),
        ('syntax = "proto3"; message M {', 1, 31, "a type name"),
        ('syntax = "proto3"; message M { repeated map<string, string> x = 1; }', 1, 41, "a map without label, outside of oneof and extend"),
        ('syntax = "proto3"; message M { oneof o { repeated int32 x = 1; } }', 1, 42, "a field without label, as a oneof has it"),
        ('option java_package = "x', 1, 23, "the string to be closed on its line"),
        ('option java_package = "\\q";', 1, 23, "a string with valid escape sequences"),
        ('option java_package = "\\xff";', 1, 23, "a string of valid UTF-8"),
        ("option java_package = 3;", 1, 23, "a string"),
        ("option java_multiple_files = 1;", 1, 30, "true or false"),
        ("option deprecated = true; option deprecated = true;", 1, 47, 'option "deprecated" to be set once'),
        ("/* never closed", 1, 1, 'the comment to be closed with "*/"'),
        ("/* a /* b */", 1, 6, 'no "/*" inside a block comment'),
        ("message M { optional int32 x = 08; }", 1, 32, "an octal number after the leading zero"),
        ("message M { optional int32 x = 1a; }", 1, 33, "a space after the number"),
        ("message Größe {}", 1, 11, "a printable ASCII character"),
        ("message M { optional uint32 x = 1 [default = -1]; }", 1, 46, "an integer"),
        ("message M { optional group g = 1 {} }", 1, 28, "a group name that starts with a capital letter"),
        ("}", 1, 1, 'a statement such as "message"'),
        ("\x00", 1, 1, "a printable ASCII character"),
    ],
)  # fmt: skip
def test_a_malformed_text_says_where_and_what_was_expected(
    text: str, line: int, column: int, expected: str
) -> None:
    with pytest.raises(MalformedProto) as caught:
        parse_proto(text)
    assert (caught.value.line, caught.value.column, caught.value.expected) == (line, column, expected)


def test_a_malformed_text_reads_as_a_sentence() -> None:
    with pytest.raises(MalformedProto) as caught:
        parse_proto("message M {\n  optional int32 = 1;\n}")
    assert caught.value.message() == (
        'malformed .proto text at line 2, column 18: expected a field name, found "="'
    )
    assert pickle.loads(pickle.dumps(caught.value)).message() == caught.value.message()


def test_deep_nesting_is_refused_and_does_not_overflow_the_stack() -> None:
    with pytest.raises(ProtoTooDeep):
        parse_proto("message M { " * 10_000)
    parsed = parse_proto("message M { " * 31 + "}" * 31)
    assert without_places(parse_proto(print_proto(parsed))) == without_places(parsed)
    with pytest.raises(MalformedProto):
        parse_proto('syntax = "proto3"; option (a) = ' + "{" * 10_000)


def test_an_unknown_option_names_the_near_ones() -> None:
    with pytest.raises(UnknownProtoOption) as caught:
        parse_proto("message M { option deprecate = true; }")
    assert caught.value.similar == ("deprecated",)
    assert caught.value.hint() == 'Did you mean "deprecated"?'


def test_an_unknown_type_names_its_place_and_the_near_ones() -> None:
    with pytest.raises(UnresolvedProtoType) as caught:
        resolve(parse_proto("package p; message Item {} message M { optional Itme x = 1; }"), [])
    assert (caught.value.path, caught.value.name, caught.value.similar) == ("p.M.x", "Itme", ("p.Item",))


def test_a_type_of_a_file_that_is_not_imported_is_not_seen() -> None:
    with pytest.raises(UnresolvedProtoType):
        resolve(parse_proto("message M { optional google.protobuf.Any x = 1; }"), [])


def test_an_import_that_nobody_has_is_named() -> None:
    with pytest.raises(MissingImport) as caught:
        resolve(parse_proto('import "google/protobuf/timestmp.proto";'), [])
    assert caught.value.similar[0] == "google/protobuf/timestamp.proto"


BROKEN_RULES = [
    ("message M { optional int32 a = 1; optional int32 b = 1; }", "M.b"),
    ("message M { optional int32 a = 1; optional int64 a = 2; }", "M.a"),
    ("message M {} message M {}", "M"),
    ("message M { optional int32 a = 5; reserved 1 to 9; }", "M.a"),
    ('message M { optional int32 a = 5; reserved "a"; }', "M.a"),
    ('message M { reserved "a", "a"; }', "M"),
    ("message M { reserved 5, 4 to 6; }", "M"),
    ("message M { optional int32 a = 0; }", "M.a"),
    ("message M { optional int32 a = 19000; }", "M.a"),
    ("message M { optional int32 a = 536870912; }", "M.a"),
    ("message M { optional int32 a = 100; extensions 100 to max; }", "M.a"),
    ("message M { optional string a = 1 [packed = true]; }", "M.a"),
    ("message M { repeated int32 a = 1 [default = 1]; }", "M.a"),
    ("message M { map<double, string> a = 1; }", "M.AEntry"),
    ("message M { oneof o {} }", "M.o"),
    ('syntax = "proto3"; message M { int32 a_b = 1; int32 aB = 2; }', "M.aB"),
    ('syntax = "proto3"; message M { required int32 a = 1; }', "M.a"),
    ('syntax = "proto3"; message M { extensions 5 to 9; }', "M"),
    ('syntax = "proto3"; enum E { A = 1; }', "E"),
    ('edition = "2023"; enum E { A = 1; }', "E"),
    ('edition = "2023"; message M { int32 a_b = 1; int32 aB = 2; }', "M.aB"),
    ("enum E { A = 1; B = 1; }", "E.B"),
    ("enum E { A = 1; reserved 1; }", "E.A"),
    ('enum E { A = 1; reserved "A"; }', "E.A"),
    ("enum E { }", "E"),
    ("enum E { A = 0; } enum F { A = 0; }", "A"),
    ('import "google/protobuf/any.proto"; import "google/protobuf/any.proto";', "google/protobuf/any.proto"),
    ("message M { optional M.x x = 1; }", "M.x"),
    ("enum E { A = 0; } service S { rpc R(E) returns (E); }", "S.R"),
]  # fmt: skip


def test_the_broken_rules_are_those_of_protoc() -> None:
    files = {}
    for index, (text, _) in enumerate(BROKEN_RULES):
        first = re.match('(syntax|edition) = "[a-z0-9]+";', text)
        head = first.group() if first else ""
        files[f"broken{index}.proto"] = f"{head} package p{index}; {text.removeprefix(head)}"
    fine = {"fine.proto": "message M { optional M m = 1; }"}
    late = {
        name: text for name, text in files.items() if "19000" in text
    }  # found only in a file that is compiled
    assert protoc.refused({**files, **fine}) == set(files) - set(late)
    with pytest.raises(protoc.Refused):
        protoc.compile_files(late)


@pytest.mark.parametrize(("text", "path"), BROKEN_RULES, ids=[text for text, _ in BROKEN_RULES])
def test_a_broken_rule_is_refused_with_its_path(text: str, path: str) -> None:
    with pytest.raises((InvalidProto, ErrorGroup)) as caught:
        resolve(parse_proto(text), [])
    errors = caught.value.errors if isinstance(caught.value, ErrorGroup) else (caught.value,)
    assert path in [error.path for error in errors if isinstance(error, InvalidProto)]


def test_a_file_with_one_wrong_word_is_refused_if_and_only_if_protoc_refuses_it() -> None:
    files = {f"m{seed}.proto": with_one_wrong_word(proto_text(seed, f"m{seed}"), seed) for seed in range(300)}
    refused = set()
    for name, text in files.items():
        try:
            resolve(parse_proto(text), [])
        except (SchemaError, ErrorGroup):
            refused.add(name)
    assert refused == protoc.refused(files)
    assert 200 < len(refused) < 300


@given(st.integers(0, 400), st.data())
@examples(40)
def test_no_text_raises_anything_but_our_own_errors(seed: int, data: st.DataObject) -> None:
    text = proto_text(seed, "p")
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    made = (
        text[:start]
        + data.draw(st.text(max_size=4) | st.sampled_from(["{", "}", '"', "/*", "//", "9" * 5000]))
        + text[end:]
    )
    try:
        resolve(parse_proto(made), [])
    except (SchemaError, ErrorGroup):
        return
    assert without_places(parse_proto(print_proto(parse_proto(made)))) == without_places(parse_proto(made))


def test_features_of_editions_relax_what_they_name() -> None:
    text = """edition = "2023"; option features.enum_type = CLOSED;
        enum E { A = 1; } message M { option features.json_format = LEGACY_BEST_EFFORT; int32 a_b = 1; int32 aB = 2; }"""
    expected = protoc.compile_files({"e.proto": text})["e.proto"]
    assert without_places(resolve(parse_proto(text), [])) == without_places(expected)


def test_a_proto3_optional_has_a_oneof_of_its_own() -> None:
    message = parse_proto(
        'syntax = "proto3"; message M { optional int32 a = 1; int32 _a = 2; }'
    ).message_type[0]
    assert [oneof.name for oneof in message.oneof_decl] == ["X_a"]
    assert message.field[0].proto3_optional
    assert not message.field[1].HasField("oneof_index")
    assert message.field[0].label == FieldDescriptorProto.LABEL_OPTIONAL
