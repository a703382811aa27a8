"""`->` and `->>` give what PostgreSQL gives for `json`, but for blanks between tokens."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession

from headgate.sql.query.select import analyse
from tests.sql.query.relations import find_relation, resolve

pytestmark = pytest.mark.spark

# document, keys, what `->` gives, what `->>` gives
PARTS: list[tuple[str | None, str, str | None, str | None]] = [
    ('{"a":1.50}', "'a'", "1.50", "1.50"),
    ('{"a":1e2}', "'a'", "1e2", "1e2"),
    ('{"a":-0.0}', "'a'", "-0.0", "-0.0"),
    ('{"a":1E+400}', "'a'", "1E+400", "1E+400"),
    ('{"a":123456789012345678901234567890123456789012345}', "'a'", "123456789012345678901234567890123456789012345", "123456789012345678901234567890123456789012345"),
    ('{"a":"1.50"}', "'a'", '"1.50"', "1.50"),
    ('{"a":"x"}', "'a'", '"x"', "x"),
    ('{"a":""}', "'a'", '""', ""),
    ('{"a":"null"}', "'a'", '"null"', "null"),
    ('{"a":"say \\"1 null\\" \\\\"}', "'a'", '"say \\"1 null\\" \\\\"', 'say "1 null" \\'),
    ('{"a":"größe\\n\\u00e9"}', "'a'", '"größe\\né"', "größe\né"),
    ('{"a":true,"b":false}', "'b'", "false", "false"),
    ('{"a":null}', "'a'", "null", None),
    ('{"a":1}', "'b'", None, None),
    ('{"a":{"b":1.50,"c":[1.10,"n2","z",null,true,{}]}}', "'a'", '{"b":1.50,"c":[1.10,"n2","z",null,true,{}]}', '{"b":1.50,"c":[1.10,"n2","z",null,true,{}]}'),
    ('{"a":[1.50,"s \\"q\\" 2",null]}', "'a'", '[1.50,"s \\"q\\" 2",null]', '[1.50,"s \\"q\\" 2",null]'),
    ('{"a":{"b":[0,{"c":2.0}]}}', "'a' 'b' 1 'c'", "2.0", "2.0"),
    ("[1.50,2]", "0", "1.50", "1.50"),
    ("[1.50,2]", "2", None, None),
    ("[[1.0],[2.0]]", "1 0", "2.0", "2.0"),
    ('[{"a":1}]', "'a'", None, None),
    ('{"a":1}', "0", None, None),
    ('"text"', "'a'", None, None),
    ('{"a":"text"}', "'a' 'b'", None, None),
    ('{"1":2.50}', "'1'", "2.50", "2.50"),
    ('{"a.b":1.0,"a":{"b":2}}', "'a.b'", "1.0", "1.0"),
    ('{"":1.0}', "''", "1.0", "1.0"),
    ('{"*":1.0,"b":2}', "'*'", "1.0", "1.0"),
    ('{"a[0]":1.0}', "'a[0]'", "1.0", "1.0"),
    ('{"it\'s":{"why?":[1.50]}}', "'it''s' 'why?' 0", "1.50", "1.50"),
    ('{"say \\"a\\"":1.50}', "'say \"a\"'", "1.50", "1.50"),
    ('[{"why?":"b"}]', "'why?'", None, None),
    (None, "'a'", None, None),
]  # fmt: skip


def test_a_part_is_what_postgresql_gives(session: SparkSession) -> None:
    session.conf.set("spark.sql.caseSensitive", True)
    session.conf.set("spark.sql.ansi.enabled", True)
    queries = " UNION ALL ".join(_query(at, part[0], part[1]) for at, part in enumerate(PARTS))
    rows = session.sql(analyse(queries, find_relation, resolve).spark_sql).collect()
    told = {row["at"]: (row["j"], row["t"]) for row in rows}
    assert [(*part[:2], *told[at]) for at, part in enumerate(PARTS)] == PARTS


def _query(at: int, document: str | None, keys: str) -> str:
    written = "NULL" if document is None else "'" + document.replace("'", "''") + "'"
    *first, last = re.findall(r"'(?:[^']|'')*'|\d+", keys)
    chain = "d" + "".join(f" -> {key}" for key in first)
    return f"SELECT {at} AS at, {chain} -> {last} AS j, {chain} ->> {last} AS t FROM (SELECT {written}::json AS d)"
