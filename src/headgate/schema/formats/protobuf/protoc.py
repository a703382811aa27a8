"""protoc, the compiler of .proto files, run inside this process.

In: the text of a file and of the files that it refers to. Out: descriptors with comments. The compiler is the one of
grpcio-tools. Its C++ code reads files only, so each call writes a temporary folder; a small file takes about 1 ms.

Two entries of `grpc_tools._protoc_compiler` are used. `get_protos` reports errors as data, but gives no comments.
`run_main` gives descriptors with comments, but prints what it finds to the terminal, so that it is called only when
there is nothing to find. The public `grpc_tools.protoc` is not imported, because it changes `sys.meta_path`.

C++ code that runs inside this process can hang or crash it: 100,000 reserved numbers take a minute, and an option value
of 100,000 nested braces overflows the stack. Texts that are large enough for that are compiled by a child process.
"""

from __future__ import annotations

import base64
import binascii
import errno
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from headgate.errors import similar_names
from headgate.schema import errors
from headgate.schema.formats.protobuf.print import print_proto
from headgate.schema.formats.protobuf.write import MAX_MESSAGE_DEPTH

TIMEOUT = 30  # seconds
# What is compiled inside this process: characters, depth and number of braces, files.
_SMALL, _SHALLOW, _FEW_BRACES, _FEW_FILES = 32_768, 64, 2_000, 50
_FEW_PUBLIC_IMPORTS = 8
_SHOWN = 10  # findings beside the first
_NOT_A_FILE_NAME = {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL, errno.EILSEQ}
_CRASHES = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT}  # what a text can cause, by the exit status of the child
_PROTO = Path(__file__).parent / "proto"
_FIRST_LINE = re.compile(r"(?:\s++|//[^\n]*+|/\*.*?\*/)*+(?:syntax|edition)\b", re.DOTALL)
_PROTO2 = 'syntax = "proto2";\n\n'  # protoc prints a warning for a file without such a line
_OWN_NUMBERS = range(19000, 20000)


def read_files(text: str, references: Iterable[tuple[str, str]] = ()) -> list[FileDescriptorProto]:
    """The compiled file, and behind it every file that it imports, also indirectly, each after those that it needs.

    `references` are the names and texts of the files that it may import. Protobuf's own files, `google/type` and
    `confluent` need not be among them. A text may also be the base64 of a serialized descriptor. Descriptors have
    absolute names, and comments unless they are of a file that was not given. Raises a `RefusedProto` or
    `ProtoTooLarge`.
    """
    *imported, own = FileDescriptorSet.FromString(_compile(text, tuple(references))).file
    return [own, *imported]


def proto_text(text: str, references: Iterable[tuple[str, str]] = ()) -> str:
    """The .proto text of a registered schema. If the schema is a descriptor in base64, the descriptor is printed as
    text."""
    file = serialized_descriptor(text)
    if file is None:
        return text
    imports = "".join(f'import "{name}";' for name in file.dependency)
    _, *imported = read_files(f'syntax = "proto3"; {imports}', references)
    return print_proto(file, imported)


def serialized_descriptor(text: str) -> FileDescriptorProto | None:
    """The descriptor that `text` is the base64 of, as confluent_kafka's serialiser registers it; or None."""
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
        file = FileDescriptorProto.FromString(data)
    except (binascii.Error, ValueError, DecodeError):
        return None
    return file if file.message_type or file.enum_type or file.service else None


@lru_cache(maxsize=128)
def _compile(text: str, references: tuple[tuple[str, str], ...]) -> bytes:
    """A serialized `FileDescriptorSet` whose last file is the one that was asked for."""
    given: dict[str, str] = {}
    for name, other in references:
        given[name] = proto_text(other, tuple(given.items()))
    job = _Job.of(proto_text(text, references), given)
    try:
        with tempfile.TemporaryDirectory(prefix="headgate-protoc-") as folder:
            compiled = FileDescriptorSet.FromString(job.run(Path(folder)))
    except OSError as error:
        raise errors.CompilerFailed(f"{error.strerror or type(error).__name__}.") from error
    del compiled.file[-1]  # the file that only imports the one that was asked for
    for file in compiled.file:
        if file.name not in job.texts:
            file.ClearField("source_code_info")
    job.check_numbers(compiled.file[-1])
    return compiled.SerializeToString()


@dataclass(frozen=True, slots=True)
class _Finding:
    """What the compiler found, with its position from 1."""

    file: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.text}"


