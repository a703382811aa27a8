"""Secrets leave no trace in what is logged, stored or shown."""

from __future__ import annotations

import pytest

from headgate.errors import HeadgateError
from headgate.sql.redact import redacted, redacted_text
from headgate.sql.script import parse_statement
from headgate.sql.statement import print_statement

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("CREATE SECRET s AS 'hunter2'", "CREATE SECRET s AS '********';"),
        ("ALTER SECRET s AS 'hunter2'", "ALTER SECRET s AS '********';"),
        ("CREATE SECRET s FROM ENV 'NAME'", "CREATE SECRET s FROM ENV 'NAME';"),
        (
            "CREATE CONNECTION c TO POSTGRES (URL 'postgres://me:hunter2@h/d', PASSWORD 'hunter2', USER 'u')",
            "CREATE CONNECTION c\nTO POSTGRES (URL = 'postgres://********@h/d', PASSWORD = '********', USER = 'u');",
        ),
        (
            "ALTER CONNECTION k SET (SASL PASSWORD = 'hunter2', SSL KEY 'hunter2', SSL CERTIFICATE 'c')",
            "ALTER CONNECTION k\nSET (SASL PASSWORD = '********', SSL KEY = '********', SSL CERTIFICATE = 'c');",
        ),
        (
            "CREATE CONNECTION c TO ELASTICSEARCH (URL 'http://h', PASSWORD SECRET s)",
            "CREATE CONNECTION c\nTO ELASTICSEARCH (URL = 'http://h', PASSWORD = SECRET s);",
        ),
        ("SELECT 'hunter2'", "SELECT 'hunter2';"),
        (
            "EXPLAIN CHANGE ALTER CONNECTION c SET (URL 'postgres://h/d?password=hunter2')",
            "EXPLAIN CHANGE ALTER CONNECTION c\nSET (URL = 'postgres://h/d?password=********');",
        ),
        (
            "CREATE SOURCE s FROM KAFKA BROKER 'h' TOPIC 't' FORMAT AVRO"
            " USING CONFLUENT SCHEMA REGISTRY 'http://me:hunter2@h'",
            "CREATE SOURCE s\nFROM KAFKA BROKER 'h' TOPIC 't'\n"
            "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://********@h';",
        ),
    ],
)
def test_a_statement_is_printed_without_its_secrets(text: str, shown: str) -> None:
    assert print_statement(redacted(parse_statement(text))) == shown


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
            "CREATE CONNECTION k TO KAFKA (BROKERS ('a:1', 'b:2'), SASL_PASSWORD '**', PASWORD '**', X)",
        ),
        (
            "CREATE SOURCE s FROM KAFKA BROKER 'h' TOPIC 't' FORMAT AVRO"
            " USING CONFLUENT SCHEMA REGISTRY 'http://me:a@b@h/x'",
            "CREATE SOURCE s FROM KAFKA BROKER 'h' TOPIC 't' FORMAT AVRO"
            " USING CONFLUENT SCHEMA REGISTRY 'http://******@h/x'",
        ),
        ("SELECT 'http://h/a@b'", "SELECT 'http://h/a@b'"),
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
    assert "hunter2" not in str(caught.value)
    if "SECRT" not in text:
        assert "hunter2" not in caught.value.diagnostic(redacted_text(text)).render()


def test_a_secret_is_not_in_the_repr_of_its_statement() -> None:
    assert "hunter2" not in repr(parse_statement("CREATE SECRET s AS 'hunter2'"))
