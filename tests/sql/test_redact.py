"""Secrets leave no trace in what is logged, stored or shown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as st

from headgate.errors import HeadgateError
from headgate.serve.errors import EngineUnreachable
from headgate.sql.redact import redacted_diagnostic, redacted_text
from headgate.sql.script import parse_script, parse_statement

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("create secret s as 'a''b';\nSELECT 'a'", "create secret s as '****';\nSELECT 'a'"),
        ("ALTER SECRET s AS $x$a\nb$x$", "ALTER SECRET s AS $***\n***$"),
        (
            "CREATE CONNECTION c TO X (PASSWORD = 'ab', HOST 'h')",
            "CREATE CONNECTION c TO X (PASSWORD = '**', HOST 'h')",
        ),
        ("ALTER CONNECTION c SET (URL 'x://u:p@h')", "ALTER CONNECTION c SET (URL 'x://***@h')"),
        ("CREATE SECRET s AS 'hunter2", "CREATE SECRET s AS ********"),
        ("SELECT 'password'", "SELECT 'password'"),
        (
            "CREATE CONNECTION k TO KAFKA (BROKERS ('a:1', 'b:2'), SASL_PASSWORD 'ab', PASWORD 'cd', X)",
            "CREATE CONNECTION k TO KAFKA (BROKERS ('a:1', 'b:2'), SASL_PASSWORD '**', PASWORD '**', *)",
        ),
        (
            "CREATE SOURCE s FROM KAFKA BROKER 'h' TOPIC 't' FORMAT AVRO"
            " USING CONFLUENT SCHEMA REGISTRY 'http://me:a@b@h/x'",
            "CREATE SOURCE s FROM KAFKA BROKER 'h' TOPIC 't' FORMAT AVRO"
            " USING CONFLUENT SCHEMA REGISTRY 'http://******@h/x'",
        ),
        ("SELECT 'http://h/a@b'", "SELECT 'http://h/a@b'"),
        (
            "CREATE MATERIALIZATION m FROM r INTO POSTGRES CONNECTION p (TABLE 't') FIELDS (a string AS 'varchar(5)')",
            "CREATE MATERIALIZATION m FROM r INTO POSTGRES CONNECTION p (TABLE 't') FIELDS (a string AS 'varchar(5)')",
        ),
        (
            "ALTER MATERIALIZATION m SET FIELDS (a string AS 'inet') AS 'ab'",
            "ALTER MATERIALIZATION m SET FIELDS (a string AS 'inet') AS '**'",
        ),
        ("CREATE MATERIALIZATION m AS 'ab'", "CREATE MATERIALIZATION m AS '**'"),
    ],
)
def test_the_text_of_a_script_is_starred_out_in_place(text: str, shown: str) -> None:
    assert redacted_text(text) == shown
    assert len(shown) == len(text)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE SECRET s 'hunter2'",
        "CREATE SECRET s AS 'hunter2",
        "CREATE SECRET s AS 'hunter2' x",
        "CREATE SECRT s AS 'hunter2'",
        "CREATE SECRET s AS hunter2",
        'CREATE SECRET s AS "hunter2"',
        "CREATE SECRET s = hunter2",
        "EXPLAIN CHANGE ALTER SECRET s AS 'hunter2' x",
        "CREATE CONNECTION c TO POSTGRES (HOST 'h', PASSWORD hunter2)",
        "CREATE CONNECTION c TO POSTGRES (HOST 'h', PASSWORD = `hunter2`)",
        "CREATE CONNECTION c TO POSTGRES (HOST 'h', PASWORD 'hunter2')",
        "CREATE CONNECTION c TO POSTGRES (HOST 'h', PASSWORD ('hunter2'))",
        "CREATE CONNECTION c TO POSTGRES (HOST 'h', PASSWORD, 'hunter2')",
        "CREATE CONNECTION c TO POSTGRES (HOST 'h', 'hunter2')",
        "CREATE CONNECTION c TO POSTGRES (URL 'postgres://u:p@hunter2@h/db', X 1)",
        "CREATE CONNECTION c TO POSTGRES (URL 'postgres://u:p/hunter2@h/db', X 1)",
        "CREATE CONNECTION c TO POSTGRES (URL 'postgres://h/db?user=x&password=hunter2', X 1)",
        "CREATE CONNECTION c TO POSTGRES (HOST 'postgres://u:hunter2@h', X 1)",
        "CREATE CONNECTION c TO POSTGRES (URI 'postgres://u:hunter2@h')",
        "CREATE OR REPLACE CONNECTION c TO KAFKA (BROKER 'h', SASL PASSWORD 'hunter2')",
        "EXPLAIN CHANGE ALTER CONNECTION c SET (SASL PASSWORD 'hunter2', X 1)",
        "CREATE STREAM s WITH (registry = 'http://u:hunter2@h', x = 1)",
        "CREATE CAPTURE c FROM FILES 's3://key:hunter2@bucket/x' FORMAT JSON INTO n X",
    ],
)
def test_an_error_does_not_say_the_secret(text: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_statement(text)
    assert "hunter2" not in redacted_diagnostic(caught.value, text).render()


def test_a_secret_is_not_in_the_repr_of_its_statement() -> None:
    assert "hunter2" not in repr(parse_statement("CREATE SECRET s AS 'hunter2'"))


# Statements with a secret, which is the only text of its kind. Keywords, brackets and quotes get mistyped.
WITH_SECRETS = (
    "CREATE SECRET s AS 'hunter2'",
    "CREATE SECRET IF NOT EXISTS a.s AS $$hunter2$$",
    "ALTER SECRET s AS 'hunter2'",
    "EXPLAIN CHANGE ALTER SECRET s AS 'hunter2'",
    "CREATE CONNECTION k TO KAFKA (BROKERS ('a:1', 'b:2'), SASL USERNAME 'me', SASL PASSWORD = 'hunter2')",
    "CREATE CONNECTION c TO POSTGRES (HOST = 'h', PORT 5432, USER 'u', PASSWORD 'hunter2', DATABASE 'd')",
    "ALTER CONNECTION c SET (SSL KEY = 'hunter2', SSL CERTIFICATE SECRET a)",
    "CREATE CONNECTION c TO ELASTICSEARCH (PASSWORD 'hunter2', URL 'http://h') WITH (VALIDATE = false)",
    "CREATE CONNECTION c TO POSTGRES (URL 'postgres://u:hunter2@h/d')",
    "CREATE CONNECTION k TO KAFKA (BROKER 'me:hunter2@h:9092')",
    "CREATE SOURCE s FROM KAFKA BROKER 'me:hunter2@h:9092' TOPIC 't' FORMAT TEXT",
    "CREATE SOURCE s FROM KAFKA BROKER 'h' TOPIC 't' FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://me:hunter2@h'",
    "SHOW SOURCES CREATE SECRET s AS 'hunter2'",
)
LETTERS = st.sampled_from("ABCDEISRTX_ ")


@st.composite
def mistyped(draw: st.DrawFn, parts: int = 3) -> str:
    """A statement with a secret, in which up to three words are mistyped. The secret stays as it is."""
    text = draw(st.sampled_from(WITH_SECRETS))
    for _ in range(draw(st.integers(1, parts))):
        words = [found for found in re.finditer(r"[A-Za-z]+", text) if found[0] != "hunter"]
        word = draw(st.sampled_from(words))
        text = text[: word.start()] + _mistyped(draw, word[0]) + text[word.end() :]
    return text


def _mistyped(draw: st.DrawFn, word: str) -> str:
    at = draw(st.integers(0, len(word) - 1))
    match draw(st.sampled_from(("drop", "swap", "replace", "insert", "double"))):
        case "drop":
            return word[:at] + word[at + 1 :]
        case "swap":
            return word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :]
        case "replace":
            return word[:at] + draw(LETTERS) + word[at + 1 :]
        case "insert":
            return word[:at] + draw(LETTERS) + word[at:]
        case _:
            return word[:at] + word[at] + word[at:]


def _shown(text: str) -> str:
    """What is shown of a script: its text in the history, and the error if it has one."""
    try:
        parse_script(text)
    except HeadgateError as error:
        return redacted_text(text) + redacted_diagnostic(error, text).render()
    return redacted_text(text)


@settings(max_examples=1000)
@given(mistyped())
def test_a_mistyped_statement_does_not_show_its_secret(text: str) -> None:
    assert "hunter" not in _shown(text)


@settings(max_examples=500)
@given(mistyped(1), st.sampled_from(("'hunter2", "hunter2'", "hunter2")))
def test_a_secret_whose_quotes_are_missing_is_not_shown(text: str, written: str) -> None:
    if "@" not in text:
        assert "hunter" not in _shown(text.replace("'hunter2'", written).replace("$$hunter2$$", written))


@settings(max_examples=1000)
@given(st.integers(0, 200), mistyped(1))
def test_a_stray_quote_does_not_show_the_secret(at: int, text: str) -> None:
    assert "hunter" not in _shown(text[:at] + "'" + text[at:])


@pytest.mark.parametrize(
    "text",
    [
        "CREATE SEC'RET s AS $$hunter2$$",
        "CRE'ATE SECRET s AS 'hunter2'",
        "'CREATE SECRET s AS $$hunter2$$",
        "SELECT 1; ALTER S'ECRET s AS $$hunter2$$",
    ],
)
def test_a_quote_inside_a_word_does_not_show_the_secret(text: str) -> None:
    assert "hunter" not in _shown(text)


def test_an_open_string_of_a_query_is_shown() -> None:
    assert "CREATE VIEW v AS SELECT 'open" in _shown("CREATE VIEW v AS SELECT 'open")


def test_the_message_does_not_quote_a_secret_that_stands_where_a_name_should() -> None:
    text = "CREATE CONNECTION c TO POSTGRES (PASWORD hunter2, HOST 'h')"
    with pytest.raises(HeadgateError) as caught:
        parse_statement(text)
    assert "hunter2" in str(caught.value)
    shown = redacted_diagnostic(caught.value, text)
    assert "PASWORD ********" in shown.message
    assert "hunter2" not in shown.render()


def test_an_address_in_a_message_does_not_show_its_password() -> None:
    error = EngineUnreachable("http://me:hunter2@h", "me:hunter2@h:9092 does not answer")
    assert redacted_diagnostic(error, "").message == (
        "could not reach the engine at http://********@h: ********@h:9092 does not answer"
    )


@pytest.mark.parametrize("text", ["SELECT '{}'", "CREATE CONNECTION c TO POSTGRES (URL '{}')", "{}"])
@pytest.mark.parametrize("part", ["a:b@", ":", "://", "@", "SECRET s ", "'", "CREATE ", "(", "password="])
def test_large_texts_take_linear_time(text: str, part: str) -> None:
    large = text.replace("{}", part * 20_000)
    assert len(redacted_text(large)) == len(large)
