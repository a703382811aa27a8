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

from headgate.errors import HeadgateError, InternalError
from headgate.registry.errors import Fault
from headgate.registry.server.errors import Refusal
from tools.error_page import FAMILIES, cause, cure, error_classes

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parent.parent
ERRORS = error_classes()
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
        assert _wrong(r"(?s)[A-Z{].*[.?…}]", cls.DETAIL, cls.HINT, cls.CURE) == [], code


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
    expected = set(_codes_in_specs()) | {code for path in _tests() for code in _expected_by(path)}
    assert sorted(set(ERRORS) - expected) == []


def _codes_in_specs() -> Iterator[str]:
    for path in (*ROOT.glob("specs/**/*.spec"), *ROOT.glob("tests/**/golden/*.txt")):
        yield from re.findall(r"\b[A-Z]{3}-\d{4}\b", path.read_text())


def _tests() -> list[Path]:
    """All but the two files that list codes without provoking them."""
    return [
        path
        for path in ROOT.glob("tests/**/*.py")
        if path.name not in {Path(__file__).name, "test_golden.py"}
    ]


def _expected_by(path: Path) -> Iterator[str]:
    """Codes in strings, classes that are named without being called, as in ``pytest.raises(UnknownColumn)``, and
    answers of the registry by status and code, as in ``(404, 40401)``."""
    tree = ast.parse(path.read_text())
    names = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\b[A-Z]{3}-\d{4}\b", node.value)
        elif isinstance(node, ast.Tuple):
            yield from _refusals([getattr(item, "value", None) for item in node.elts])
        elif isinstance(node, ast.Name) and id(node) not in called:
            yield from _code(*names.get(node.id, ("", "")))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and id(node) not in called:
            module, name = names.get(node.value.id, ("", ""))
            yield from _code(f"{module}.{name}", node.attr)


def _code(module: str | None, name: str) -> Iterator[str]:
    yield from (c.code for c in ERRORS.values() if (c.__module__, c.__name__) == (module, name))


def _refusals(answer: list[object]) -> Iterator[str]:
    refusals = (cls for cls in ERRORS.values() if issubclass(cls, Refusal))
    yield from (cls.code for cls in refusals if [cls.status, cls.registry_code] == answer)
