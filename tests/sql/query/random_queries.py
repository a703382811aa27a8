"""Random queries over small relations that only grow and relations with keys, in our SQL and in SQLite's.

Every piece is made in both spellings side by side, because they differ where functions return rows, in semi joins and in
grouping sets. Columns get new names at every level, so that no name is ambiguous.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from headgate.schema.types import Array, Bigint, Integer
from headgate.sql.query.growth import Append, Growth, Keyed
from headgate.sql.query.scope import Column, Relation
from headgate.sql.query.tree import RelationName
from headgate.text.cursor import Identifier

COLUMNS = (
    Column("id", Bigint(), False),
    Column("a", Integer()),
    Column("b", Integer()),
    Column("tags", Array(Integer())),
)
GROWTHS: dict[str, Growth] = {
    "ap": Append(),
    "ap2": Append(),
    "k": Keyed((0,)),
    "l": Keyed((0,)),
    "k2": Keyed((0, 1)),
}
Row = tuple[int, int | None, int | None, str | None]


def find_relation(parts: Sequence[Identifier]) -> Relation:
    name = parts[-1].name
    columns = tuple(Column(c.name, c.type, c.nullable and not (name == "k2" and c.name == "a")) for c in COLUMNS)
    return Relation(RelationName(name), name, columns)


# contents


@dataclass
class Contents:
    """The rows of the relations. A keyed relation has one row for each key."""

    random: Random
    appended: dict[str, list[Row]] = field(default_factory=lambda: {"ap": [], "ap2": []})
    keyed: dict[str, dict[tuple[int | None, ...], Row]] = field(default_factory=lambda: {"k": {}, "l": {}, "k2": {}})

    def change(self) -> None:
        """Add rows to the relations that grow, and write and delete keys in the others."""
        for rows in self.appended.values():
            rows += [self._row() for _ in range(self.random.randrange(3))]
        for name, known in self.keyed.items():
            for _ in range(self.random.randrange(4)):
                row = self._row(never_null=name == "k2")
                key = row[:2] if name == "k2" else row[:1]
                known[key] = row
            for gone in [key for key in known if self.random.random() < 0.2]:
                del known[gone]

    def rows(self) -> dict[str, list[Row]]:
        return {**self.appended, **{name: list(known.values()) for name, known in self.keyed.items()}}

    def _row(self, never_null: bool = False) -> Row:
        pick = self.random.choice
        a = pick([0, 1, 2]) if never_null else pick([0, 1, 2, None])
        tags = None if self.random.random() < 0.2 else json.dumps([pick([1, 2]) for _ in range(pick([0, 1, 2]))])
        return pick([1, 2, 3, 4]), a, pick([0, 1, None]), tags


# queries


@dataclass(frozen=True)
class Text:
    """The same text for us and for SQLite."""

    ours: str
    lite: str

    def __add__(self, other: Text | str) -> Text:
        other = same(other) if isinstance(other, str) else other
        return Text(self.ours + other.ours, self.lite + other.lite)


def same(text: str) -> Text:
    return Text(text, text)


@dataclass(frozen=True)
class Query:
    text: Text
    numbers: tuple[str, ...]
    arrays: tuple[str, ...] = ()


class Queries:
    """Makes one random query after another."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.names = 0

    def query(self, depth: int = 3) -> Query:
        if depth == 0:
            return self._base()
        steps: list[Callable[[int], Query]] = [
            self._filter, self._project, self._join, self._join, self._group, self._sets, self._distinct,
            self._set_operation, self._window, self._limit, self._explode, self._explode, self._common, self._depends,
        ]  # fmt: skip
        return self.random.choice(steps)(self.random.randrange(depth))

    def _name(self) -> str:
        self.names += 1
        return f"c{self.names}"

    def _base(self) -> Query:
        relation = self.random.choice(sorted(GROWTHS))
        id_, a, b, tags = (self._name() for _ in range(4))
        text = same(f"SELECT id AS {id_}, a AS {a}, b AS {b}, tags AS {tags} FROM {relation}")
        return Query(text, (id_, a, b), (tags,))

    def _from(self, depth: int) -> tuple[Text, str, Query]:
        below, alias = self.query(depth), f"t{self._name()}"
        return same("(") + below.text + f") AS {alias}", alias, below

    def _some(self, names: Sequence[str], least: int = 1) -> list[str]:
        return self.random.sample(names, self.random.randint(min(least, len(names)), len(names)))

    def _condition(self, alias: str, numbers: Sequence[str]) -> str:
        column = f"{alias}.{self.random.choice(numbers)}"
        other = f"{alias}.{self.random.choice(numbers)}"
        return self.random.choice(
            [
                f"{column} > 1",
                f"{column} = 1",
                f"{column} IS NULL",
                f"{column} = {other}",
                f"{column} + 0 = 2",
            ]
        )

    def _filter(self, depth: int) -> Query:
        text, alias, below = self._from(depth)
        parts = [self._condition(alias, below.numbers) for _ in range(self.random.choice([1, 1, 2]))]
        words = self.random.choice([" AND ", " AND ", " OR "])
        return Query(
            same(f"SELECT {alias}.* FROM ") + text + f" WHERE {words.join(parts)}",
            below.numbers,
            below.arrays,
        )

    def _project(self, depth: int) -> Query:
        text, alias, below = self._from(depth)
        chosen = [(name, self._name()) for name in self._some(below.numbers)]
        computed = [
            (f"{alias}.{old} + 1" if self.random.random() < 0.15 else f"{alias}.{old}", new) for old, new in chosen
        ]
        arrays = [(name, self._name()) for name in below.arrays]
        listed = ", ".join([*(f"{v} AS {n}" for v, n in computed), *(f"{alias}.{a} AS {n}" for a, n in arrays)])
        names = tuple(new for _, new in chosen)
        return Query(same(f"SELECT {listed} FROM ") + text, names, tuple(new for _, new in arrays))

    def _join(self, depth: int) -> Query:
        left_text, left, one = self._from(depth)
        right_text, right, two = self._from(0 if self.random.random() < 0.5 else depth)
        pairs = [
            f"{left}.{self._first(one.numbers)} = {right}.{self._first(two.numbers)}"
            for _ in range(self.random.choice([1, 1, 2]))
        ]
        on = " AND ".join(pairs)
        kind = self.random.choice(
            ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "SEMI", "ANTI"]
        )
        if kind in ("SEMI", "ANTI"):
            whole = same(f"SELECT {left}.* FROM ") + left_text
            there = "EXISTS" if kind == "SEMI" else "NOT EXISTS"
            exists = same(f" WHERE {there} (SELECT 1 FROM ") + right_text + f" WHERE {on})"
            ours = same(f" LEFT {kind} JOIN ") + right_text + f" ON {on}"
            return Query(whole + Text(ours.ours, exists.lite), one.numbers, one.arrays)
        condition = "" if kind == "CROSS JOIN" else f" ON {on}"
        text = same(f"SELECT {left}.*, {right}.* FROM ") + left_text + f" {kind} " + right_text + condition
        return Query(text, (*one.numbers, *two.numbers), (*one.arrays, *two.arrays))

    def _first(self, names: Sequence[str]) -> str:
        """Often the first column, which is most likely to be a key."""
        return names[0] if self.random.random() < 0.6 else self.random.choice(names)

    def _group(self, depth: int) -> Query:
        text, alias, below = self._from(depth)
        keys = self._some(below.numbers, 0) if self.random.random() < 0.8 else []
        shown = [(key, self._name()) for key in (keys if self.random.random() < 0.8 else keys[1:])]
        count, most = self._name(), self._name()
        column = self.random.choice(below.numbers)
        listed = [*(f"{alias}.{key} AS {name}" for key, name in shown), f"count(*) AS {count}"]
        listed.append(f"max({alias}.{column}) AS {most}")
        made = same(f"SELECT {', '.join(listed)} FROM ") + text
        if keys:
            made += f" GROUP BY {', '.join(f'{alias}.{key}' for key in keys)}"
            made += self.random.choice(["", " HAVING count(*) > 1"])
        return Query(made, (*(name for _, name in shown), count, most))

    def _sets(self, depth: int) -> Query:
        """ROLLUP, which SQLite has not: one SELECT for each set."""
        text, alias, below = self._from(depth)
        keys = self._some(below.numbers)[:2]
        names, count, number = [self._name() for _ in keys], self._name(), self._name()
        with_number = self.random.random() < 0.5
        plain = ", ".join(f"{alias}.{key}" for key in keys)
        listed = ", ".join(f"{alias}.{key} AS {name}" for key, name in zip(keys, names, strict=True))
        extra = f", grouping_id() AS {number}" if with_number else ""
        ours = f"SELECT {listed}, count(*) AS {count}{extra} FROM {text.ours} GROUP BY ROLLUP ({plain})"
        lite = " UNION ALL ".join(
            self._set(
                alias,
                keys[:kept],
                names,
                count,
                f", {len(keys) - kept} AS {number}" if with_number else "",
                text,
            )
            for kept in range(len(keys), -1, -1)
        )
        return Query(Text(ours, lite), (*names, count, *([number] if with_number else [])))

    def _set(self, alias: str, kept: Sequence[str], names: Sequence[str], count: str, extra: str, text: Text) -> str:
        values = [*(f"{alias}.{key}" for key in kept), *["NULL"] * (len(names) - len(kept))]
        listed = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
        group = f" GROUP BY {', '.join(f'{alias}.{key}' for key in kept)}" if kept else ""
        return f"SELECT {listed}, count(*) AS {count}{extra} FROM {text.lite}{group}"

    def _distinct(self, depth: int) -> Query:
        text, alias, below = self._from(depth)
        names = self._some(below.numbers)
        return Query(same(f"SELECT DISTINCT {', '.join(f'{alias}.{n}' for n in names)} FROM ") + text, tuple(names))

    def _set_operation(self, depth: int) -> Query:
        left_text, left, one = self._from(depth)
        right_text, right, two = self._from(depth)
        width = self.random.randint(1, min(len(one.numbers), len(two.numbers)))
        words = self.random.choice(["UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT"])
        names = one.numbers[:width]
        if words == "UNION ALL" and self.random.random() < 0.5:
            return self._labelled(left_text, left, names, right_text, right, two.numbers[:width])
        first = same(f"SELECT {', '.join(f'{left}.{n}' for n in names)} FROM ") + left_text
        second = same(f"SELECT {', '.join(f'{right}.{n}' for n in two.numbers[:width])} FROM ") + right_text
        return Query(first + f" {words} " + second, names)

    def _labelled(
        self,
        left_text: Text,
        left: str,
        ours: Sequence[str],
        right_text: Text,
        right: str,
        theirs: Sequence[str],
    ) -> Query:
        """UNION ALL with a constant in each side, now and then the same."""
        label, other = self._name(), self.random.choice([1, 2, 2])
        first = same(f"SELECT {', '.join(f'{left}.{n}' for n in ours)}, 1 AS {label} FROM ") + left_text
        second = same(f"SELECT {', '.join(f'{right}.{n}' for n in theirs)}, {other} FROM ") + right_text
        return Query(first + " UNION ALL " + second, (*ours, label))

    def _window(self, depth: int) -> Query:
        text, alias, below = self._from(depth)
        number = self._name()
        every = ", ".join(f"{alias}.{n}" for n in below.numbers)
        by = ", ".join(f"{alias}.{n}" for n in self._some(below.numbers)[:2])
        function = self.random.choice(["row_number()", "row_number()", "count(*)"])
        order = f" ORDER BY {every}" if function == "row_number()" else ""
        made = same(f"SELECT {every}, {function} OVER (PARTITION BY {by}{order}) AS {number} FROM ") + text
        if self.random.random() < 0.6:
            outer = f"t{self._name()}"
            made = same(f"SELECT {outer}.* FROM (") + made + f") AS {outer} WHERE {outer}.{number} = 1"
        return Query(made, (*below.numbers, number))

    def _limit(self, depth: int) -> Query:
        text, alias, below = self._from(depth)
        every = ", ".join(f"{alias}.{n}" for n in below.numbers)
        made = same(f"SELECT {every} FROM ") + text + f" ORDER BY {every} LIMIT {self.random.choice([1, 3])}"
        outer = f"t{self._name()}"
        return Query(same(f"SELECT {outer}.* FROM (") + made + f") AS {outer}", below.numbers)

    def _explode(self, depth: int) -> Query:
        text, alias, below = self._from(min(depth, 1))
        if not below.arrays:
            return self._distinct(depth)
        array, position, value = f"{alias}.{below.arrays[0]}", self._name(), self._name()
        kept = self._some(below.numbers)
        plain = ", ".join(f"{alias}.{n}" for n in kept)
        with_position, outer = self.random.random() < 0.6, self.random.random() < 0.3
        chosen = [position, value] if with_position else [value]
        function = f"{'pos' if with_position else ''}explode"
        shown = "".join(f", e.{name}" for name in chosen)
        laterals = {
            True: f"SELECT {plain}{shown} FROM {text.ours} LATERAL VIEW OUTER {function}({array}) e AS {', '.join(chosen)}",
            False: self.random.choice(
                [
                    f"SELECT {plain}{shown} FROM {text.ours} LATERAL VIEW {function}({array}) e AS {', '.join(chosen)}",
                    f"SELECT {plain}, {function}({array}) AS ({', '.join(chosen)}) FROM {text.ours}",
                    f"SELECT {plain}{shown} FROM {text.ours}, LATERAL {function}({array}) AS e({', '.join(chosen)})",
                ]
            ),
        }
        pairs = [f"e.key AS {position}", f"e.value AS {value}"][0 if with_position else 1 :]
        joined = "LEFT JOIN" if outer else "JOIN"
        lite = f"SELECT {plain}, {', '.join(pairs)} FROM {text.lite} {joined} json_each({array}) AS e"
        return Query(Text(laterals[outer], lite), (*kept, *chosen))

    def _common(self, depth: int) -> Query:
        """One WITH, read twice."""
        below, name, one, two = self.query(depth), f"w{self._name()}", self._name(), self._name()
        x, y = self._first(below.numbers), self._first(below.numbers)
        kind = self.random.choice(["JOIN", "LEFT JOIN"])
        body = f"SELECT x.{x} AS {one}, y.{y} AS {two} FROM {name} AS x {kind} {name} AS y ON x.{x} = y.{x}"
        return Query(same(f"WITH {name} AS (") + below.text + f") {body}", (one, two))

    def _depends(self, depth: int) -> Query:
        """A subquery in an expression."""
        text, alias, below = self._from(depth)
        other = self._base()
        column, theirs, value = self._first(below.numbers), self._first(other.numbers), self._name()
        inner = same("(") + other.text + ") AS s"
        whole = same(f"SELECT {alias}.*")
        match self.random.randrange(3):
            case 0:
                made = whole + " FROM " + text + f" WHERE {alias}.{column} IN (SELECT s.{theirs} FROM " + inner + ")"
            case 1:
                test = " WHERE EXISTS (SELECT 1 FROM "
                made = whole + " FROM " + text + test + inner + f" WHERE s.{theirs} = {alias}.{column})"
            case _:
                made = whole + f", (SELECT max(s.{theirs}) FROM " + inner + f") AS {value} FROM " + text
                return Query(made, (*below.numbers, value), below.arrays)
        return Query(made, below.numbers, below.arrays)
