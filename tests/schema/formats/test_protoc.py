"""Compiling .proto texts inside this process, and printing descriptors as text."""

from __future__ import annotations

import base64
import errno
import pathlib
import pickle
import subprocess
import sys
import threading
from importlib.resources import files

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
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
from grpc_tools import _protoc_compiler
from hypothesis import given, strategies as st

from headgate.schema import errors
from headgate.schema.errors import SchemaError
from headgate.schema.formats.protobuf import print_proto, protoc, read_files
from headgate.schema.formats.protobuf.names import json_name, map_entry_name
from tests.laws import examples
from tests.schema.proto_messages import declared_comments, without_comments

pytestmark = pytest.mark.unit

CORPUS = sorted(pathlib.Path(__file__).with_name("proto_files").glob("*.proto"))
BUNDLED = pathlib.Path(str(files("grpc_tools"))) / "_proto"
OF_PROTOBUF = sorted(str(path.relative_to(BUNDLED)) for path in BUNDLED.rglob("*.proto"))
PROTO3 = 'syntax = "proto3"; '


def refused(text: str, *references: tuple[str, str]) -> errors.RefusedProto:
    with pytest.raises(errors.RefusedProto) as caught:
        read_files(text, references)
    return caught.value


# What we rely on in grpc_tools, whose compiler has no public interface


