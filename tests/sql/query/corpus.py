"""Queries of every kind that the tests share: Spark agrees about each, and the fuzzer mutates them."""

from __future__ import annotations

QUERIES = r'''
SELECT id, price * 2 AS twice, NAME, (k).f, k.g.h, arr[0], m['a'] FROM orders WHERE price > 10
SELECT o.id, c.city FROM orders o JOIN customers c ON o.id = c.id
SELECT o.*, city FROM orders o LEFT JOIN customers USING (id)
SELECT o.id, c.id AS other FROM orders o FULL JOIN customers c ON o.id = c.id
SELECT c.id, o.price FROM orders o RIGHT JOIN customers c ON o.id = c.id
SELECT id FROM orders o LEFT SEMI JOIN customers c ON o.id = c.id
SELECT ROW(1, 2)::point AS p, (ROW(1, 2)::point).x, id::text, CAST(price AS decimal(10,2)), n::bigint, day::timestamp FROM orders
SELECT j -> 'a' -> 0 ->> 'b' AS a, j -> 'x' AS b FROM orders
SELECT upper(name) || '!' AS u, count(*), sum(price) FILTER (WHERE price > 1), avg(d), avg(n), sum(d), sum(n) FROM orders GROUP BY upper(name) HAVING count(*) > 1 ORDER BY 2 DESC
SELECT transform(arr, x -> x + 1), filter(arr, x -> x > 1), exists(arr, x -> x = id), forall(tags, t -> t = 'a') FROM orders
SELECT a.id, x FROM orders a LATERAL VIEW explode(arr) e AS x
SELECT id, v, k2 FROM orders, LATERAL explode(m) AS e(k2, v)
SELECT id, p, x FROM orders LATERAL VIEW posexplode(tags) e AS p, x
WITH big AS (SELECT id, price FROM orders WHERE price > 100) SELECT b.id, price + 1 AS p FROM big b UNION ALL SELECT id, 2 FROM customers ORDER BY id
SELECT CASE WHEN price > 1 THEN 1 ELSE 2.5 END AS a, coalesce(price, 0) AS b, 7 / 2 AS c, 7 % 2 AS d, 1 + id AS e FROM orders
SELECT d * d AS a, d / 3 AS b, d + 1 AS c, d - 0.5 AS e, d % 7 AS f, d * n AS g, d / d AS h, d * 1000000 AS i, -d AS j FROM orders
SELECT n + id AS a, n + r AS b, id + r AS c, r + price AS e, n * 2 AS f, n / 2 AS g, d + price AS h, d + r AS i, id / d AS l FROM orders
SELECT 1, 3000000000, 99999999999999999999, 1.5, 0.05, 1e3, 'x', TRUE, X'1F' AS h, -2147483648 AS i, -9223372036854775808 AS b
SELECT a, b FROM (VALUES (1, 'x'), (2, NULL)) AS v(a, b)
SELECT id FROM orders WHERE id IN (SELECT id FROM customers WHERE city = orders.name)
SELECT "Name", `id`, $$it's$$ AS a, E'a\nb' AS b, 'back\slash' AS c FROM orders
SELECT * EXCEPT (arr, m) FROM orders
SELECT ts AT TIME ZONE 'Europe/Berlin' AS a, local AT TIME ZONE 'Europe/Berlin' AS b, extract(year FROM ts) AS c, extract(second FROM ts) AS d, ts::date FROM orders
SELECT DATE '2020-01-01' AS a, TIMESTAMP '2020-01-01 00:00:00' AS b
SELECT row_number() OVER (PARTITION BY name ORDER BY ts) AS n, lag(price) OVER (PARTITION BY name ORDER BY ts) AS before FROM orders
SELECT name ~ '^a' AS a, name RLIKE 'b' AS b, id <=> 3 AS c, name ILIKE 'c' AS d, id BETWEEN 1 AND 2 AS e, price IS NULL AS f, NOT paid AS g, n IN (1, 2) AS h FROM orders
SELECT left(name, 2) AS a, array(1, 2) AS b, ARRAY[1, NULL] AS c, size(tags) AS d, named_struct('a', 1, 'b', name) AS e, struct(id, name AS n) AS f, struct(a := id, "B" := struct(name := name)) AS f2, map('a' := id, 'b' := 2) AS f3, map('a', 1) AS g, if(price > 1, 1, 2) AS h FROM orders
SELECT (k).*, id FROM orders
SELECT a, "A" FROM cases
SELECT trim(both 'x' from name) AS a, substring(name from 2 for 3) AS b, position('a' in name) AS c, substring(name, 2) AS d FROM orders
SELECT DISTINCT name FROM orders LIMIT 3
SELECT count(DISTINCT name, id) AS a, max(ts) AS b, min(name) AS c, collect_list(n) AS d, first(price) AS e FROM orders
SELECT (SELECT max(price) FROM orders) AS highest, EXISTS (SELECT 1 FROM customers) AS any_customer
SELECT n FROM orders INTERSECT SELECT 1
SELECT day AS that_day, count(*) AS c FROM orders GROUP BY that_day ORDER BY c
SELECT coalesce(n, id) AS a, coalesce(n, r) AS b, coalesce(d, n) AS c, greatest(n, id, 3) AS d, nullif(n, 1) AS e FROM orders
SELECT "Select", "from" FROM (SELECT id AS "Select", n AS "from" FROM orders) AS "Group"
SELECT id "quoted ""x""", n AS value, ts AS timestamp /* a /* nested */ comment */ FROM orders -- the end
SELECT * FROM orders o JOIN customers c USING (id)
SELECT * FROM customers c RIGHT JOIN customers d USING (id)
SELECT id, c.id AS cid, d.id AS did FROM customers c FULL JOIN customers d USING (ID)
SELECT * FROM customers c FULL JOIN customers d USING (city, id) JOIN customers e USING (id)
SELECT c.*, d.* FROM customers c, customers d
SELECT id AS x FROM orders ORDER BY x + 1, upper(name)
SELECT -id AS id FROM orders ORDER BY -id, id
SELECT x FROM (SELECT id AS x FROM orders ORDER BY x LIMIT 1) AS t
SELECT count(*) AS c, name AS nm FROM orders GROUP BY nm HAVING c > 1 ORDER BY nm
SELECT count(*) AS c, upper(name) FROM orders GROUP BY 2 ORDER BY 1
SELECT name, n, sum(d) FROM orders GROUP BY ROLLUP (name, n)
SELECT name, n, sum(d) FROM orders GROUP BY GROUPING SETS ((name), (n), ())
SELECT sum(n) OVER w AS s FROM orders WINDOW w AS (PARTITION BY name ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
(SELECT id FROM orders ORDER BY id LIMIT 1) UNION ALL (SELECT id FROM customers ORDER BY city LIMIT 1)
(SELECT id FROM orders UNION ALL SELECT id FROM customers) EXCEPT SELECT id FROM customers ORDER BY id LIMIT 3
SELECT n, day FROM orders UNION ALL SELECT NULL, NULL
SELECT NULL AS x, NULL::integer AS y UNION SELECT NULL, 1
VALUES (1, NULL), (NULL, NULL)
SELECT id IN (1, 2.5) AS a, id IN ('1') AS b, id = name AS c, (id, n) IN ((1, 2), (3, 4)) AS e, (id, n) = (1, 2) AS f FROM orders
SELECT ts + INTERVAL '1 day' AS a, day + 1 AS c, local - INTERVAL '2' HOURS AS e, INTERVAL '1' DAY + ts AS f FROM orders
SELECT name LIKE 'a\_b' AS a, name LIKE '%a!%%' ESCAPE '!' AS b, name ~ '^\w\\' AS d, name ~* 'x' AS e, name !~* 'x' AS f, name LIKE ANY ('a%', 'b%') AS g FROM orders
SELECT j -> 'it''s' AS a, j -> 'a.b' AS b, j ->> 'a b' AS c, j -> '$' AS d, j ->> '*' AS f, upper(j -> 'a' ->> 'b') AS g, count_if(j -> 'a' IS NULL) OVER () AS h FROM orders
SELECT name::json AS a, name::uuid AS b, name::enum('a', 'b') AS c, k::json AS d, id::json AS e, TRY_CAST(name AS uuid) AS f, 'a'::enum('a') AS g, arr::text[] AS h FROM orders
SELECT ROW(id, name) AS r, (id, name) AS s, (ROW(id, name)).f1 AS t, k['f'] AS u FROM orders
SELECT public.orders.id, ORDERS.n, "orders".d, public.orders.k.f FROM public.orders
SELECT x, price, _meta FROM orders AS t(x)
SELECT v FROM orders LEFT JOIN LATERAL (SELECT city AS v FROM customers c WHERE c.id = orders.id) AS l ON TRUE
SELECT x, y FROM orders LATERAL VIEW explode(arr) AS x LATERAL VIEW OUTER explode(tags) t2 AS y
SELECT explode(m) AS (k, v) FROM orders
SELECT id, explode(m), n FROM orders
SELECT posexplode(tags) FROM orders
SELECT explode(arr) AS x FROM orders
SELECT id + 1 AS a FROM range(3)
SELECT aggregate(arr, 0, (acc, x) -> acc + x) AS a, reduce(arr, named_struct('s', 0), (acc, x) -> acc, acc -> acc.s) AS b, zip_with(arr, tags, (x, y) -> y) AS c, transform_values(m, (K, v) -> k) AS d, map_zip_with(m, m, (k, a, b) -> a + b) AS e FROM orders
SELECT ~n AS a, n & 1 AS b, n | id AS c, n ^ 2 AS d, n << 1 AS e FROM orders
SELECT paid IS TRUE AS a, paid IS NOT FALSE AS b, n IS DISTINCT FROM 1 AS c, 1 = ANY (arr) AS d FROM orders
WITH a AS (SELECT 1 AS x) SELECT t.y, a.x FROM (WITH a AS (SELECT 2 AS y) SELECT * FROM a) AS t, a
WITH a AS (SELECT 1 AS x), "A" AS MATERIALIZED (SELECT 2 AS x) SELECT a.x, b.x FROM a, "A" AS b
SELECT count(DISTINCT *) AS a, count(c.*) AS b FROM customers c
SELECT struct(*) AS s FROM customers
SELECT first(n) IGNORE NULLS AS a FROM orders
'''.strip().splitlines()
