"""Steps of SQL against an engine that answers from a script."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from headgate.embedded.world import World
from headgate.errors import HeadgateError
from headgate.serve.protocol import Column, Columns, Done, Event, Notice, Rows
from headgate.testing import statements
from headgate.testing.actions import check_call
from headgate.testing.context import SpecContext, Variables
from headgate.testing.errors import Mismatch, StepFailed, UnknownVariable
from headgate.testing.parse import parse_spec
from headgate.testing.run import run_step
from headgate.testing.statements import matches, statement_kind
from tests.testing.fake_engine import Answer, FakeEngine, failure, result, run_fake_engine

pytestmark = pytest.mark.unit


def _run_steps(text: str, answer: Answer, timeout: float = 0.6, context: SpecContext | None = None) -> FakeEngine:
    with run_fake_engine(answer) as engine:
        used = context or _context(engine, timeout)
        used.engine = engine
        for step in parse_spec("a.spec", text, check_call).steps:
            run_step(step, used)
    return engine


def _context(engine: FakeEngine, timeout: float) -> SpecContext:
    """None of these steps looks at the world."""
    variables = Variables()
    variables.set("seed", "s1234567")
    return SpecContext(engine, cast(World, None), Path(), Path(), variables, timeout)


def _fails(text: str, answer: Answer) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        _run_steps(text, answer)
    return caught.value


def _in_turn(*answers: Sequence[Event]) -> Answer:
    """The first answer first; the last one from then on."""
    waiting = list(answers)
    return lambda sql: waiting.pop(0) if len(waiting) > 1 else waiting[0]


def test_a_query_is_retried_until_it_matches() -> None:
    answers = _in_turn(failure("RUN-1", "not yet"), result({"a": "bigint"}), result({"a": "bigint"}, (1,)))
    engine = _run_steps("> SELECT a FROM t_${seed};\n1\n", answers, 5)
    assert engine.asked == ["SELECT a FROM t_s1234567;"] * 3


def test_a_query_that_never_matches_fails_at_the_time_out_with_a_diff() -> None:
    began = time.monotonic()
    error = _fails("> SHOW SOURCES;\nx\n", lambda sql: result({"name": "text"}, ("y",)))
    assert isinstance(error, Mismatch)
    assert error.detail() == "--- expected\n+++ actual\n-x\n+y"
    assert 0.5 < time.monotonic() - began < 5


def test_ddl_is_run_once() -> None:
    with run_fake_engine(lambda sql: failure("CAT-0001", "it exists", hint="Drop it.")) as engine:
        context = _context(engine, 5)
        [step] = parse_spec("a.spec", "> CREATE VIEW v AS SELECT 1;\n", check_call).steps
        with pytest.raises(StepFailed) as caught:
            run_step(step, context)
    assert len(engine.asked) == 1
    assert "error CAT-0001: it exists" in str(caught.value.detail())
    assert "hint: Drop it." in str(caught.value.detail())


def test_order_counts_only_where_the_query_itself_has_one() -> None:
    two = result({"a": "bigint"}, (2,), (1,))
    _run_steps("> SELECT a FROM t;\n1\n2\n", lambda sql: two)
    _run_steps("> SELECT row_number() OVER (ORDER BY a) FROM (SELECT 1 ORDER BY 1);\n1\n2\n", lambda sql: two)
    assert isinstance(_fails("> SELECT a FROM t ORDER BY a;\n1\n2\n", lambda sql: two), Mismatch)


@pytest.mark.parametrize(
    ("sql", "is_query", "is_endless"),
    [
        ("select 1;", True, False),
        ("-- c\nWITH a AS (SELECT 1) SELECT * FROM a;", True, False),
        ("(SELECT 1) UNION (SELECT 2);", True, False),
        ("SHOW TASKS;", True, False),
        ("DESCRIBE EXTENDED v;", True, False),
        ("EXPLAIN SELECT 1;", True, False),
        ("CREATE VIEW v AS SELECT 1;", False, False),
        ("INSERT INTO t VALUES (1);", False, False),
        ("DROP VIEW v;", False, False),
        ("SUBSCRIBE v;", False, True),
        ("SELECT * FROM s EMIT CHANGES;", True, True),
        ("SELECT * FROM s EMIT CHANGES LIMIT 2;", True, False),
    ],
)
def test_which_statements_only_look(sql: str, is_query: bool, is_endless: bool) -> None:
    found = statement_kind(sql)
    assert (found.is_query, found.is_endless) == (is_query, is_endless)


def test_a_query_without_end_is_read_until_its_rows_are_there() -> None:
    events: list[Event] = [
        Columns((Column("a", "bigint"),)),
        Rows(((1,),)),
        Notice("more comes"),
        Rows(((2,), (3,))),
        Done(""),
    ]
    _run_steps("> SUBSCRIBE v;\n2\n1\n3\n", lambda sql: events)
    assert isinstance(_fails("> SUBSCRIBE v;\n1\n4\n", lambda sql: events), Mismatch)


def test_checks_of_an_error_look_at_their_parts() -> None:
    events = failure("PLN-0101", 'column "nope" does not exist', "There are 2 columns.", 'Did you mean "price"?')
    checks = 'code: PLN-0101\ncontains: "nope"\ncontains: 2 columns\ncontains: price\ndetail: There are\nhint: "price"'
    _run_steps(f"! SELECT nope FROM t;\n{checks}\n", lambda sql: events)
    _run_steps("! DROP VIEW v;\n", lambda sql: events)


@pytest.mark.parametrize("check", ["code: PLN-01", "contains: NOPE", "detail: price", "hint: 2 columns"])
def test_a_check_that_does_not_hold_shows_the_error(check: str) -> None:
    events = failure("PLN-0101", 'column "nope" does not exist', "There are 2 columns.", 'Did you mean "price"?')
    error = _fails(f"! SELECT nope FROM t;\n{check}\n", lambda sql: events)
    assert check in error.message()
    assert '+error PLN-0101: column "nope" does not exist' in str(error.detail())


def test_a_query_is_retried_until_it_fails_so_and_ddl_is_not() -> None:
    answers = _in_turn(result({"a": "bigint"}, (1,)), failure("X-1", "other"), failure("X-2", "this one"))
    assert len(_run_steps("! SELECT a FROM t;\ncode: X-2\n", answers, 5).asked) == 3
    error = _fails("! DROP VIEW v;\n", lambda sql: [Done("DROP VIEW")])
    assert "had to fail" in error.message()


def _fails_late(text: str, answer: Answer, timeout: float = 60) -> tuple[str, float, list[str]]:
    """The message with which a step fails, after how many seconds, and what the engine was asked."""
    began = time.monotonic()
    [step] = parse_spec("a.spec", text, check_call).steps
    with run_fake_engine(answer) as engine, pytest.raises(HeadgateError) as caught:
        run_step(step, _context(engine, timeout))
    return caught.value.message(), time.monotonic() - began, engine.asked


@pytest.mark.parametrize("start", [">", "!", "?"])
def test_an_error_in_the_text_of_a_statement_is_not_waited_for(start: str) -> None:
    text = f"{start} SELECT a FROM t;\ncode: PLN-0101\n"
    message, seconds, asked = _fails_late(text, lambda sql: failure("SQL-0202", "no such statement"))
    assert "another one" in message if start == "!" else "had to succeed" in message
    assert asked == ["SELECT a FROM t;"]
    assert seconds < 20


@pytest.mark.parametrize("code", ["SQL-0403", "PLN-0101", "CAT-0101", "SCH-0101"])
def test_another_error_from_the_catalog_is_waited_for_until_no_task_has_work(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "SETTLED", 0.3)
    looks = 0

    def answer(sql: str) -> Sequence[Event]:
        nonlocal looks
        if sql != statements.TASKS:
            return failure(code, "does not exist")
        looks += 1
        lag = 5 if looks < 4 else 0
        return result({"name": "text", "state": "text", "lag": "bigint"}, ("t", "running", lag))

    message, seconds, _ = _fails_late("! SELECT a FROM t;\ncode: PLN-9999\n", answer)
    assert "another one" in message
    assert looks >= 4
    assert 0.3 < seconds < 20


def test_another_error_from_the_catalog_that_becomes_the_expected_one_is_awaited() -> None:
    tasks = result({"name": "text", "state": "text", "lag": "bigint"})
    errors = [failure("PLN-0101", "first")] * 4 + [failure("PLN-0102", "then")]
    _run_steps(
        "! SELECT a FROM t;\ncode: PLN-0102\n",
        lambda sql: tasks if sql == statements.TASKS else errors.pop(0),
        30,
    )
    assert errors == []


def test_another_error_from_data_or_services_is_waited_for_until_the_time_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(statements, "SETTLED", 0.0)
    text = "! SELECT a FROM t;\ncode: RUN-0101\n"
    message, seconds, asked = _fails_late(text, lambda sql: failure("CON-0101", "could not connect"), 0.6)
    assert "another one" in message
    assert seconds >= 0.6
    assert set(asked) == {"SELECT a FROM t;"}


def test_printed_text_of_one_column_is_that_column() -> None:
    _run_steps(
        "? EXPLAIN SELECT 1;\nscan\n  filter\n",
        lambda sql: result({"plan": "text"}, ("scan  \n\n  filter\n",)),
    )


def test_printed_text_of_show_create_is_the_statement() -> None:
    events = result({"name": "text", "create_sql": "text"}, ("v", "CREATE VIEW v AS\nSELECT 1;"))
    _run_steps("? SHOW CREATE VIEW v;\nCREATE VIEW v AS\nSELECT 1;\n", lambda sql: events)


def test_printed_text_of_other_results_is_the_table() -> None:
    events = result({"name": "text", "n": "bigint"}, ("a", 10), ("b", None))
    _run_steps("? DESCRIBE v;\nname  n\n----  ------\na         10\n...\n", lambda sql: events)


def test_printed_text_that_differs_is_a_diff() -> None:
    error = _fails("? EXPLAIN SELECT 1;\nscan\n...\nend\n", lambda sql: result({"plan": "text"}, ("scan\nmore",)))
    assert isinstance(error, Mismatch)
    assert error.rewritten == ("scan", "more")


@pytest.mark.parametrize(
    ("expected", "actual", "holds"),
    [
        ("a ... c", "a b b c", True),
        ("a ... c", "a c", True),
        ("... c", "a b c", True),
        ("...", "", True),
        ("a ...", "a", True),
        ("a ... b ... c", "a x b y b z c", True),
        ("a ... c", "a b", False),
        ("a", "a b", False),
        ("a b", "a", False),
        ("", "a", False),
        ("... a", "a b", False),
    ],
)
def test_three_dots_match_any_lines(expected: str, actual: str, holds: bool) -> None:
    assert matches(expected.split(), actual.split()) is holds


def test_variables_are_set_and_used_in_everything_below() -> None:
    text = (
        '$ set a=one b="two words"\n\n> SELECT \'${a} $${x}\';\n"${b}"\n\n'
        "$ set-from-sql n\nSELECT max(x) FROM t;\n\n> SELECT ${n};\n${n}\n"
    )
    engine = _run_steps(text, lambda sql: result({"x": "text"}, ("two words" if "one" in sql else "17",)))
    assert engine.asked == ["SELECT 'one ${x}';", "SELECT max(x) FROM t;", "SELECT 17;"]


def test_a_variable_that_is_not_set_is_reported_with_similar_names() -> None:
    error = _fails("$ set topic=t\n\n> SELECT '${topik}';\n", lambda sql: [])
    assert isinstance(error, UnknownVariable)
    assert error.similar == ("topic",)


def test_a_query_for_a_variable_is_retried_until_it_gives_one_value() -> None:
    answers = _in_turn(result({"x": "bigint"}), result({"x": "bigint"}, (None,)), result({"x": "bigint"}, (5,)))
    engine = _run_steps("$ set-from-sql n\nSELECT x FROM t;\n\n> SELECT ${n};\n", answers, 5)
    assert engine.asked[-1] == "SELECT 5;"


def test_a_file_can_set_its_own_time_out() -> None:
    with run_fake_engine(lambda sql: [Done("")]) as engine:
        context = _context(engine, 60)
        _run_steps("$ set timeout=90s\n\n> DROP VIEW v;\n", lambda sql: [Done("")], context=context)
    assert context.timeout == 90


def test_waiting_until_idle_wants_no_lag_twice_in_a_row() -> None:
    def tasks(*rows: tuple[str, str, int | None]) -> list[Event]:
        return result({"name": "text", "state": "text", "lag": "bigint"}, *rows)

    idle = tasks(("a", "running", 0), ("b", "halted", 7), ("c", "disabled", None))
    answers = _in_turn(
        tasks(("a", "starting", 0)),
        tasks(("a", "running", None)),
        idle,
        tasks(("a", "running", 3)),
        idle,
        idle,
    )
    assert len(_run_steps("$ wait-idle\n", answers, 10).asked) == 6
    _run_steps("$ wait-idle task=a\n", lambda sql: idle)
    assert "b is halted with a lag of 7" in str(_fails("$ wait-idle task=b\n", lambda sql: idle).detail())
    assert "no task d" in str(_fails("$ wait-idle task=d\n", lambda sql: idle).detail())


def test_restart_and_kill_reach_the_engine() -> None:
    assert _run_steps("$ restart\n\n$ kill\n", lambda sql: []).ended == ["restart", "kill"]


def test_http_compares_status_and_a_part_of_the_answer() -> None:
    def answer(sql: str) -> list[Event]:
        return []

    with run_fake_engine(answer) as engine:
        engine.routes = {
            "/api/x?a=b": (200, {"rows": [{"id": 1, "t": "x"}], "more": True}),
            "/api/y": (400, {"path": "$.a"}),
        }
        context = _context(engine, 0.5)
        text = (
            '$ http GET /api/x?a=b token=other\n----\n{"rows": [{"id": 1.0}]}\n\n'
            '$ http POST /api/y status=400\n{"a": 1}\n----\n{"path": "$.a"}\n\n$ http GET /healthz\n'
        )
        for step in parse_spec("a.spec", text, check_call).steps:
            run_step(step, context)
        assert engine.asked[0] == "GET /api/x?a=b Bearer other "
        assert engine.asked[1].endswith('{"a": 1}')
        for error in ('$ http GET /api/x?a=b\n----\n{"rows": []}\n', "$ http POST /api/y\n{}\n"):
            [step] = parse_spec("a.spec", error, check_call).steps
            with pytest.raises(HeadgateError):
                run_step(step, context)