@dataclass(frozen=True, slots=True)
class _Job:
    """One call of protoc. `shifted` are the files that got an additional first line, `syntax = …`.

    protoc is asked for the file `root`, which does nothing but import the file `own`: it warns of unused imports only
    in the files that it is asked for.
    """

    own: str
    root: str
    texts: Mapping[str, str]
    shifted: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, text: str, given: Mapping[str, str]) -> _Job:
        own = _free("schema.proto", given)
        return cls(own, _free("root.proto", {*given, own}), {**given, own: text})

    def write(self, folder: Path) -> None:
        """A file whose name is no relative path is not written: protoc then says that it does not exist."""
        for name, text in {**self.texts, self.root: f'syntax = "proto3"; import public "{self.own}";'}.items():
            if "\0" in name or "\\" in name or any(part in ("", ".", "..") for part in name.split("/")):
                continue
            plain = text.removeprefix("\ufeff")
            if not _FIRST_LINE.match(plain):
                self.shifted.add(name)
                plain = _PROTO2 + plain
            try:
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(plain.encode("utf-8", "replace"))
            except OSError as error:
                if error.errno not in _NOT_A_FILE_NAME:
                    raise

    def run(self, temporary: Path) -> bytes:
        """A serialized `FileDescriptorSet` with the file `root` at its end. Raises OSError for a full disk and the
        like."""
        from grpc_tools import _protoc_compiler as protoc

        folder, out = temporary / "files", temporary / "descriptors"
        folder.mkdir()
        self.write(folder)
        arguments = [f"-I{path}" for path in (folder, _PROTO, _bundled())]
        arguments += ["--include_imports", "--include_source_info", "--retain_options", f"-o{out}", self.root]
        if not (self._is_small() and self._check_inside(folder)):
            self._run_child(folder, arguments)
        elif protoc.run_main([b"protoc", *(one.encode() for one in arguments)]):
            raise errors.CompilerFailed("It ended without an answer.")
        return out.read_bytes()

    def _size(self) -> int:
        return sum(map(len, self.texts.values()))

    def _is_small(self) -> bool:
        """At these bounds protoc takes less than a second, whatever the texts are, and does not crash."""
        if self._size() > _SMALL or len(self.texts) > _FEW_FILES:
            return False
        if sum(text.count("public") for text in self.texts.values()) > _FEW_PUBLIC_IMPORTS:
            return False  # the time of `get_protos` grows exponentially with them
        braces = sum(text.count("{") + text.count("<") for text in self.texts.values())
        return braces <= _FEW_BRACES and max(map(_depth, self.texts.values())) <= _SHALLOW

    def _check_inside(self, folder: Path) -> bool:
        """Raises what protoc finds. False if it has a mere warning, which `run_main` would print to the terminal."""
        from grpc_tools import _protoc_compiler as protoc

        # Setting a filter again puts it first and does not add another one.
        warnings.filterwarnings("error", category=protoc.ProtocWarning)
        paths = [str(path).encode() for path in (folder, _PROTO, _bundled())]
        try:
            protoc.get_protos(self.own.encode(), paths)
        except protoc.ProtocWarning:
            return False
        except protoc.ProtocErrors as refused:
            self._refuse(
                _Finding(_text(one.filename), one.line + 1, one.column + 1, _text(one.message))
                for one in refused.args[0]
            )
        return True

    def _run_child(self, folder: Path, arguments: Sequence[str]) -> None:
        """Compile in a process of its own, which may hang or crash."""
        command = [sys.executable, "-m", "grpc_tools.protoc", *arguments]
        try:
            done = subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=False)
        except subprocess.TimeoutExpired:
            raise errors.ProtoTooLarge(self._size(), TIMEOUT) from None
        if done.returncode:
            self._refuse(_printed(_text(done.stderr), folder))
            if done.returncode in _CRASHES:
                raise errors.ProtoTooLarge(self._size(), TIMEOUT)
            raise errors.CompilerFailed("It ended without an answer.")

    def check_numbers(self, file: FileDescriptorProto) -> None:
        """protoc refuses the numbers that Protobuf keeps for itself only in the files that it is asked for."""
        wrong = {path: number for path, number in _numbers(file) if number in _OWN_NUMBERS}
        reason = "field number {} is reserved for the protocol buffer library implementation"
        self._refuse(
            _Finding(self.own, one.span[0] + 1, one.span[1] + 1, reason.format(wrong[tuple(one.path)]))
            for one in (file.source_code_info.location if wrong else ())
            if tuple(one.path) in wrong
        )

    def _refuse(self, found: Iterable[_Finding]) -> None:
        """Raise the first finding as an error of ours, with the others in its detail."""
        findings = list(map(self._normalised, found))
        broken = {one.file for one in findings if not _is_missing(one)}
        kept = [one for one in findings if not _is_missing(one) and not (_imported(one) in broken and len(broken) > 1)]
        if kept:
            kept.sort(key=lambda one: (one.file != self.own, one.file, one.line, one.column))
            others = tuple(map(str, kept[1 : _SHOWN + 1]))
            raise self._error(kept[0], others)

    def _normalised(self, one: _Finding) -> _Finding:
        """The finding with the line of the text as it was given, and with our kind of message."""
        line = one.line - _PROTO2.count("\n") if one.file in self.shifted else one.line
        text = one.text.strip().removesuffix(".")
        text = text[:1].lower() + text[1:] if text[1:2].islower() else text
        return _Finding(one.file, max(line, 1), max(one.column, 1), text)

    def _error(self, one: _Finding, others: tuple[str, ...]) -> errors.RefusedProto:
        """The error of ours for a finding. The compiler's texts are the only way to tell them apart."""
        position = (one.file, one.line, one.column)
        if name := _imported(one):
            problem = f'file "{name}" imported by "{one.file}" does not exist'
            known = (*self.texts, *_well_known_names())
            return errors.MissingImport(*position, problem, others, name, similar_names(name, known))
        if found := re.match(r'"([^"]+)" (?:is not defined|is resolved to|seems to be defined)', one.text):
            similar = similar_names(found[1].removeprefix("."), self._types(one.file))
            return errors.UnresolvedProtoType(*position, one.text, others, found[1], similar)
        if found := re.match(r'option "([^"]+)" unknown', one.text):
            problem = f'option "{found[1]}" does not exist'
            return errors.UnknownProtoOption(
                *position, problem, others, found[1], similar_names(found[1], _option_names())
            )
        if "maximum recursion limit" in one.text:
            return errors.ProtoTooDeep(*position, "message is nested too deeply", (), MAX_MESSAGE_DEPTH)
        return errors.MalformedProto(*position, one.text, others)

    def _types(self, name: str) -> Iterator[str]:
        """The messages and enums that a file may use, as it may write them."""
        text = self.texts.get(name, "")
        yield from re.findall(r"\b(?:message|enum)\s+(\w+)", text)
        for imported in re.findall(r'\bimport\s+(?:public\s+)?"([^"\\]+)"', text):
            other = self.texts.get(imported) or _well_known_text(imported)
            package = re.search(r"\bpackage\s+([\w.]+)", other)
            prefix = f"{package[1]}." if package else ""
            yield from (prefix + found for found in re.findall(r"\b(?:message|enum)\s+(\w+)", other))


