"""Random queries, random contents and random changes of them, for the law of materialized views.

A query has two spellings: the one that is kept, and the one that it must equal, in which every LIMIT orders by all columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from headgate.schema.types import Bigint, Decimal, Integer, Text, Type
from headgate.sql.query.growth import Append, Changing, Growth, Keyed
from headgate.sql.query.scope import Column, Relation
from headgate.sql.query.tree import RelationName
from headgate.text.cursor import Identifier

COLUMNS: tuple[tuple[str, Type], ...] = (
    ("id", Bigint()),
    ("a", Integer()),
    ("b", Integer()),
    ("s", Text()),
    ("d", Decimal(10, 2)),
)
GROWTHS: dict[str, Growth] = {"k": Keyed((0,)), "bag": Changing("It has no key."), "ap": Append()}
IDS = {"k": 1, "bag": 2, "ap": 3}
Row = tuple[object, ...]


def find_relation(parts: Sequence[Identifier]) -> Relation:
    name = parts[-1].name
    columns = tuple(Column(column, type_, column != "id") for column, type_ in COLUMNS)
    return Relation(RelationName(name, IDS[name]), f"rel_{IDS[name]}", columns)


class Contents:
    """The rows of the relations. `k` has a key, `bag` has equal rows, and `ap` only grows."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.rows: dict[str, Counter[Row]] = {name: Counter() for name in GROWTHS}

    def change(self) -> dict[str, list[tuple[Row, int]]]:
        """Change the relations. Returns the rows that came and went, each with the weight 1 or -1, some of both."""
        return {name: self._change(name) for name in self.rows}

    def _change(self, name: str) -> list[tuple[Row, int]]:
        held, made = self.rows[name], []
        came = [self._row() for _ in range(self.random.choice([0, 1, 2, 5]))]
        went = [] if name == "ap" else [row for row in held.elements() if self.random.random() < self._share()]
        if name == "k":
            came = list({row[0]: row for row in came}.values())
            went += [row for row in held if row not in went and any(row[0] == new[0] for new in came)]
        for row, weight in [*((row, -1) for row in went), *((row, 1) for row in came)]:
            held[row] += weight
            made.append((row, weight))
        self.rows[name] = +held
        self.random.shuffle(made)
        return made

    def _share(self) -> float:
        return self.random.choice([0.0, 0.2, 0.5, 1.0])

    def _row(self) -> Row:
        pick = self.random.choice
        cents = pick([None, -300, 0, 1, 250, 250, 99999999])
        return (
            pick([1, 2, 3, 4, 5]),
            pick([0, 1, 2, None]),
            pick([0, 1, 3, None]),
            pick(["a", "b", None]),
            None if cents is None else f"{cents / 100:.2f}",
        )


Kind = Literal["number", "decimal", "text"]


@dataclass(frozen=True)
class Query:
    """``ours`` is kept and must equal ``batch``. ``columns`` are the names with their kinds."""

    ours: str
    batch: str
    columns: dict[str, Kind]

    def of(self, *kinds: Kind) -> list[str]:
        return [name for name, kind in self.columns.items() if kind in kinds]


