"""Events as lines of JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from headgate.errors import Diagnostic
from headgate.serve.errors import (
    UnreadableEvent,
)
from headgate.serve.protocol import (
    Column,
    Columns,
    Done,
    Event,
    Failed,
    Notice,
    Progress,
    Rows,
    Value,
    read_event,
    write_event,
)

pytestmark = pytest.mark.unit

text = st.text(st.characters(exclude_categories=["Cs"]))
values: st.SearchStrategy[Value] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
rows = st.lists(st.lists(values, max_size=3).map(tuple), max_size=3).map(tuple)
optional = st.none() | text
diagnostics = st.builds(
    Diagnostic,
    text,
    text,
    optional,
    optional,
    st.none() | st.integers(1, 9),
    st.none() | st.integers(1, 9),
    optional,
)
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(Notice, text),
    st.builds(Progress, text, st.none() | st.integers(0)),
    st.builds(Columns, st.lists(st.builds(Column, text, text), max_size=3).map(tuple)),
    st.builds(Rows, rows),
    st.builds(Done, text),
    st.builds(Failed, diagnostics),
)


@given(events)
def test_an_event_is_one_line_and_reads_back_as_it_was(event: Event) -> None:
    line = write_event(event)
    assert read_event(line) == event
    assert line.count(b"\n") == 1


def test_events_have_the_form_that_other_programs_read() -> None:
    assert json.loads(write_event(Columns((Column("id", "bigint"),)))) == {
        "event": "columns",
        "columns": [{"name": "id", "type": "bigint"}],
    }
    assert json.loads(write_event(Rows(((2**63, "x", None),)))) == {
        "event": "rows",
        "rows": [[2**63, "x", None]],
    }
    assert json.loads(write_event(Failed(Diagnostic("SQL-0103", "no", hint="Say yes.", line=2)))) == {
        "event": "error",
        "code": "SQL-0103",
        "message": "no",
        "hint": "Say yes.",
        "line": 2,
    }


@pytest.mark.parametrize("line", ["no json", "[]", '{"event": "applause"}', '{"event": "rows", "rows": [1]}', "{}"])
def test_a_line_that_is_no_event_is_an_error(line: str) -> None:
    with pytest.raises(UnreadableEvent):
        read_event(line)


def test_members_that_are_not_known_are_ignored() -> None:
    assert read_event('{"event": "done", "tag": "DROP SINK", "took": 5}') == Done("DROP SINK")


def test_half_of_a_surrogate_pair_is_written_as_an_escape() -> None:
    line = write_event(Notice("a\ud800"))
    assert line == b'{"event":"notice","message":"a\\ud800"}\n'
    assert read_event(line) == Notice("a\ud800")
