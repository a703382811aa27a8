"""`headgate sql`, `plan` and `apply` against a running engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headgate.cli.main import headgate
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


def test_statements_come_from_the_command_a_file_or_standard_input(client: EngineClient, tmp_path: Path) -> None:
    assert _headgate(tmp_path, "sql", _script(tmp_path)).stdout == "CREATE TYPE\nCREATE VIEW\nCOMMENT\n"
    assert "why" in _headgate(tmp_path, "sql", "-c", "SHOW VIEWS").stdout
    assert "why" in _headgate(tmp_path, "sql", typed="SHOW VIEWS;").stdout
    assert "why" in _headgate(tmp_path, "sql", "-", typed="SHOW VIEWS;").stdout


def test_a_file_and_a_command_are_one_too_many(tmp_path: Path) -> None:
    result = _headgate(tmp_path, "sql", _script(tmp_path), "-c", "SHOW VIEWS")
    assert (result.exit_code, "not both" in result.stderr) == (2, True)


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
        result = _headgate(tmp_path, "sql", "-c", statement)
        assert "1 | CREATE SECRET s" in result.stderr
        assert "^" in result.stderr
        assert "hunter2" not in result.output


def test_a_script_that_cannot_be_read_needs_no_engine(tmp_path: Path) -> None:
    result = _headgate(tmp_path, "sql", "-c", "SELECT '", "--output", "json")
    assert (result.exit_code, json.loads(result.stdout)["error"]["code"]) == (10, "SQL-0101")
    assert isinstance(_headgate(tmp_path, "sql", typed=b"\xff\xfe").exception, InvalidUtf8)
    assert not (tmp_path / ".headgate").exists()


def test_json_is_one_document_per_statement(client: EngineClient, tmp_path: Path) -> None:
    result = _headgate(tmp_path, "sql", "-c", f"{SCRIPT} SHOW VIEWS", "--output", "json")
    documents = [json.loads(line) for line in result.stdout.splitlines()]
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


def test_an_address_without_an_engine_is_reported(tmp_path: Path) -> None:
    result = _headgate(tmp_path, "sql", "-c", "SHOW VIEWS", "--url", "http://127.0.0.1:1")
    assert isinstance(result.exception, EngineUnreachable)


@pytest.mark.parametrize("url", ["localhost:1", "http://", "http://[", "ftp://host", "http://host:many"])
def test_a_malformed_address_is_wrong_usage(tmp_path: Path, url: str) -> None:
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
def test_a_difference_is_reported_with_the_statement_to_write(
    client: EngineClient, tmp_path: Path, command: str
) -> None:
    assert _headgate(tmp_path, "apply", _script(tmp_path)).exit_code == 0
    result = _headgate(tmp_path, command, _script(tmp_path, SCRIPT.replace("10,2", "12,2")))
    assert result.exit_code == 12
    assert "error PLN-0501" in result.stderr
    assert "DROP TYPE money;" in result.stderr


def test_a_missing_script_is_reported(tmp_path: Path) -> None:
    result = _headgate(tmp_path, "plan", str(tmp_path / "nosuch.sql"))
    assert "CLI-0301" in str(result.exception)
    assert "no such file" in str(result.exception)
