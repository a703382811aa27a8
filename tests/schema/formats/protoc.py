"""The real protoc, as the oracle for everything that reads .proto text."""

from __future__ import annotations

import functools
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

BUNDLED = pathlib.Path(grpc_tools.__file__).parent / "_proto"


class Refused(Exception):
    """What protoc says of a file that it does not take."""


def compile_files(files: Mapping[str, str]) -> dict[str, FileDescriptorProto]:
    """The descriptors that protoc makes of these texts, by file name, with comments."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return _run(list(files), (pathlib.Path(folder), BUNDLED))


def refused(files: Mapping[str, str]) -> set[str]:
    """The names of those files that protoc complains of."""
    imports = (
        f'import "{name}";' for name in files
    )  # protoc stops at the first file, but reads all imports of it
    try:
        compile_files({"all.proto": "\n".join(('syntax = "proto3";', *imports)), **files})
    except Refused as error:
        lines = [line for line in str(error).split("\n") if "warning:" not in line.lower()]
        return {name for name in files if any(f"/{name}:" in line for line in lines)}
    return set()


@functools.cache
def compile_bundled() -> dict[str, FileDescriptorProto]:
    """Likewise for the files that come with protoc."""
    names = [str(path.relative_to(BUNDLED)) for path in sorted(BUNDLED.rglob("*.proto"))]
    return _run(names, (BUNDLED,))


def _run(names: list[str], folders: tuple[pathlib.Path, ...]) -> dict[str, FileDescriptorProto]:
    with tempfile.NamedTemporaryFile() as out:
        command = [sys.executable, "-m", "grpc_tools.protoc", "--include_source_info", "--retain_options"]
        command += [f"-I{folder}" for folder in folders] + [f"-o{out.name}", *names]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Refused(done.stderr)
        return {file.name: file for file in FileDescriptorSet.FromString(out.read()).file}


def without_places(file: FileDescriptorProto) -> FileDescriptorProto:
    """The file without name, positions and comments."""
    made = FileDescriptorProto()
    made.CopyFrom(file)
    made.ClearField("source_code_info")
    made.ClearField("name")
    return made


def comments(file: FileDescriptorProto) -> list[tuple[object, ...]]:
    """Every comment with the path of its declaration, whatever the order."""
    return sorted(
        (tuple(at.path), at.leading_comments, at.trailing_comments, tuple(at.leading_detached_comments))
        for at in file.source_code_info.location
        if at.leading_comments or at.trailing_comments or at.leading_detached_comments
    )
