"""The shell of `headgate sql`: its parts, and the whole of it with typed input."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from headgate.cli.shell import (
    KEYWORDS,
    Names,
    RedactedHistory,
    Shell,
    SqlCompleter,
    highlight,
    history_file,
    is_complete,
    read_names,
    statement_of,
)
from headgate.serve.client import EngineClient
from tests.serve.client_helpers import engine_in_thread

pytestmark = pytest.mark.unit

NAMES = Names(
    {
        "orders": "source",
        "big_orders": "view",
        "sales.items": "view",
        '"Odd Name"': "view",
        "kafka": "connection",
    },
    {"orders": ("id", "item"), "sales.items": ("price", '"Unit"')},
)


def _completed(text: str) -> list[str]:
    found = SqlCompleter(NAMES).get_completions(Document(text), CompleteEvent())
    return [one.text for one in found]


# history


def test_a_secret_is_not_in_the_history(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "history"
    history = RedactedHistory(str(file))
    history.append_string("CREATE SECRET pw AS 'hunter2';")
    history.append_string("CREATE CONNECTION c TO POSTGRES (URL 'postgresql://me:hunter2@host/db');")
    history.append_string("SELECT 'visible';")
    kept = file.read_text()
    assert "hunter2" not in kept
    assert "CREATE SECRET pw AS '*******';" in kept
    assert "SELECT 'visible';" in kept


def test_a_secret_in_a_statement_that_is_not_closed_is_not_in_the_history(tmp_path: Path) -> None:
    file = tmp_path / "history"
    RedactedHistory(str(file)).append_string("create secret pw as 'hunter2")
    assert "hunter2" not in file.read_text()


def test_only_the_owner_can_read_the_history(tmp_path: Path) -> None:
    file = tmp_path / "history"
    RedactedHistory(str(file)).append_string("SELECT 1;")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_history_is_in_the_project_or_for_another_engine_in_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert history_file(tmp_path, None) == tmp_path / ".headgate" / "history"
    assert history_file(tmp_path, "http://host:1") == tmp_path / "state" / "headgate" / "history"


# completion


def test_keywords_are_completed_in_the_case_they_are_begun_in() -> None:
    assert "SELECT" in _completed("SEL")
    assert "select" in _completed("sel")


def test_objects_columns_and_keywords_are_completed() -> None:
    assert _completed("SELECT * FROM or")[0] == "orders"
    assert {"orders", "or", "order"} <= set(_completed("SELECT * FROM or")) | {"or"}
    assert "item" in _completed("SELECT it")


def test_behind_a_dot_come_the_columns_of_the_relation_and_the_objects_of_the_schema() -> None:
    assert _completed("SELECT orders.") == ["id", "item"]
    assert _completed("SELECT ORDERS.it") == ["item"]
    assert _completed("SELECT * FROM sales.") == ["items"]
    assert _completed("SELECT sales.items.") == ["price", '"Unit"']
    assert _completed("SELECT nothing.") == []


def test_a_name_that_needs_quotes_is_completed_with_them() -> None:
    assert _completed('SELECT * FROM "Od') == ['"Odd Name"']


def test_nothing_typed_completes_nothing() -> None:
    assert _completed("") == []


def test_words_of_statements_options_and_queries_are_keywords() -> None:
    assert {"CREATE", "SOURCE", "REGISTRY", "ENVELOPE", "UPSERT", "BROKER", "GROUP", "LINEAGE"} <= KEYWORDS
    assert all(word.isupper() for word in KEYWORDS)


# input


@pytest.mark.parametrize("text", ["", "  \n", "SELECT 1;", "SELECT 1; -- done", "a;\nb;", "\\d orders", "\\q", "-- hi"])
def test_whole_input_is_sent(text: str) -> None:
    assert is_complete(text)


@pytest.mark.parametrize("text", ["SELECT 1", "SELECT ';", "SELECT 1 -- ;", "a; b", "/* ;", 'SELECT ";'])
def test_input_that_goes_on_is_not_sent(text: str) -> None:
    assert not is_complete(text)


@given(st.text(alphabet=st.characters(exclude_characters="\n\r")))
def test_colours_change_no_text(line: str) -> None:
    assert "".join(part[1] for part in highlight(line)) == line


def test_keywords_strings_numbers_and_comments_have_colours() -> None:
    styles = {part[1]: part[0] for part in highlight("SELECT 'x', 12, name -- why") if part[1].strip(" ,")}
    assert all(styles[part] for part in ("SELECT", "'x'", "12", "-- why"))
    assert styles["name"] == ""


# shortcuts


def test_shortcuts_stand_for_statements() -> None:
    assert statement_of("\\d") == "SHOW OBJECTS;"
    assert statement_of("\\d sales.items;") == "DESCRIBE sales.items;"
    assert statement_of(" \\t ") == "SHOW TASKS;"
    assert statement_of("\\t sales") is None
    assert statement_of("SELECT 1;") is None


@pytest.fixture
def client(tmp_path: Path) -> Iterator[EngineClient]:
    with engine_in_thread(tmp_path) as opened:
        yield opened


def _typed(client: EngineClient, tmp_path: Path, *lines: str) -> bool:
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text("".join(f"{line}\r" for line in lines))
        return Shell(client, tmp_path / "history").run()


def test_a_statement_goes_over_lines_until_its_semicolon(
    client: EngineClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _typed(client, tmp_path, "CREATE VIEW v AS", "SELECT 1 AS a;", "\\d v", "\\q") is True
    shown = capsys.readouterr().out
    assert "CREATE VIEW\n" in shown
    assert "a     integer" in shown


def test_an_error_does_not_end_the_shell_and_looking_changes_nothing(
    client: EngineClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _typed(client, tmp_path, "DESCRIBE nosuch;", "", ";", "\\?", "SHOW VIEWS;", "\\q") is False
    shown = capsys.readouterr()
    assert 'error CAT-0101: object "nosuch" does not exist' in shown.err
    assert "(0 rows)" in shown.out


def test_help_and_unknown_commands_print_a_text(
    client: EngineClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _typed(client, tmp_path, "\\?", "\\zap now", "\\q")
    shown = capsys.readouterr().out
    assert "\\d name" in shown
    assert 'unknown command "\\zap"; \\? lists all commands' in shown


def test_ctrl_c_discards_the_input_and_ctrl_d_quits(
    client: EngineClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _typed(client, tmp_path, "CREATE VIEW v AS\x03SHOW TYPES;", "\x04") is False
    assert "(0 rows)" in capsys.readouterr().out


def test_the_shell_keeps_no_secret(client: EngineClient, tmp_path: Path) -> None:
    _typed(client, tmp_path, "CREATE SECRET s AS 'hunter2';", "\\q")
    kept = (tmp_path / "history").read_text()
    assert "CREATE SECRET s AS '*******';" in kept
    assert "hunter2" not in kept


def test_names_are_read_with_their_columns(client: EngineClient) -> None:
    list(client.run('CREATE SCHEMA s; CREATE VIEW v AS SELECT 1 AS a, 2 AS "B c"; CREATE VIEW s.w AS SELECT 1 AS z'))
    names = read_names(client)
    assert (names.objects["v"], names.objects["s.w"]) == ("view", "view")
    assert names.columns == {"v": ("a", '"B c"'), "s.w": ("z",)}
