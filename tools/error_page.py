"""The page of errors: message, cause and cure of every code, from the classes and their templates."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
import string

import headgate
from headgate.cli.main import EXIT_STATUS
from headgate.errors import HeadgateError

FAMILIES = {
    "SQL": (
        "the text of a statement",
        "The text cannot be read, or a query does not fit the relations that it reads. Nothing was changed. The error "
        "shows the line with a caret under the part that is wrong. SQL-01 is about characters and strings, SQL-02 about "
        "the grammar, SQL-03 about stored statements, SQL-04 about queries.",
    ),
    "SCH": (
        "schemas, types and values",
        "A type, a schema or a value cannot be used. Paths begin with `$`, the root. SCH-01 is about Headgate's types, "
        "SCH-02 about Avro and JSON Schema, SCH-03 about Protobuf, SCH-04 about targets.",
    ),
    "PLN": (
        "plans",
        "The statement is well formed, and what it asks for cannot be done. Nothing was changed. PLN-01 is about any "
        "statement, PLN-02 about sources, PLN-03 about sinks, PLN-04 about answers from outside, PLN-05 about scripts "
        "for apply, PLN-06 about materialized views.",
    ),
    "CAT": (
        "the catalog",
        "A name does not lead to an object, or the catalog's file cannot be used. CAT-01 is about names, CAT-02 about "
        "dependencies, CAT-03 about the file, CAT-04 about its only writer, CAT-05 about secrets.",
    ),
    "CON": (
        "connections",
        "A system outside does not answer as needed. CON-01 is about options of connections, CON-02 about Kafka.",
    ),
    "RUN": (
        "running tasks and queries",
        "Something went wrong while data flowed. RUN-01 is about records and topics, RUN-02 about tasks, RUN-03 about "
        "Spark and the engine, RUN-040 about requests to the engine, RUN-041 about materialized views. Errors of records name topic, partition and offset, never the content.",
    ),
    "REG": (
        "the schema registry",
        "REG-01 is about schemas, REG-021 and REG-022 about answers of a registry, REG-020 about frames of records, "
        "REG-023 about the way to a registry. Headgate's own registry answers with REG-03; its clients get the HTTP "
        "status and the error code that Confluent's registry gives.",
    ),
    "WLD": (
        "the embedded world",
        "The services for tests and demos cannot be started or used. WLD-01 is about Java and jars, WLD-02 about the "
        "world's folder, WLD-03 about services, WLD-04 about the process that looks after them.",
    ),
    "CLI": (
        "the command line",
        "CLI-01 is about the way to an engine, CLI-02 about settings, CLI-03 about scripts, CLI-04 about specs.",
    ),
    "INT": ("Headgate itself", "These are not about your input."),
}

_INTRO = """Every error has a code that never changes, a message, and where it helps a detail and a hint. Below, words in angle
brackets or italics stand for values of the case at hand. Values of records and secrets never appear in an error.

| family | about | exit status of the command line |
|---|---|---|
"""


CURE = "\n\nCure: "  # begins the last paragraph of a docstring


def error_classes() -> dict[str, type[HeadgateError]]:
    """All errors of the product by code. Fails if two classes share a code."""
    for module in pkgutil.walk_packages(headgate.__path__, "headgate."):
        if module.name.endswith("errors"):
            importlib.import_module(module.name)
    classes = sorted((cls for cls in _subclasses(HeadgateError) if cls.code), key=lambda cls: cls.code)
    by_code = {cls.code: cls for cls in classes}
    twice = [cls.code for cls in classes if by_code[cls.code] is not cls]
    assert not twice, f"two errors have the code {', '.join(twice)}"
    return by_code


def error_page() -> str:
    classes = error_classes()
    parts = ["# Errors\n\n", _INTRO]
    for family, (title, _) in FAMILIES.items():
        parts.append(f"| {family} | {title} | {EXIT_STATUS.get(family, 1)} |\n")
    for family, (title, introduction) in FAMILIES.items():
        parts.append(f"\n## {family}: {title}\n\n{introduction}\n")
        parts += [_entry(cls) for code, cls in classes.items() if code.startswith(family)]
    return "".join(parts)


def cause(cls: type[HeadgateError]) -> str | None:
    """What the docstring says before the cure. A dataclass without one has its signature there."""
    doc = " ".join(inspect.cleandoc(cls.__doc__ or "").partition(CURE)[0].split())
    return None if doc.startswith(f"{cls.__name__}(") else doc or None


def cure(cls: type[HeadgateError]) -> str | None:
    """What the user can do, as a template."""
    similar = "Write a name that exists. The hint lists similar ones." if hasattr(cls, "similar") else None
    written = " ".join(inspect.cleandoc(cls.__doc__ or "").partition(CURE)[2].split())
    return cls.HINT or written or similar


def _entry(cls: type[HeadgateError]) -> str:
    lines = [
        f"- **Message:** `{_filled(cls, cls.MESSAGE, '<{}>')}`",
        f"- **Cause:** {_escaped(cause(cls) or '')}",
        f"- **Cure:** {_prose(cls, cure(cls) or '')}",
    ]
    if status := getattr(cls, "status", None):
        lines.append(f"- **Answer:** HTTP {status}, error code {getattr(cls, 'registry_code', status)}")
    if cls.retryable and not cls.code.startswith("WLD"):
        lines.append("- **Retry:** a task that meets this error is tried again by itself.")
    return f"\n### {cls.code}\n\n" + "\n".join(lines) + "\n"


def _prose(cls: type[HeadgateError], template: str) -> str:
    """A template as Markdown. Parts between backticks stay as they are."""
    marked = _escaped(_filled(cls, template, "\0{}\0")).split("`")
    return "`".join(
        part.replace("\0", "") if index % 2 else re.sub(r"\0(.*?)\0", r"*\1*", part)
        for index, part in enumerate(marked)
    )


def _escaped(text: str) -> str:
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*_<\[\\])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def _filled(cls: type[HeadgateError], template: str, shape: str) -> str:
    """The template with a readable word for each value."""
    fields = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    text = ""
    for literal, name, spec, _ in string.Formatter().parse(template):
        text += literal
        if name is None:
            continue
        if name not in fields and text[-1:] not in ("", " ", '"', "("):
            text += " …"  # A property that follows without a blank is a part that is not always there.
        else:
            text += _placeholder(name, spec or "", shape)
    return text


def _placeholder(name: str, spec: str, shape: str) -> str:
    word = re.sub(r"s?\[0\]$", "", name).rpartition(".")[2].replace("_", " ")
    if "|" in spec:
        return f"{shape.format(word)} {spec.split('|')[1]}"
    listed = spec.split()[-1:] != [] and spec.split()[-1] in {"list", "or", "and", "path", "clauses", "lines"}
    return shape.format(f"{word}, …" if listed else word)


def _subclasses(cls: type[HeadgateError]) -> list[type[HeadgateError]]:
    found = []
    for sub in cls.__subclasses__():
        if sub.__module__.startswith("headgate."):
            found += [sub, *_subclasses(sub)]
    return found
