"""Which functions with changing results the columns and the rows of a query depend on."""

from __future__ import annotations

import pytest

from headgate.sql.query.select import analyse
from headgate.sql.query.tree import Stability, Unstable
from tests.sql.query.relations import find_small

pytestmark = pytest.mark.unit

RELATIONS = {"k": Unstable(), "dice": Unstable((frozenset({"rand"}),), frozenset({"now"}))}

CASES = """
SELECT id, a + 1 AS b FROM k                                              -> id: - b: - rows: -
SELECT id, rand() AS r, now() AS t, current_date AS d FROM k              -> id: - r: rand t: now d: current_date rows: -
SELECT id, 'today'::date AS d, '2020-01-01'::date AS e FROM k             -> id: - d: today e: - rows: -
SELECT id, date 'today' AS d, timestamp '2020-01-01 00:00:00' AS e FROM k -> id: - d: today e: - rows: -
SELECT unix_timestamp() AS a, unix_timestamp('2020', 'y') AS b FROM k     -> a: unix_timestamp b: - rows: -
SELECT id FROM k WHERE rand() > 0.5                                       -> id: - rows: rand
SELECT x.id, upper(u) AS v FROM (SELECT id, uuid() AS u FROM k) AS x      -> id: - v: uuid rows: -
WITH t AS (SELECT id, now() AS n FROM k) SELECT id FROM t WHERE n > '2020-01-01' -> id: - rows: now
SELECT id, a FROM dice                                                    -> id: rand a: - rows: now
SELECT DISTINCT rand() AS r FROM k                                        -> r: rand rows: rand
SELECT count(*) AS n FROM k WHERE rand() > 0.5                            -> n: rand rows: rand
SELECT a, sum(rand()) AS s FROM k GROUP BY a                              -> a: - s: rand rows: -
SELECT id FROM k ORDER BY rand() LIMIT 3                                  -> id: - rows: rand
SELECT id FROM k ORDER BY rand()                                          -> id: - rows: -
SELECT id, explode(shuffle(tags)) AS t FROM k                             -> id: - t: shuffle rows: shuffle
SELECT id FROM k WHERE a IN (SELECT a FROM dice WHERE id > 0)             -> id: - rows: now,rand
SELECT id, (SELECT max(id) FROM dice) AS m FROM k                         -> id: - m: now,rand rows: -
SELECT k.id FROM k JOIN dice ON k.id = dice.id                            -> id: - rows: now,rand
SELECT id FROM k UNION ALL SELECT id FROM dice                            -> id: rand rows: now
SELECT id FROM k EXCEPT SELECT id FROM dice                               -> id: rand rows: now,rand
SELECT x FROM (VALUES (rand()), (1)) AS v(x)                              -> x: rand rows: -
"""


@pytest.mark.parametrize("case", [line for line in CASES.splitlines() if line])
def test_what_columns_and_rows_depend_on(case: str) -> None:
    query, _, expected = case.partition("->")
    analysed = analyse(query.strip(), find_small)
    found = Stability(analysed.tree, lambda read: RELATIONS[read.name]).result
    names = [*(column.name for column in analysed.columns), "rows"]
    sets = [*found.columns, found.rows]
    shown = [f"{name}: {','.join(sorted(each)) or '-'}" for name, each in zip(names, sets, strict=True)]
    assert " ".join(shown) == expected.strip()
