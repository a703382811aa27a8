"""`headgate sql`, `plan` and `apply` against a running engine, and the shell, typed into."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from headgate.cli.main import headgate
from headgate.cli.shell import Shell, read_names
from headgate.serve.client import EngineClient
from headgate.serve.errors import EngineUnreachable, WrongToken
from headgate.text.errors import InvalidUtf8
from tests.serve.client_helpers import TOKEN, engine_in_thread

pytestmark = pytest.mark.unit

SCRIPT = "CREATE TYPE money AS (amount decimal(10,2));\nCREATE VIEW v AS SELECT 1 AS a;\nCOMMENT ON VIEW v IS 'why';\n"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[EngineClient]:
    with engine_in_thread(tmp_path) as opened:
        yield opened


def _headgate(folder: Path, *arguments: str, typed: str | bytes | None = None) -> Result:
    return CliRunner().invoke(headgate, (*arguments, "--project", str(folder)), input=typed)


def _script(folder: Path, text: str = SCRIPT) -> str:
    (folder / "script.sql").write_text(text)
    return str(folder / "script.sql")


# sql


def test_statements_come_from_the_command_a_file_or_standard_input(
    client: EngineClient, tmp_path: Path
) -> None:
    assert _headgate(tmp_path, "sql", _script(tmp_path)).stdout == "CREATE TYPE\nCREATE VIEW\nCOMMENT\n"
    assert "why" in _headgate(tmp_path, "sql", "-c", "SHOW VIEWS").stdout
    assert "why" in _headgate(tmp_path, "sql", typed="SHOW VIEWS;").stdout
    assert "why" in _headgate(tmp_path, "sql", "-", typed="SHOW VIEWS;").stdout


def test_a_file_and_a_command_are_one_too_many(tmp_path: Path) -> None:
    told = _headgate(tmp_path, "sql", _script(tmp_path), "-c", "SHOW VIEWS")
    assert (told.exit_code, "not both" in told.stderr) == (2, True)


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("SHOW NONSENSE", 10),
        ("DESCRIBE nosuch", 13),
        ("CREATE TABLE t (a int)", 12),
        ("SHOW VIEWS", 0),
        (" ; ", 0),
    ],
)
def test_the_exit_status_tells_the_family_of_the_error(
    client: EngineClient, tmp_path: Path, statement: str, status: int
) -> None:
    assert _headgate(tmp_path, "sql", "-c", statement).exit_code == status


def test_an_error_points_at_its_place_and_shows_no_secret(client: EngineClient, tmp_path: Path) -> None:
    for statement in ("CREATE SECRET s AS 'hunter2'; DROP VIEW nosuch", "CREATE SECRET s 'hunter2'"):
        told = _headgate(tmp_path, "sql", "-c", statement)
        assert "1 | CREATE SECRET s" in told.stderr
        assert "^" in told.stderr
        assert "hunter2" not in told.output


def test_a_script_that_cannot_be_read_needs_no_engine(tmp_path: Path) -> None:
    told = _headgate(tmp_path, "sql", "-c", "SELECT '", "--output", "json")
    assert (told.exit_code, json.loads(told.stdout)["error"]["code"]) == (10, "SQL-0101")
    assert isinstance(_headgate(tmp_path, "sql", typed=b"\xff\xfe").exception, InvalidUtf8)
    assert not (tmp_path / ".headgate").exists()


def test_json_is_one_document_per_statement(client: EngineClient, tmp_path: Path) -> None:
    told = _headgate(tmp_path, "sql", "-c", f"{SCRIPT} SHOW VIEWS", "--output", "json")
    documents = [json.loads(line) for line in told.stdout.splitlines()]
    assert [one["tag"] for one in documents] == ["CREATE TYPE", "CREATE VIEW", "COMMENT", "SHOW"]
    assert documents[-1]["rows"] == [["v", "headgate.public", "why"]]


def test_another_engine_is_reached_by_its_address_and_token(
    client: EngineClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    refused = _headgate(elsewhere, "sql", "-c", "SHOW VIEWS", "--url", client.url)
    assert isinstance(refused.exception, WrongToken)
    monkeypatch.setenv("HEADGATE_TOKEN", TOKEN)
    assert _headgate(elsewhere, "sql", "-c", "SHOW VIEWS", "--url", client.url).exit_code == 0
    for command in ("plan", "apply"):
        assert _headgate(elsewhere, command, _script(elsewhere), "--url", client.url).exit_code == 0


def test_an_address_without_an_engine_is_told(tmp_path: Path) -> None:
    told = _headgate(tmp_path, "sql", "-c", "SHOW VIEWS", "--url", "http://127.0.0.1:1")
    assert isinstance(told.exception, EngineUnreachable)


@pytest.mark.parametrize("url", ["localhost:1", "http://", "http://[", "ftp://host", "http://host:many"])
def test_what_is_no_address_is_wrong_usage(tmp_path: Path, url: str) -> None:
    assert _headgate(tmp_path, "sql", "-c", "SHOW VIEWS", "--url", url).exit_code == 2


# plan and apply


def test_plan_does_nothing_apply_does_and_a_second_apply_has_nothing_to_do(
    client: EngineClient, tmp_path: Path
) -> None:
    script = _script(tmp_path)
    for _ in range(2):
        planned = _headgate(tmp_path, "plan", script, "--output", "json")
        assert [row[2] for row in json.loads(planned.stdout)["rows"]] == ["create", "create", "change"]
    first = _headgate(tmp_path, "apply", script)
    assert first.stdout.splitlines()[-1] == "APPLY: 2 created, 1 changed, 0 kept"
    second = _headgate(tmp_path, "apply", script)
    assert second.stdout.splitlines()[-1] == "APPLY: 0 created, 0 changed, 3 kept"
    assert "CREATE" not in second.stdout


@pytest.mark.parametrize("command", ["plan", "apply"])
def test_what_differs_is_told_with_what_to_write(client: EngineClient, tmp_path: Path, command: str) -> None:
    assert _headgate(tmp_path, "apply", _script(tmp_path)).exit_code == 0
    told = _headgate(tmp_path, command, _script(tmp_path, SCRIPT.replace("10,2", "12,2")))
    assert told.exit_code == 12
    assert "error PLN-0501" in told.stderr
    assert "DROP TYPE money;" in told.stderr


def test_a_script_that_is_not_there_is_told(tmp_path: Path) -> None:
    told = _headgate(tmp_path, "plan", str(tmp_path / "nosuch.sql"))
    assert "CLI-0301" in str(told.exception)
    assert "no such file" in str(told.exception)


# the shell


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


def test_ctrl_c_takes_back_what_is_typed_and_ctrl_d_leaves(
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
    list(
        client.run(
            'CREATE SCHEMA s; CREATE VIEW v AS SELECT 1 AS a, 2 AS "B c"; CREATE VIEW s.w AS SELECT 1 AS z'
        )
    )
    names = read_names(client)
    assert (names.objects["v"], names.objects["s.w"]) == ("view", "view")
    assert names.columns == {"v": ("a", '"B c"'), "s.w": ("z",)}
