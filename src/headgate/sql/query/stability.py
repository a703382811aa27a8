"""Which functions with changing results, such as rand and now, the columns and the rows of a query depend on.

A column depends on what it is computed from, by way of subqueries and other columns. The rows depend on what decides
whether a row is there: conditions, groups, and the columns of DISTINCT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from headgate.sql.query import tree as n

Functions: TypeAlias = frozenset[str]
NONE: Functions = frozenset()


@dataclass(frozen=True, slots=True)
class Unstable:
    """The functions that each column of a relation depends on, and those that its rows depend on."""

    columns: tuple[Functions, ...] = ()
    rows: Functions = NONE


class Stability:
    """What every column and the rows of a tree depend on. ``unstable_of`` knows the relations that it reads."""

    def __init__(self, tree: n.Node, unstable_of: Callable[[str], Unstable]) -> None:
        self.unstable_of = unstable_of
        self.columns: dict[n.Ref, Functions] = {}
        rows = self._rows(tree)
        self.result = Unstable(tuple(self.columns.get(ref, NONE) for ref in n.columns_of(tree)), rows)

    def of(self, expression: n.Expr) -> Functions:
        """The functions that the value of an expression depends on."""
        found = expression.unstable.union(*(self.columns.get(ref, NONE) for ref in expression.uses))
        for subquery in expression.subqueries:
            found |= self._rows(subquery) | self._any(n.columns_of(subquery))
        return found

    def _rows(self, node: n.Node) -> Functions:
        """What the rows depend on. Notes on the way what the columns do, from the bottom up."""
        rows = NONE.union(*map(self._rows, n.inputs_of(node)))
        match node:
            case n.Scan():
                known = self.unstable_of(node.relation)
                for output, functions in zip(node.columns, known.columns, strict=False):
                    self.columns[output.ref] = functions
                return known.rows
            case n.Values():
                for position, ref in enumerate(node.columns):
                    self.columns[ref] = self._all(row[position] for row in node.rows)
            case n.Project():
                for output in node.columns:
                    self.columns[output.ref] = self.of(output.value)
            case n.Filter():
                return rows | self.of(node.condition)
            case n.Generate():
                made = self.of(node.call)
                self.columns |= dict.fromkeys(node.columns, made)
                return rows | made
            case n.Aggregate():
                for key in node.keys:
                    self.columns[key.ref] = self.of(key.value)
                for call in node.calls:
                    self.columns[call.ref] = self.of(call.value) | rows
                return rows | self._any(key.ref for key in node.keys)
            case n.Window():
                for call in node.calls:
                    self.columns[call.ref] = self.of(call.value) | rows
            case n.Join():
                return rows if node.on is None else rows | self.of(node.on)
            case n.Distinct():
                return rows | self._any(n.columns_of(node))
            case n.SetOperation():
                self._rename(n.columns_of(node.left), node.columns)
                self._rename(n.columns_of(node.right), node.columns)
                plain = node.all and node.operator == "union"
                return rows if plain else rows | self._any(node.columns)
            case n.Limit():
                by = node.input.by if isinstance(node.input, n.Sort) else ()
                return rows | self._all(by)
            case n.Subquery():
                self._rename(n.columns_of(node.input), node.columns)
            case n.Sort():
                pass
        return rows

    def _all(self, expressions: Iterable[n.Expr]) -> Functions:
        return NONE.union(*map(self.of, expressions))

    def _any(self, refs: Iterable[n.Ref]) -> Functions:
        return NONE.union(*(self.columns.get(ref, NONE) for ref in refs))

    def _rename(self, old: Sequence[n.Ref], new: Sequence[n.Ref]) -> None:
        for a, b in zip(old, new, strict=False):
            self.columns[b] = self.columns.get(b, NONE) | self.columns.get(a, NONE)