def test_the_compiler_reports_all_errors_as_data_from_0(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.proto").write_text('syntax = "proto3";\nmessage M { A a = 1; }\nmessage N { B b = 1; }')
    with pytest.raises(_protoc_compiler.ProtocErrors) as caught:
        _protoc_compiler.get_protos(b"a.proto", [bytes(tmp_path)])
    found = [(one.filename, one.line, one.column, one.message) for one in caught.value.args[0]]
    assert found == [(b"a.proto", 1, 12, b'"A" is not defined.'), (b"a.proto", 2, 12, b'"B" is not defined.')]


def test_the_compiler_warns_by_a_warning(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.proto").write_text('syntax = "proto2"; message M { optional int32 a_b = 1; optional int32 aB = 2; }')
    with pytest.raises(_protoc_compiler.ProtocWarning):
        _protoc_compiler.get_protos(b"a.proto", [bytes(tmp_path)])


def test_nothing_is_printed_whatever_is_compiled() -> None:
    """protoc prints to the terminal itself, not through Python, so that only another process can be looked at."""
    script = f"""
from headgate.schema.formats.protobuf import read_files
for text in ({PROTO3!r} + 'import "google/protobuf/any.proto"; message M {{}}', "message M {{}}", "",
             "message M {{ optional int32 a_b = 1; optional int32 aB = 2; }}", "// x", "message", "import 'x';",
             "message M {{}}" * 5000):
    try:
        print(len(read_files(text)))
    except Exception as refused:
        print(type(refused).__name__)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout.split(), done.stderr) == (
        ["2", "1", "1", "1", "1", "MalformedProto", "MissingImport", "MalformedProto"],
        "",
    )


def test_importing_the_mapper_does_not_load_the_compiler() -> None:
    script = "import sys, headgate.registry.schemas; print([name for name in sys.modules if 'grpc' in name])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


# Compiling


def test_a_file_comes_with_all_that_it_imports_and_with_comments_of_the_files_that_were_given() -> None:
    other = f'{PROTO3} package o; import public "google/protobuf/any.proto";\n// A thing\nmessage Thing {{}}'
    text = f'{PROTO3} import "a/other.proto";\n// An M\nmessage M {{ o.Thing x = 1; google.protobuf.Any y = 2; }}'
    own, *imported = read_files(text, [("unused.proto", PROTO3), ("a/other.proto", other)])
    assert [file.name for file in imported] == ["google/protobuf/any.proto", "a/other.proto"]
    assert [field.type_name for field in own.message_type[0].field] == [".o.Thing", ".google.protobuf.Any"]
    assert [declared_comments(file) for file in (own, *imported)] == [
        [((4, 0), " An M\n", "")],
        [],
        [((4, 0), " A thing\n", "")],
    ]


def test_a_file_without_syntax_is_proto2_and_keeps_its_lines_and_comments() -> None:
    own = read_files("// An M\nmessage M { optional int32 x = 1; }")[0]
    assert (own.syntax, declared_comments(own)) == ("", [((4, 0), " An M\n", "")])
    assert (refused("/* x */\nmessage {").line, refused("// syntax\nmessage {").column) == (2, 9)


def test_a_text_with_warnings_and_a_large_one_are_compiled_all_the_same() -> None:
    warned = read_files("message M { optional int32 a_b = 1; optional int32 aB = 2; }")[0]
    assert len(warned.message_type[0].field) == 2
    fields = " ".join(f"int32 field_{number} = {number};" for number in range(1, 5000))
    assert len(read_files(f"{PROTO3} message M {{ {fields} }}")[0].message_type[0].field) == 4999
    late = refused(f"{PROTO3} message M {{ {fields}\nOther x = 5001; }}")
    assert (late.line, late.column, late.problem) == (2, 1, '"Other" is not defined')


def test_a_serialized_descriptor_is_compiled_like_its_text() -> None:
    other = 'syntax = "proto2"; package o; import "google/protobuf/descriptor.proto"; message T {} extend google.protobuf.FieldOptions { optional string unit = 50001; }'
    text = f'{PROTO3} import "o.proto"; message M {{ map<string, o.T> x = 1 [(o.unit) = "kg"]; message N {{}} }}'
    own, *imported = read_files(text, [("o.proto", other)])
    in_base64 = [base64.b64encode(file.SerializeToString()).decode() for file in (own, imported[-1])]
    again = read_files(in_base64[0], [("o.proto", in_base64[1])])
    assert [without_comments(file) for file in again] == [without_comments(file) for file in (own, *imported)]


def test_many_threads_compile_at_once() -> None:
    found: list[str] = []

    def compile_some(thread: int) -> None:
        compiled = (read_files(f"{PROTO3} message M{thread}_{number} {{}}")[0] for number in range(20))
        found.extend(file.message_type[0].name for file in compiled)

    threads = [threading.Thread(target=compile_some, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(f"M{thread}_{number}" for thread in range(4) for number in range(20))


@pytest.mark.parametrize(
    "module",
    [
        calendar_period_pb2, date_pb2, datetime_pb2, dayofweek_pb2, decimal_pb2, fraction_pb2, interval_pb2,
        latlng_pb2, money_pb2, month_pb2, timeofday_pb2,
    ],
    ids=lambda module: module.DESCRIPTOR.name,
)  # fmt: skip
def test_our_files_of_google_type_are_the_published_ones(module: object) -> None:
    published = FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)  # type: ignore[attr-defined]
    ours = read_files(f'{PROTO3} import "{published.name}";')[-1]
    published.ClearField("options")
    for message in (*ours.message_type, *published.message_type):
        for field in message.field:
            field.ClearField("json_name")
    assert without_comments(ours) == without_comments(published)


def test_derived_names_are_those_of_protoc() -> None:
    names = ["a_b", "_a", "a__b", "aB", "A_b", "a_", "a1_2b", "__", "URL_x"]
    messages = [f"message M{i} {{ map<string, string> {name} = 1; }}" for i, name in enumerate(names)]
    compiled = read_files(PROTO3 + "\n".join(messages))[0].message_type
    assert [json_name(name) for name in names] == [message.field[0].json_name for message in compiled]
    assert [map_entry_name(name) for name in names] == [message.nested_type[0].name for message in compiled]


# Printing


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_a_printed_file_compiles_to_the_same_and_prints_as_the_same(path: pathlib.Path) -> None:
    own, *imported = read_files(path.read_text(encoding="utf-8"))
    text = print_proto(own, imported)
    again = read_files(text)[0]
    assert without_comments(again) == without_comments(own)
    assert print_proto(again, imported) == text


@pytest.mark.parametrize("name", OF_PROTOBUF)
def test_the_files_that_come_with_protoc_print_to_text_that_means_the_same(name: str) -> None:
    text = (BUNDLED / name).read_text(encoding="utf-8")
    others = [(other, (BUNDLED / other).read_text(encoding="utf-8")) for other in OF_PROTOBUF]
    own, *imported = read_files(text, others)
    again = read_files(print_proto(own, imported), others)[0]
    assert without_comments(again) == without_comments(own)


def test_comments_are_printed_with_what_they_belong_to() -> None:
    text = f"""{PROTO3.strip()}

// leads M
message M {{ // trails M
  // leads x
  int32 x = 1; // trails x

  // two lines
  // that lead o
  oneof o {{
    string s = 2;
  }}
}}

enum E {{
  A = 0; // trails A
}}
"""
    assert print_proto(read_files(text)[0]) == text


def test_a_message_keeps_its_index_among_those_made_for_maps_and_groups() -> None:
    text = """syntax = "proto2"; message M { message A {} map<string, A> b = 1; message C {}
        optional group D = 2 { message E {} } repeated C f = 3; map<string, C> g = 4; message H {} }"""
    own = read_files(text)[0]
    assert [nested.name for nested in own.message_type[0].nested_type] == [
        "A",
        "BEntry",
        "C",
        "D",
        "GEntry",
        "H",
    ]
    assert without_comments(read_files(print_proto(own))[0]) == without_comments(own)


# What is refused


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("syntax proto3;", 1, 8, 'expected "="'),
        ("message M {\n  optional int32 = 1;\n}", 2, 18, "expected field name"),
        (f"{PROTO3} message M {{ int32 x = 1; int32 y = 1; }}", 1, 56, 'field number 1 has already been used in "M" by field "x". Next available field number is 2'),
        (f"{PROTO3} message M {{\n int32 y = 19000; }}", 2, 2, "field number 19000 is reserved for the protocol buffer library implementation"),
        ("enum E { }", 1, 6, "enums must contain at least one value"),
        ("message Größe {}", 1, 11, "interpreting non ascii codepoint 195"),
        ("\0", 1, 1, "invalid control characters encountered in text"),
    ],
)  # fmt: skip
def test_a_malformed_text_says_where_and_why(text: str, line: int, column: int, problem: str) -> None:
    found = refused(text)
    assert type(found) is errors.MalformedProto
    assert (found.file, found.line, found.column, found.problem) == ("schema.proto", line, column, problem)
    assert found.message() == f"schema.proto:{line}:{column}: {problem}"
    assert pickle.loads(pickle.dumps(found)).message() == found.message()


def test_all_findings_are_told_at_once() -> None:
    found = refused(f"{PROTO3} message M {{\n A a = 1;\n B b = 2; }}")
    assert found.message() == 'schema.proto:2:2: "A" is not defined'
    assert found.detail() == 'schema.proto:3:2: "B" is not defined'


def test_unknown_names_come_with_the_near_ones() -> None:
    other = ("other.proto", f"{PROTO3} package o; message Thing {{}}")
    local = refused(f"{PROTO3} message Item {{}} message M {{ Itme x = 1; }}")
    imported = refused(f'{PROTO3} import "other.proto"; message M {{ o.Thnig x = 1; }}', other)
    hidden = refused(f"{PROTO3} message M {{ google.protobuf.Any x = 1; }}")
    assert [(type(one), one.hint()) for one in (local, imported, hidden)] == [
        (errors.UnresolvedProtoType, 'Did you mean "Item"?'),
        (errors.UnresolvedProtoType, 'Did you mean "o.Thing"?'),
        (errors.UnresolvedProtoType, "Import the file that defines it, or register it as a reference."),
    ]
    missing = refused(f'{PROTO3} import "google/protobuf/timestmp.proto";')
    assert missing.problem == 'file "google/protobuf/timestmp.proto" imported by "schema.proto" does not exist'
    assert (missing.hint() or "").startswith('Did you mean "google/protobuf/timestamp.proto"')
    option = refused("message M { option deprecate = true; }")
    assert isinstance(option, errors.UnknownProtoOption)
    assert (option.problem, option.hint()) == (
        'option "deprecate" does not exist',
        'Did you mean "deprecated"?',
    )


def test_an_error_in_a_reference_names_its_file_and_line() -> None:
    found = refused(f'{PROTO3} import "other.proto";', ("other.proto", f"{PROTO3}\nmessage M {{ X x = 1; }}"))
    assert (found.message(), found.others) == ('other.proto:2:13: "X" is not defined', ())


@pytest.mark.parametrize("name", ["../a.proto", "/etc/passwd", "a//b.proto", "./a.proto", "a\\b.proto", "x" * 5000])
def test_an_import_that_is_no_relative_path_does_not_exist(name: str) -> None:
    found = refused(f'{PROTO3} import "{name.replace(chr(92), chr(92) * 2)}";', (name, PROTO3))
    assert isinstance(found, errors.MissingImport)


def test_files_that_import_each_other_are_refused() -> None:
    circle = ("a.proto", f'{PROTO3} import "b.proto";'), ("b.proto", f'{PROTO3} import "a.proto";')
    assert "recursively imports itself" in refused(f'{PROTO3} import "a.proto";', *circle).problem


def test_deep_nesting_is_refused() -> None:
    assert isinstance(refused("message M { " * 10_000), errors.ProtoTooDeep)
    deep = read_files("message M { " * 31 + "}" * 31)[0]
    assert without_comments(read_files(print_proto(deep))[0]) == without_comments(deep)


def test_a_full_disk_is_no_verdict_on_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'syntax = "proto3"; message Kept { int32 a = 1; }'

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, "write_bytes", full)
        with pytest.raises(errors.CompilerFailed) as raised:
            read_files(text)
    assert raised.value.retryable
    assert not isinstance(raised.value, SchemaError)
    assert raised.value.detail() == "No space left on device."
    assert read_files(text)[0].message_type[0].name == "Kept"


def test_many_public_imports_are_compiled_by_a_child_process() -> None:
    """Inside the process the time doubles with every second file of such a chain: 26 files take seconds, 40 hours."""
    references = [("f0.proto", 'syntax = "proto3"; message M0 {}')]
    for n in range(1, 40):
        imports = "".join(f'import public "f{m}.proto";' for m in range(max(0, n - 2), n))
        references.append((f"f{n}.proto", f'syntax = "proto3"; {imports} message M{n} {{}}'))
    text = 'syntax = "proto3"; import "f39.proto"; message M { M39 m = 1; M0 n = 2; }'
    assert len(read_files(text, references)) == 41


def test_a_reference_may_have_the_name_of_any_file() -> None:
    references = [(".descriptors/x.proto", 'syntax = "proto3"; message X {}')]
    files = read_files('syntax = "proto3"; import ".descriptors/x.proto"; message M { X x = 1; }', references)
    assert files[0].message_type[0].field[0].type_name == ".X"


def test_a_text_that_would_crash_or_hang_the_compiler_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protoc, "TIMEOUT", 3)
    recursive = "message M { M m = 1; } extend google.protobuf.MessageOptions { M x = 50000; }"
    deep = "{" + "m{" * 100_000 + "}" * 100_000 + "}"
    crash = f'{PROTO3} import "google/protobuf/descriptor.proto"; {recursive} message N {{ option (x) = {deep}; }}'
    slow = f"{PROTO3} message M {{ reserved {','.join(str(2 * n + 1) for n in range(100_000))}; }}"
    for text in (crash, slow):
        with pytest.raises(errors.ProtoTooLarge):
            read_files(text)


@given(st.data())
@examples(30)
def test_no_text_raises_anything_but_our_own_errors(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(CORPUS)).read_text(encoding="utf-8")
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    odd = st.text(max_size=4) | st.sampled_from(["{", "}", '"', "/*", "//", "9" * 5000, "\ud800"])
    try:
        own, *imported = read_files(text[:start] + data.draw(odd) + text[end:])
    except SchemaError:
        return
    assert without_comments(read_files(print_proto(own, imported))[0]) == without_comments(own)
