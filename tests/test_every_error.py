"""What holds for all errors of the product: how they read, that they cross processes, and that a test provokes each."""

from __future__ import annotations

import ast
import dataclasses
import pickle
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import get_type_hints

import pytest

from headgate.errors import ErrorGroup, HeadgateError, InternalError
from headgate.registry.errors import Fault
from headgate.registry.server.errors import Refusal
from tools.error_page import FAMILIES, cause, cure, error_classes

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parent.parent
ERRORS = error_classes()
BY_NAME = {f"{cls.__module__}.{cls.__name__}": cls for cls in ERRORS.values()}
REFUSALS = [cls for cls in ERRORS.values() if issubclass(cls, Refusal)]
CODE = re.compile(r"\b[A-Z]{3}-\d{4}\b")
MENTION = re.compile(rf"errors import|import \w*errors|{CODE.pattern}|\(\d{{3}}, \d+\)")
SAMPLES: dict[object, object] = {
    str: "x",
    bool: True,
    int: 7,
    int | None: 8,
    str | None: "word",
    datetime: datetime(2026, 11, 17, tzinfo=UTC),
    tuple[str, ...]: ("first", "second"),
    tuple[str, ...] | None: ("first", "second"),
    tuple[int, ...]: (1, 2),
    tuple[tuple[str, str], ...]: (("view", "v"), ("sink", "s")),
    tuple[tuple[str, str, str], ...]: (("view", "v", "It is gone."), ("sink", "s", "It has no key.")),
    tuple[Fault, ...]: (Fault("$.a", "it is no type"), Fault("$.b", "it is no type")),
    tuple[HeadgateError, ...]: (InternalError("a"), InternalError("b")),
}


def _sample(cls: type[HeadgateError]) -> HeadgateError:
    types = get_type_hints(cls)
    fields = {field.name: SAMPLES[types[field.name]] for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    return cls(**fields | ({"most": 2} if "most" in fields else {}))


def _wrong(pattern: str, *texts: str | None) -> list[str]:
    return [text for text in texts if text is not None and not re.fullmatch(pattern, text)]


def test_every_error_has_a_cause_and_a_cure_in_whole_sentences() -> None:
    for code, cls in ERRORS.items():
        assert cause(cls), code
        assert cure(cls), code
        assert _wrong(r"[A-Z].*\.", cause(cls)) == [], code
        assert _wrong(r"(?s)[A-Z{].*[.?…}]", cls.DETAIL, cls.HINT, cure(cls)) == [], code


def test_every_message_is_one_line_without_a_full_stop() -> None:
    for code, cls in ERRORS.items():
        assert re.fullmatch(rf"({'|'.join(FAMILIES)})-\d{{4}}", code)
        assert _wrong(r"[^\n]*[^.\n]", _sample(cls).message()) == [], code


def test_every_error_crosses_processes() -> None:
    for cls in ERRORS.values():
        sample = _sample(cls)
        assert pickle.loads(pickle.dumps(sample)).diagnostic() == sample.diagnostic()


def test_every_error_is_provoked_by_a_test_or_a_spec() -> None:
    """A class counts if a test expects it by its code or by the class: a class that a test only makes does not count."""
    expected = {code for path in _texts() for code in CODE.findall(path.read_text())}
    lists = {Path(__file__).name, "test_golden.py"}  # which list codes without provoking them
    for nodes in _modules("tests", lists):
        made = _made(nodes)
        expected |= {code for node, code in _named(nodes) if id(node) not in made}
        expected |= set(_codes(nodes))
    assert sorted(set(ERRORS) - expected) == []


def test_every_error_is_raised_by_the_product() -> None:
    found = set()
    for nodes in _modules("src/headgate", {"errors.py"}):
        # A class that is assigned is that of a subclass, whose base class makes the error.
        made = _made(nodes) | {id(node.value) for node in nodes if isinstance(node, ast.Assign)}
        found |= {code for node, code in _named(nodes) if id(node) in made}
    assert sorted(set(ERRORS) - found - {ErrorGroup.code}) == []  # `raise_all` makes it beside its class


def _texts() -> list[Path]:
    return [*ROOT.glob("specs/**/*.spec"), *ROOT.glob("tests/**/golden/*.txt")]


def _modules(folder: str, without: set[str]) -> Iterator[list[ast.AST]]:
    """The nodes of every module that may name an error."""
    for path in ROOT.glob(f"{folder}/**/*.py"):
        text = path.read_text()
        if path.name not in without and MENTION.search(text):
            yield list(ast.walk(ast.parse(text)))


def _named(nodes: list[ast.AST]) -> Iterator[tuple[ast.expr, str]]:
    """Every expression that is an error class, such as ``UnknownColumn`` or ``errors.UnknownColumn``."""
    imported = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in nodes:
        if isinstance(node, ast.Name):
            name = imported.get(node.id, "")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{imported.get(node.value.id)}.{node.attr}"
        else:
            continue
        if name in BY_NAME:
            yield node, BY_NAME[name].code


def _made(nodes: list[ast.AST]) -> set[int]:
    """Expressions that are called or raised, by identity."""
    calls = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return calls | {id(node.exc) for node in nodes if isinstance(node, ast.Raise)}


def _codes(nodes: list[ast.AST]) -> Iterator[str]:
    """Codes in strings, and the registry's answers by status and code, such as ``(404, 40401)``."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from CODE.findall(node.value)
        elif isinstance(node, ast.Tuple):
            answer = tuple(getattr(item, "value", None) for item in node.elts)
            yield from (cls.code for cls in REFUSALS if (cls.status, cls.registry_code) == answer)
