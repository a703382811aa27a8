"""How the rows of a query come, and its key, by the relations that it reads."""

from __future__ import annotations

import pytest

from headgate.sql.query.growth import Append, Changing, Growth, Keyed, derive
from headgate.sql.query.select import analyse
from tests.sql.query.relations import find_small

pytestmark = pytest.mark.unit

GROWTHS: dict[str, Growth] = {
    "k": Keyed((0,)),
    "k2": Keyed((0, 1)),
    "l": Keyed((0,)),
    "ap": Append(),
    "ap2": Append(),
    "ch": Changing("It lost its key."),
}


def growth(query: str) -> str:
    """`append`, `keyed by` the key's columns, or `changing:` and why."""
    analysed = analyse(query, find_small)
    match derive(analysed.tree, lambda read: GROWTHS[read.name]):
        case Append():
            return "append"
        case Keyed(key):
            return " ".join(["keyed by", *(analysed.columns[at].name for at in key)])
        case Changing(why, keep):
            return " ".join([f"changing: {why}", *keep])


CASES = """
SELECT * FROM ap                                                          -> append
SELECT a, upper(b) AS u FROM ap WHERE a > 1                               -> append
SELECT * FROM k                                                           -> keyed by id
SELECT a, id AS number FROM k WHERE a > 1                                 -> keyed by number
SELECT id FROM k2                                                         -> changing: Its key (id, a) is not kept. id a
SELECT id + 1 AS id FROM k                                                -> changing: Its key (id) is not kept. id
SELECT id FROM ch                                                         -> changing: It lost its key.
SELECT 1 AS one                                                           -> append
SELECT x FROM (VALUES (1), (2)) AS v(x) LIMIT 1                           -> append
SELECT n FROM (SELECT id AS n, a FROM k) AS t                             -> keyed by n
WITH t AS (SELECT id, a FROM k) SELECT t.id, u.a FROM t JOIN t AS u ON t.id = u.id -> keyed by id
SELECT id, arrays_zip(tags, array(1)) AS z, struct(a, upper(b)) AS s FROM k -> keyed by id
SELECT a, struct(a, sum(id)) AS s FROM k GROUP BY a                       -> keyed by a
SELECT id FROM k WHERE a = 1 ORDER BY a                                   -> keyed by id
SELECT a FROM k2 WHERE id = 7                                             -> keyed by a

SELECT id, explode(tags) AS t FROM ap                                     -> append
SELECT id, explode(tags) AS t FROM k                                      -> changing: explode gives several rows for one key (id). id
SELECT id, explode_outer(tags) AS t FROM k                                -> changing: explode_outer gives several rows for one key (id). id
SELECT id, posexplode(tags) AS (pos, t) FROM k                            -> keyed by id pos
SELECT id, posexplode_outer(tags) AS (pos, t) FROM k                      -> keyed by id pos
SELECT id, explode(m) AS (name, n) FROM k                                 -> keyed by id name
SELECT id, posexplode(m) AS (pos, name, n) FROM k                         -> keyed by id pos
SELECT id, name FROM (SELECT id, posexplode(m) AS (pos, name, n) FROM k)  -> keyed by id name
SELECT id, t FROM (SELECT id, posexplode(tags) AS (pos, t) FROM k)        -> changing: Its key (id, pos) is not kept. id pos
SELECT id, t FROM k LATERAL VIEW explode(tags) e AS t                     -> changing: explode gives several rows for one key (id). id
SELECT id, t FROM k LATERAL VIEW OUTER explode(tags) e AS t               -> changing: explode gives several rows for one key (id). id
SELECT id, p FROM k LATERAL VIEW posexplode(tags) e AS p, t               -> keyed by id p
SELECT id, t FROM k, LATERAL explode(tags) AS e(t)                        -> changing: explode gives several rows for one key (id). id
SELECT id, t FROM k, unnest(tags) AS e(t)                                 -> changing: explode gives several rows for one key (id). id
SELECT id, t FROM k LEFT JOIN LATERAL explode(tags) AS e(t) ON true       -> changing: explode gives several rows for one key (id). id
SELECT id, stack(2, a, 1) AS n FROM k                                     -> changing: stack gives several rows for one key (id). id
SELECT id, inline(array(struct(a, b))) AS (x, y) FROM k                   -> changing: inline gives several rows for one key (id). id
SELECT id, json_tuple(b, 'x', 'y') AS (x, y) FROM k                       -> keyed by id
WITH t AS (SELECT id, explode(tags) AS t FROM k) SELECT id, t FROM t      -> changing: explode gives several rows for one key (id). id
SELECT id, t, u FROM ap LATERAL VIEW explode(tags) e AS t LATERAL VIEW explode(tags) f AS u -> append

SELECT a, count(*) AS n FROM ap GROUP BY a                                -> keyed by a
SELECT upper(b) AS u, count(*) AS n FROM ap GROUP BY upper(b)             -> keyed by u
SELECT count(*) AS n FROM ap GROUP BY a                                   -> changing: Its key (a) is not kept. a
SELECT count(*) AS n FROM ap                                              -> keyed by
SELECT a, count(*) AS n FROM k GROUP BY a HAVING count(*) > 1             -> keyed by a
SELECT a, b, count(*) AS n FROM ap GROUP BY ROLLUP (a, b)                 -> changing: A group of NULLs is not told from a larger group without grouping_id(). a b grouping_id()
SELECT a, b, grouping_id() AS g FROM ap GROUP BY CUBE (a, b)              -> keyed by a b g
SELECT id, count(*) AS n FROM ap GROUP BY ROLLUP (id)                     -> keyed by id
SELECT id FROM ap GROUP BY GROUPING SETS ((id), (id))                     -> changing: A grouping set occurs twice.
SELECT count(*) AS n FROM (VALUES (1)) AS v(x)                            -> append

SELECT ap.a FROM ap JOIN ap2 ON ap.id = ap2.id                            -> append
SELECT ap.a FROM ap, ap2                                                  -> append
SELECT k.id, l.a FROM k JOIN l ON k.id = l.id                             -> keyed by id
SELECT l.id, k.a FROM k JOIN l ON k.id = l.id                             -> keyed by id
SELECT k.id, l.a FROM k JOIN l USING (id)                                 -> keyed by id
SELECT k.id, l.a FROM k, l WHERE k.id = l.id                              -> keyed by id
SELECT k.id, l.id AS other FROM k JOIN l ON k.a = l.a                     -> keyed by id other
SELECT k.id, l.b FROM k JOIN l ON k.a = l.a                               -> changing: Its key (id, id) is not kept. id id
SELECT k.id, l.a FROM k JOIN l ON k.a = l.id                              -> keyed by id
SELECT k.id, ap.a FROM k JOIN ap ON k.id = ap.id                          -> changing: It joins "ap", which has no key.
SELECT k.id, l.a FROM k LEFT JOIN l ON k.id = l.id                        -> keyed by id
SELECT l.id, k.a FROM k LEFT JOIN l ON k.id = l.id                        -> changing: Its key (id) is not kept. id
SELECT l.id, k.a FROM k RIGHT JOIN l ON k.id = l.id                       -> keyed by id
SELECT ap.id FROM ap LEFT JOIN ap2 ON ap.id = ap2.id                      -> changing: It joins "ap", which has no key.
SELECT ap.id, x FROM ap LEFT JOIN (VALUES (1), (2)) AS v(x) ON a = x      -> append
SELECT k.id, l.id AS other FROM k FULL JOIN l ON k.a = l.a                -> keyed by id other
SELECT x.a, y.a AS c FROM (SELECT a, count(*) FROM ap GROUP BY a) AS x FULL JOIN (SELECT a, count(*) FROM ap GROUP BY a) AS y ON x.a = y.a -> changing: A FULL JOIN has rows without a partner, whose keys may be NULL.
SELECT id FROM ap LEFT SEMI JOIN ap2 ON ap.id = ap2.id                    -> append
SELECT id FROM ap LEFT SEMI JOIN k ON ap.id = k.id                        -> changing: It depends on rows that change.
SELECT id FROM k LEFT SEMI JOIN ap ON k.id = ap.id                        -> keyed by id
SELECT id FROM ap LEFT ANTI JOIN ap2 ON ap.id = ap2.id                    -> changing: Rows go when a row that they are compared with comes.
SELECT id FROM k LEFT ANTI JOIN ap ON k.id = ap.id                        -> keyed by id
SELECT id, n FROM k, LATERAL (SELECT max(l.a) AS n FROM l WHERE l.a = k.a) AS s -> keyed by id
SELECT id, n FROM ap, LATERAL (SELECT a + 1 AS n) AS s                    -> append
SELECT k.id, k.a FROM k JOIN l ON k.id = l.b                              -> changing: Its key (id, id) is not kept. id id

SELECT id FROM ap WHERE id IN (SELECT id FROM k)                          -> changing: It depends on a subquery, whose rows change.
SELECT id FROM k WHERE EXISTS (SELECT 1 FROM ap WHERE ap.id = k.id)       -> keyed by id
SELECT id, (SELECT max(a) FROM ap) AS m FROM k                            -> keyed by id
SELECT (SELECT max(a) FROM ap) AS m                                       -> keyed by

SELECT id, row_number() OVER (ORDER BY a) AS n FROM k                     -> keyed by id
SELECT id, row_number() OVER (PARTITION BY a ORDER BY id) AS n FROM ap    -> changing: Its key (a, row_number) is not kept. a row_number
SELECT a, id FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY id) AS n FROM ap) WHERE n = 1 -> keyed by a
SELECT id, sum(a) OVER () AS s FROM ap                                    -> changing: The result of a window function changes when other rows come.
SELECT id FROM ap LIMIT 3                                                 -> changing: LIMIT drops rows when others come.
SELECT id FROM k LIMIT 3                                                  -> keyed by id

SELECT DISTINCT a FROM ap                                                 -> append
SELECT DISTINCT a, b FROM k                                               -> keyed by a b
SELECT DISTINCT id, b FROM k                                              -> keyed by id
SELECT id FROM ap UNION ALL SELECT id FROM ap2                            -> append
SELECT id FROM k UNION ALL SELECT id FROM l                               -> changing: UNION ALL may have two rows of one key, one of each side.
SELECT 'k' AS side, id FROM k UNION ALL SELECT 'l', id FROM l             -> keyed by side id
SELECT 'k' AS side, id FROM k UNION ALL SELECT 'k', id FROM l             -> changing: UNION ALL may have two rows of one key, one of each side.
SELECT 1 AS n, id FROM k UNION ALL SELECT 2, id FROM l UNION ALL SELECT 3, id FROM k -> keyed by n id
SELECT 1 AS n, id FROM k UNION ALL SELECT 2, id FROM l UNION ALL SELECT 1, id FROM k -> changing: UNION ALL may have two rows of one key, one of each side.
SELECT n, id FROM (SELECT 1 AS n, id FROM k) WHERE id > 1 UNION ALL SELECT 2, id FROM l -> keyed by n id
SELECT 1 AS n, id, a FROM k UNION ALL SELECT 2, a, id FROM l              -> keyed by n id a
SELECT id, a FROM k UNION SELECT id, a FROM l                             -> keyed by id a
SELECT id FROM ap INTERSECT SELECT id FROM ap2                            -> append
SELECT id, a FROM k INTERSECT SELECT id, a FROM ap                        -> keyed by id
SELECT id, a FROM k EXCEPT ALL SELECT id, a FROM ap                       -> keyed by id
SELECT id FROM ap EXCEPT SELECT id FROM ap2                               -> keyed by id

SELECT id FROM k WHERE rand() > 0.5                                       -> changing: A condition gives another result each time it is computed.
SELECT id FROM ap WHERE rand() > 0.5                                      -> append
SELECT id FROM ap WHERE a > unix_timestamp()                              -> changing: A condition depends on the time at which it is computed.
SELECT id FROM k WHERE a > unix_timestamp()                               -> keyed by id
SELECT id, now() AS t FROM ap                                             -> append
"""


@pytest.mark.parametrize("case", [line for line in CASES.splitlines() if line])
def test_growth_and_key_of(case: str) -> None:
    query, _, expected = case.partition("->")
    assert growth(query.strip()) == expected.strip()
