"""Where the expressions of a query stand: in the text as it was written, and in the Spark SQL that is made of it.

Spark says which piece of its SQL failed, but the user has never seen that SQL. `mark_written` notes at every node where it
was written, before the analysis rewrites the tree. `written_expressions` then finds the same nodes in the finished SQL.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from headgate.errors import Span
from headgate.sql.query.text import SPARK, TYPE_MARK, Normalised
from headgate.text.lexer import Token, TokenKind, tokenize

LONGEST = 120  # characters of an expression that are kept
# Characters of SQL that are printed to find expressions. Every level of a query prints all below it again, so a very deep
# one is searched only down to some level.
BUDGET = 300_000

_WRITTEN = "written"
# Nodes that compute nothing, so that no error of Spark is about them alone.
_NAMES = (exp.Identifier, exp.Column, exp.Literal, exp.DataType, exp.TableAlias, exp.Star, exp.Var)
# Nodes for which sqlglot knows where they were written.
_WITH_POSITION = (exp.Identifier, exp.Anonymous, exp.Literal)
# What may stand before the first name or literal of an expression and belongs to it. ANY is any word.
ANY = ""
_BEFORE: dict[type, tuple[tuple[str, ...], ...]] = {
    exp.Neg: (("-",),),
    exp.Not: (("NOT",),),
    exp.Paren: (("(",),),
    exp.Cast: (("CAST", "("),),
    exp.TryCast: (("TRY_CAST", "("),),
    exp.Case: (("CASE", "WHEN"), ("CASE",)),
    exp.Array: (("ARRAY", "["),),
    exp.Exists: (("EXISTS", "(", "SELECT"),),
    exp.Extract: (("EXTRACT", "(", ANY, "FROM"),),
    exp.Trim: (("TRIM", "(", ANY), ("TRIM", "(")),
    exp.Substring: (("SUBSTRING", "("),),
    exp.StrPosition: (("POSITION", "("),),
}
# What follows the last name or literal of an expression and begins its end.
_AFTER: dict[type, str] = {exp.Anonymous: "(", exp.Bracket: "["}
_OPENING = frozenset({"(", "[", "CASE"})
_CLOSING = frozenset({")", "]", "END"})


@dataclass(frozen=True, slots=True)
class WrittenExpression:
    """An expression: from ``start`` to ``end`` in the Spark SQL, and the text that was written for it, in one line.

    ``column`` is the position of the query's output column that it is a part of; None for a condition and the like.
    """

    start: int
    end: int
    text: str
    column: int | None = None


def mark_written(nodes: Sequence[exp.Expr], normalised: Normalised) -> None:
    """Note at every node but names the span of the names, literals, functions and types below it. In ``nodes`` a node comes
    before those below it."""
    spans: dict[int, tuple[int, int]] = {}
    # From the leaves up, so that the span of a node is complete when the node is visited.
    for node in reversed(nodes):
        span = spans.get(id(node))
        if isinstance(node, _WITH_POSITION) and (own := _own_span(node, normalised)) is not None:
            span = own if span is None else _joined(span, own)
        if span is not None:
            if not isinstance(node, exp.Identifier):
                node.meta[_WRITTEN] = Span(*span)
            above = id(node.parent)
            other = spans.get(above)
            spans[above] = span if other is None else _joined(other, span)


def pass_mark(before: exp.Expr, after: exp.Expr) -> None:
    """Keep the mark of an expression at the one that replaces it."""
    if _WRITTEN in before.meta:
        after.meta.setdefault(_WRITTEN, before.meta[_WRITTEN])


def _own_span(node: exp.Expr, normalised: Normalised) -> tuple[int, int] | None:
    """Where a name, a function or a literal was written. A mark that stands for a type has the span of the type."""
    meta = node.meta
    if "start" not in meta:
        return None
    if isinstance(node, exp.Identifier) and node.this.startswith(TYPE_MARK):
        number = node.this.removeprefix(TYPE_MARK)
        if number.isdigit():
            type_span = normalised.type_spans[int(number)]
            return type_span.start, type_span.end
    start = normalised.original(meta["start"])
    return start, max(start + 1, normalised.original(meta["end"] + 1))


def _joined(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """The smallest span that contains both."""
    (start, end), (other_start, other_end) = one, other
    return start if start < other_start else other_start, end if end > other_end else other_end


def written_expressions(tree: exp.Expr, sql: str, text: str, columns: int) -> tuple[WrittenExpression, ...]:
    """The expressions of a marked and rewritten tree, whose Spark SQL is ``sql`` and which was written as ``text``. What
    holds another expression comes before it."""
    return tuple(_Search(sql, text).expressions(tree, 0, len(sql), columns))


class _Search:
    """Finds nodes in the Spark SQL by printing each of them, and their texts in the query by its tokens."""

    def __init__(self, sql: str, text: str) -> None:
        self.sql = sql
        self.text = text
        self.tokens = [token for token in tokenize(text) if token.kind is not TokenKind.END]
        self.starts = [token.start for token in self.tokens]
        self.ends = [token.end for token in self.tokens]
        self.left = BUDGET

    def expressions(self, node: exp.Expr, start: int, end: int, columns: int = 0) -> Iterator[WrittenExpression]:
        """The expressions in a node that is printed from ``start`` to ``end``. ``columns`` is the number of output columns of
        the query if the node is all of it, otherwise 0."""
        outputs = node.expressions if isinstance(node, exp.Select) else []
        outputs = outputs if len(outputs) == columns else []
        positions = {id(output): position for position, output in enumerate(outputs)}
        for child, at, until in self._children(node, start, end):
            for found in self._below(child, at, until):
                column = positions.get(id(child))
                yield found if column is None else WrittenExpression(found.start, found.end, found.text, column)

    def _below(self, node: exp.Expr, start: int, end: int) -> Iterator[WrittenExpression]:
        """The node itself, if it computes a value and was written by the user, and the expressions in it."""
        span = node.meta.get(_WRITTEN)
        if span is not None and isinstance(node, exp.Condition):
            yield WrittenExpression(start, end, self._text(node, span))
        yield from self.expressions(node, start, end)

    def _children(self, node: exp.Expr, start: int, end: int) -> Iterator[tuple[exp.Expr, int, int]]:
        """The children that may fail, with the places where they are printed. Most are printed in their order."""
        after = start
        for child in node.iter_expressions():
            if self.left <= 0 or isinstance(child, _NAMES):
                continue
            piece = spark_text(child)
            self.left -= len(piece)
            at = self.sql.find(piece, after, end)
            at = at if at >= 0 else self.sql.find(piece, start, end)
            if at >= 0:
                after = at + len(piece)
                yield child, at, after

    def _text(self, node: exp.Expr, span: Span) -> str:
        """The text in one line. What opens in it is closed, and what closes in it is opened."""
        first, last = bisect_right(self.starts, span.start) - 1, bisect_left(self.ends, span.end)
        first, last = self._balanced(first, min(last, len(self.tokens) - 1))
        if isinstance(node.this, exp.Paren) and isinstance(node, exp.Neg | exp.Not):
            first, last = first - 1, last + 1
        first = self._with_words_before(node, first)
        if (opening := _AFTER.get(type(node))) and self._word(last + 1) == opening:
            last += 1
        first, last = self._balanced(first, last)
        written = " ".join(self.text[self.tokens[first].start : self.tokens[last].end].split())
        return written if len(written) <= LONGEST else written[: LONGEST - 1] + "…"

    def _with_words_before(self, node: exp.Expr, first: int) -> int:
        """The first token of an expression that begins with words such as ``CAST (``, for which sqlglot has no position."""
        for words in _BEFORE.get(type(node), ()):
            before = [self._word(index) for index in range(first - len(words), first)]
            if all(word in (ANY, found) for word, found in zip(words, before, strict=True)):
                return first - len(words)
        return first

    def _balanced(self, first: int, last: int) -> tuple[int, int]:
        """Widen a range of tokens until it has both ends of every bracket and of every CASE in it."""
        missing, depth = 0, 0
        for token in self.tokens[first : last + 1]:
            depth += _step(token)
            if depth < 0:
                missing, depth = missing + 1, 0
        while depth > 0 and last + 1 < len(self.tokens):
            last += 1
            depth += _step(self.tokens[last])
        while missing > 0 and first > 0:
            first -= 1
            missing -= _step(self.tokens[first])
        return first, last

    def _word(self, index: int) -> str:
        return self.tokens[index].word if 0 <= index < len(self.tokens) else ""


def _step(token: Token) -> int:
    """How many brackets a token opens; -1 if it closes one."""
    return (token.word in _OPENING) - (token.word in _CLOSING)


def spark_text(node: exp.Expr) -> str:
    """A node in Spark's SQL. `${name}` is escaped, which Spark replaces by the value of a setting, even inside strings."""
    return str(_copied(node).sql(dialect=SPARK, comments=False, copy=False)).replace("${", "\\u0024{")


def _copied(tree: exp.Expr) -> exp.Expr:
    """A copy to print, which changes the nodes. It lacks what is noted at them: to copy that too took a fifth of an analysis."""
    root = tree.__class__()
    waiting = [(tree, root)]

    def begin(node: exp.Expr, parent: exp.Expr, name: str, index: int | None = None) -> exp.Expr:
        made = node.__class__()
        made.parent, made.arg_key, made.index = parent, name, index
        waiting.append((node, made))
        return made

    while waiting:
        node, copy = waiting.pop()
        for name, value in node.args.items():
            if isinstance(value, exp.Expr):
                copy.args[name] = begin(value, copy, name)
            elif isinstance(value, list):
                copy.args[name] = [
                    begin(each, copy, name, index) if isinstance(each, exp.Expr) else each
                    for index, each in enumerate(value)
                ]
            else:
                copy.args[name] = value
    return root