def _bundled() -> Path:
    """The folder of Protobuf's own files."""
    import grpc_tools

    return Path(grpc_tools.__path__[0]) / "_proto"


def _well_known_names() -> list[str]:
    return [str(path.relative_to(root)) for root in (_PROTO, _bundled()) for path in root.rglob("*.proto")]


def _well_known_text(name: str) -> str:
    if name not in _well_known_names():
        return ""
    return next(path.read_text("utf-8") for root in (_PROTO, _bundled()) if (path := root / name).exists())


def _option_names() -> list[str]:
    from google.protobuf import descriptor_pb2

    kinds = ("FileOptions", "MessageOptions", "FieldOptions", "OneofOptions", "EnumOptions", "EnumValueOptions")
    return [name for kind in kinds for name in getattr(descriptor_pb2, kind).DESCRIPTOR.fields_by_name]


def _is_missing(one: _Finding) -> bool:
    """The finding in the missing file itself. Another one, in the file that imports it, has the position."""
    return one.text == "file not found" or one.text.endswith("not allowed in the virtual path")


def _imported(one: _Finding) -> str:
    found = re.fullmatch(r'import "(.*)" was not found or had errors', one.text)
    return found[1] if found else ""


def _printed(lines: str, folder: Path) -> Iterator[_Finding]:
    """The findings that a child process printed. Warnings are left out."""
    for line in lines.replace(f"{folder}/", "").splitlines():
        found = re.fullmatch(r"([^:]+):(?:(\d+):(\d+):)? (?!warning: )(.*)", line)
        if found:
            yield _Finding(found[1], int(found[2] or 1), int(found[3] or 1), found[4])


def _numbers(file: FileDescriptorProto) -> Iterator[tuple[tuple[int, ...], int]]:
    """The number of every field and extension, by the path of its declaration."""
    yield from (((7, n), one.number) for n, one in enumerate(file.extension))
    waiting: list[tuple[tuple[int, ...], DescriptorProto]] = [((4, n), one) for n, one in enumerate(file.message_type)]
    while waiting:
        path, message = waiting.pop()
        yield from (((*path, 2, n), one.number) for n, one in enumerate(message.field) if not message.options.map_entry)
        yield from (((*path, 6, n), one.number) for n, one in enumerate(message.extension))
        waiting += [((*path, 3, n), one) for n, one in enumerate(message.nested_type)]


def _depth(text: str) -> int:
    """How deep brackets are nested. Those in strings count too, which does no harm."""
    return max(
        max(accumulate(1 if one == pair[0] else -1 for one in re.findall(f"[{pair}]", text)), default=0)
        for pair in ("{}", "<>")
    )


def _free(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name = f"_{name}"
    return name


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
