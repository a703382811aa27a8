"""Printing and storing a statement, and reading it back, is the identity."""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from headgate.catalog.store.codec import from_json, to_json
from headgate.sql.errors import InvalidStatementJson
from headgate.sql.script import parse_script, parse_statement
from headgate.sql.show import AboutObject
from headgate.sql.statement import Alter, Create, Statement, print_statement
from tests.sql.strategies import STATEMENTS, statements

pytestmark = pytest.mark.unit

EXAMPLES = int(os.environ.get("HEADGATE_EXAMPLES", "20"))  # for each statement class

# Building a strategy for all statements is slow the first time, and statements are large values.
thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


def _subclasses(cls: type[Statement]) -> Iterator[type[Statement]]:
    for found in cls.__subclasses__():
        # A dataclass with slots is made twice; the first is not in its module.
        if getattr(sys.modules[found.__module__], found.__name__) is found:
            yield found
        yield from _subclasses(found)


def test_every_statement_class_has_a_strategy() -> None:
    assert set(STATEMENTS) == set(_subclasses(Statement)) - {Alter, Create, AboutObject}


@pytest.mark.parametrize("cls", STATEMENTS, ids=lambda cls: cls.__name__)
@thorough
@given(data=st.data())
def test_what_is_printed_is_read_back_as_the_same_statement(cls: type[Statement], data: st.DataObject) -> None:
    statement = data.draw(STATEMENTS[cls])
    text = print_statement(statement)
    assert text.endswith(";")
    read = parse_statement(text)
    assert read == statement
    assert print_statement(read) == text


@settings(thorough, max_examples=3 * EXAMPLES)
@given(statement=statements)
def test_what_is_stored_as_json_is_read_back_as_the_same_statement(statement: Statement) -> None:
    stored = json.loads(json.dumps(to_json(statement)))
    assert from_json(stored) == statement


@settings(thorough, max_examples=2 * EXAMPLES)
@given(script=st.lists(statements, max_size=4))
def test_a_script_of_printed_statements_is_read_back_with_their_places(script: list[Statement]) -> None:
    text = "\n".join(print_statement(statement) for statement in script)
    read = parse_script(text)
    assert read == tuple(script)
    assert [text[s.span.start : s.span.end] + ";" for s in read] == [print_statement(statement) for statement in script]


@settings(thorough, max_examples=EXAMPLES)
@given(statement=statements)
def test_statements_pickle_and_hash(statement: Statement) -> None:
    copied = pickle.loads(pickle.dumps(statement))
    assert copied == statement
    assert hash(copied) == hash(statement)


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        ({"node": "CreateUnicorn"}, "there is no node 'CreateUnicorn'"),
        ({}, "there is no node None"),
        ({"node": "Subscribe"}, "node Subscribe lacks 'relation'"),
        ({"node": "ShowSearchPath", "colour": 1}, "node ShowSearchPath does not know 'colour'"),
        ({"node": "Identifier", "name": "a", "quoted": False}, "it is not a statement"),
    ],
)
def test_a_stored_statement_of_another_version_is_refused(stored: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidStatementJson) as caught:
        from_json(stored)  # type: ignore[arg-type]  # deliberately not what it takes
    assert caught.value.reason == reason


def test_a_stored_statement_without_a_newer_field_takes_its_default() -> None:
    stored = to_json(parse_statement("DESCRIBE t"))
    del stored["extended"]
    assert from_json(stored) == parse_statement("DESCRIBE t")