class Queries:
    """Makes random queries."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.names = 0

    def query(self, depth: int = 3) -> Query:
        if depth == 0:
            return self._base()
        steps: list[Callable[[int], Query]] = [
            self._filter, self._project, self._join, self._join, self._join, self._group, self._group, self._group,
            self._all_rows, self._distinct, self._union, self._union, self._set_operation, self._rank, self._limit,
            self._sets, self._subquery, self._constant,
        ]  # fmt: skip
        return self.random.choice(steps)(self.random.randrange(depth))

    def _name(self) -> str:
        self.names += 1
        return f"c{self.names}"

    def _made(self, below: Query, text: str, columns: dict[str, Kind]) -> Query:
        """A query over another one, which `{}` stands for in its text."""
        return Query(text.format(f"({below.ours}) AS t"), text.format(f"({below.batch}) AS t"), columns)

    def _base(self) -> Query:
        relation = self.random.choice(sorted(GROWTHS))
        kinds: list[Kind] = ["number", "number", "number", "text", "decimal"]
        names = [self._name() for _ in COLUMNS]
        listed = ", ".join(f"{column} AS {name}" for (column, _), name in zip(COLUMNS, names, strict=True))
        text = f"SELECT {listed} FROM {relation}"
        return Query(text, text, dict(zip(names, kinds, strict=True)))

    def _constant(self, depth: int) -> Query:
        name = self._name()
        below = self.query(depth)
        numbers = below.of("number")
        if not numbers:
            return below
        text = f"SELECT {self.random.choice(numbers)} AS {name} FROM {{}} UNION ALL SELECT 7 AS {name}"
        return self._made(below, text, {name: "number"})

    def _condition(self, below: Query) -> str:
        """A condition, mostly a simple one. Where it stands, it must hold together."""
        one, other = self._comparison(below), self._comparison(below)
        return self.random.choice([one] * 5 + [f"{one} OR {other}", f"NOT {one}", f"{one} AND NOT {other}"])

    def _comparison(self, below: Query) -> str:
        name = self.random.choice(list(below.columns))
        choices = {
            "number": [f"{name} > 1", f"{name} = 1", f"{name} % 2 = 0", f"{name} + 1 <> 2"],
            "decimal": [f"{name} > 1.5", f"{name} < 0"],
            "text": [f"{name} = 'a'", f"{name} > 'a'"],
        }[below.columns[name]]
        return self.random.choice([*choices, f"{name} IS NULL", f"{name} IS NOT NULL"])

    def _filter(self, depth: int) -> Query:
        below = self.query(depth)
        return self._made(below, f"SELECT * FROM {{}} WHERE {self._condition(below)}", below.columns)

    def _project(self, depth: int) -> Query:
        below = self.query(depth)
        chosen = self.random.sample(list(below.columns), self.random.randint(1, len(below.columns)))
        columns: dict[str, Kind] = {}
        listed = []
        for old in chosen:
            new, kind = self._name(), below.columns[old]
            plain = kind != "number" or self.random.random() < 0.7
            made = self.random.choice(
                [f"coalesce({old}, 0) % 3", f"CASE WHEN {self._condition(below)} THEN {old} END", f"{old} + 1"]
            )
            listed.append(f"{old if plain else made} AS {new}")
            columns[new] = kind
        return self._made(below, f"SELECT {', '.join(listed)} FROM {{}}", columns)

    def _join(self, depth: int) -> Query:
        left, right = self.query(depth), self.query(self.random.randrange(depth + 1))
        kinds = ["CROSS JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
        kind = self.random.choice(["JOIN"] * 5 + kinds)
        pairs = [(one, other) for one in left.of("number") for other in right.of("number")]
        if kind == "CROSS JOIN" or not pairs:
            kind, on = "CROSS JOIN", ""
        else:
            one, other = self.random.choice(pairs)
            equal = self.random.choice(["=", "=", "=", "<=>", "<"] if kind == "JOIN" else ["="])
            on = f" ON l.{one} {equal} r.{other}"
            if kind == "JOIN" and self.random.random() < 0.3:
                on += f" {self.random.choice(['AND', 'OR'])} r.{other} > 1"
        ours, batch = (f"SELECT * FROM ({x}) AS l {kind} ({y}) AS r{on}" for x, y in _both(left, right))
        return Query(
            ours, batch, left.columns if "SEMI" in kind or "ANTI" in kind else {**left.columns, **right.columns}
        )

    def _aggregates(self, below: Query, most: int = 3) -> list[tuple[str, Kind]]:
        """Aggregates, and the kind of what they return."""
        made: list[tuple[str, Kind]] = [("count(*)", "number")]
        for _ in range(self.random.randint(1, most)):
            name = self.random.choice(list(below.columns))
            kind = below.columns[name]
            made.append((f"{self.random.choice(['min', 'max'])}({name})", kind))
            made.append((f"count({self.random.choice(['', 'DISTINCT '])}{name})", "number"))
            if kind != "text":
                made.append((f"sum({name})", kind))
                made.append((f"avg({name})", "text" if kind == "number" else kind))
                made.append((f"sum({name} + 1)", kind))
                made.append((f"count({name} > 1 AND {self.random.choice(below.of('number') or [name])} < 2)", "number"))
                made.append((f"count(NOT {name} > 1)", "number"))
                made.append((f"sum({name}) FILTER (WHERE {name} > 0)", kind))
        chosen = self.random.sample(made, self.random.randint(1, min(most, len(made))))
        return [(f"CAST({call} AS string)" if kind == "text" else call, kind) for call, kind in chosen]

    def _group(self, depth: int) -> Query:
        below = self.query(depth)
        keys = self.random.sample(list(below.columns), min(len(below.columns), self.random.choice([1, 1, 2])))
        if (numbers := below.of("number")) and self.random.random() < 0.2:  # by a value that is computed
            name = self.random.choice(numbers)
            key = self.random.choice([f"{name} % 2", f"{name} > 1 OR {name} IS NULL", f"NOT {name} > 1"])
            return self._grouped(below, [], f"GROUP BY {key}{self._having()}")
        return self._grouped(below, keys, f"GROUP BY {', '.join(keys)}{self._having()}")

    def _having(self) -> str:
        return self.random.choice(["", "", " HAVING count(*) > 1", " HAVING count(*) % 2 = 1"])

    def _grouped(self, below: Query, keys: Sequence[str], clause: str) -> Query:
        columns: dict[str, Kind] = {}
        listed = []
        for key in self.random.sample(keys, self.random.randint(0, len(keys))):
            name = self._name()
            listed.append(f"{key} AS {name}")
            columns[name] = below.columns[key]
        for call, kind in self._aggregates(below):
            name = self._name()
            listed.append(f"{call} AS {name}")
            columns[name] = kind
        return self._made(below, f"SELECT {', '.join(listed)} FROM {{}} {clause}", columns)

    def _all_rows(self, depth: int) -> Query:
        return self._grouped(self.query(depth), [], "")

    def _sets(self, depth: int) -> Query:
        below = self.query(depth)
        keys = list(below.columns)[:2]
        sets = ", ".join(f"({key})" for key in keys)
        chosen = [f"ROLLUP ({', '.join(keys)})", f"CUBE ({', '.join(keys)})", f"GROUPING SETS ({sets}, ())"]
        return self._grouped(below, keys, f"GROUP BY {self.random.choice(chosen)}{self._having()}")

    def _distinct(self, depth: int) -> Query:
        below = self.query(depth)
        chosen = self.random.sample(list(below.columns), self.random.randint(1, len(below.columns)))
        columns = {name: below.columns[name] for name in chosen}
        return self._made(below, f"SELECT DISTINCT {', '.join(chosen)} FROM {{}}", columns)

    def _sides(self, depth: int) -> tuple[Query, Query]:
        """Two queries with columns of the same kinds."""
        left, right = self.query(depth), self.query(depth)
        every: list[Kind] = ["number", "text", "decimal"]
        kinds = [kind for kind in every if left.of(kind) and right.of(kind)]
        if not kinds:
            left = right = self._base()
            kinds = ["number", "text"]
        return self._only(left, kinds), self._only(right, kinds)

    def _only(self, below: Query, kinds: Sequence[Kind]) -> Query:
        columns: dict[str, Kind] = {self._name(): kind for kind in kinds}
        chosen = [(self.random.choice(below.of(kind)), name) for name, kind in columns.items()]
        return self._made(below, f"SELECT {', '.join(f'{old} AS {new}' for old, new in chosen)} FROM {{}}", columns)

    def _union(self, depth: int) -> Query:
        return self._combined(depth, self.random.choice(["UNION ALL", "UNION ALL", "UNION"]))

    def _set_operation(self, depth: int) -> Query:
        words = ["INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]
        return self._combined(depth, self.random.choice(words))

    def _combined(self, depth: int, words: str) -> Query:
        left, right = self._sides(depth)
        ours, batch = (f"{x} {words} {y}" for x, y in _both(left, right))
        return Query(ours, batch, left.columns)

    def _rank(self, depth: int) -> Query:
        below = self.query(depth)
        name, over, by = self._name(), *(self.random.choice(list(below.columns)) for _ in range(2))
        call = self.random.choice(["rank()", "row_number()", f"count({by})", f"lag({by})"])
        frame = (
            self.random.choice(["", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"]) if call.startswith("count") else ""
        )
        text = f"SELECT *, {call} OVER (PARTITION BY {over} ORDER BY {by}{{}}{frame}) AS {name} FROM ({{}}) AS t"
        every = "".join(f", {column} NULLS LAST" for column in below.columns)
        kind: Kind = below.columns[by] if call.startswith("lag") else "number"
        columns = {**below.columns, name: kind}
        plain = call == "rank()" or (call.startswith("count") and not frame)
        return Query(text.format("", below.ours), text.format("" if plain else every, below.batch), columns)

    def _limit(self, depth: int) -> Query:
        below = self.query(depth)
        by = self.random.choice(list(below.columns))
        head, tail = "SELECT * FROM", f"LIMIT {self.random.choice([1, 2, 5])}{self.random.choice(['', ' OFFSET 1'])}"
        every = ", ".join([by, *below.columns])
        return Query(
            f"{head} ({below.ours}) AS t ORDER BY {by} {tail}",
            f"{head} ({below.batch}) AS t ORDER BY {every} {tail}",
            below.columns,
        )

    def _subquery(self, depth: int) -> Query:
        below = self.query(depth)
        numbers = below.of("number")
        if not numbers:
            return below
        name, relation = self.random.choice(numbers), self.random.choice(sorted(GROWTHS))
        if self.random.random() < 0.2:
            made = self._name()
            lateral = f"LATERAL (SELECT max(o.b) AS {made} FROM {relation} AS o WHERE o.a = t.{name}) AS x"
            return self._made(below, f"SELECT t.*, x.{made} FROM {{}}, {lateral}", {**below.columns, made: "number"})
        condition = self.random.choice(
            [
                f"{name} < (SELECT max(o.a) FROM {relation} AS o)",
                f"{name} IN (SELECT o.b FROM {relation} AS o)",
                f"EXISTS (SELECT 1 FROM {relation} AS o WHERE o.a = t.{name})",
                f"NOT EXISTS (SELECT 1 FROM {relation} AS o WHERE o.a = t.{name})",
                f"{name} NOT IN (SELECT o.b FROM {relation} AS o WHERE o.b IS NOT NULL)",
                f"{name} > 2 OR {name} <= (SELECT count(*) FROM {relation} AS o WHERE o.a = t.{name} AND o.b > 0)",
            ]
        )
        return self._made(below, f"SELECT * FROM {{}} WHERE {condition}", below.columns)


def _both(left: Query, right: Query) -> tuple[tuple[str, str], tuple[str, str]]:
    return (left.ours, right.ours), (left.batch, right.batch)
