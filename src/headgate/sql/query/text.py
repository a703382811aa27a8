"""Read the text of a query as a tree of sqlglot.

`normalise` rewrites the text so that sqlglot's stock PostgreSQL parser reads it as plain grammar, and `parse` has sqlglot
read it. We use sqlglot for its grammar of expressions and clauses, not for its knowledge of functions and types: it would
translate PostgreSQL's functions into Spark's and so change Spark's own. Hence, before sqlglot sees the text:
- every function name gets a mark (`f(` -> `hgf_f(`), so that the call is opaque and keeps its arguments;
- every type after `::` or in CAST becomes a placeholder (`x::decimal(9,2)` -> `x::hgt_0`), and our own parser reads the type;
- identifiers and strings of every spelling become "x" and 'x'.
Offsets are mapped back, so that errors point into the text as it was written.
"""

from __future__ import annotations

import re
import sys
import threading
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError

from headgate.errors import HeadgateError, Span
from headgate.schema.parse import read_type
from headgate.schema.types import Type
from headgate.sql.errors import MalformedQuery, QueryTooDeep
from headgate.text.cursor import Cursor
from headgate.text.lexer import Token, TokenKind, tokenize

FUNCTION_MARK = "hgf_"
TYPE_MARK = "hgt_"
MAX_DEPTH = 1000  # open parentheses; with_room gives the parsers a stack for as many
# Comments become blanks. Line breaks stay, so that the line numbers of sqlglot are those of the text.
_NOT_BLANK = re.compile(r"[^\n]")

# Words before a parenthesis that are grammar, not the name of a function.
_GRAMMAR_WORDS = """
ALL AND ANY AS BETWEEN BY CASE CROSS CUBE DISTINCT ELSE EXCEPT FROM FULL GROUP HAVING ILIKE IN INNER INTERSECT
IS JOIN LATERAL LIKE LIMIT MATERIALIZED NATURAL NOT OFFSET ON OR ORDER OUTER OVER PARTITION PIVOT RECURSIVE
RLIKE ROLLUP ROW SELECT SEMI ANTI SETS SIMILAR SOME TABLESAMPLE THEN TO UNION UNNEST UNPIVOT USING VALUES WHEN
WHERE WITH WITHIN
"""
_GRAMMAR = frozenset(_GRAMMAR_WORDS.split())
# Words that are grammar before a parenthesis only if one of these follows it; otherwise functions of Spark.
_GRAMMAR_BEFORE = {
    "EXISTS": frozenset({"SELECT", "WITH", "VALUES", "("}),
    "FILTER": frozenset({"WHERE"}),
    "ARRAY": frozenset({"SELECT"}),
}
# What cannot follow a comma.
_AFTER_NO_COMMA = frozenset(
    {",", ")", "]", ";", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT"}
)
_CASTS = frozenset({"CAST", "TRY_CAST"})
# Functions with a grammar of their own between the parentheses, and the words that show that it is used.
_KEYWORD_CALLS = {
    "EXTRACT": frozenset({"FROM"}),
    "POSITION": frozenset({"IN"}),
    "SUBSTRING": frozenset({"FROM", "FOR"}),
    "TRIM": frozenset({"FROM", "BOTH", "LEADING", "TRAILING"}),
}
# Operators of Spark that PostgreSQL's grammar does not have, in PostgreSQL's words.
_SAME_IN_POSTGRES = {"RLIKE": "~", "REGEXP": "~", "<=>": "IS NOT DISTINCT FROM"}


@dataclass(frozen=True, slots=True)
class Normalised:
    """The text for sqlglot, with what is needed to find positions and types in the text as it was written."""

    text: str
    types: tuple[Type, ...]  # placeholder number -> type
    breaks: tuple[
        tuple[int, ...], tuple[int, ...]
    ]  # offsets here, and those in the original: where pieces begin, ascending
    length: int  # of the original
    type_spans: tuple[Span, ...] = ()  # of the types, in the original

    def original(self, offset: int) -> int:
        """The offset in the text as it was written."""
        here, there = self.breaks
        after = bisect_right(here, offset)
        end = there[after] if after < len(there) else self.length
        found = there[after - 1] + offset - here[after - 1]
        return found if found < end else end  # what replaces a token may be longer than the token was

    def span(self, start: int, end: int) -> Span:
        first = self.original(start)
        return Span(first, max(first + 1, self.original(end)))


def normalise(text: str) -> Normalised:
    """Rewrite the text of a query for sqlglot."""
    return _Normaliser(text).run()


class _Normaliser:
    """Writes the new text piece by piece and records where each piece came from. What stays as it is between two tokens that
    change is one piece."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.parts: list[str] = []
        self.length = 0
        self.here, self.there = [0], [0]
        self.copied = 0  # up to where the text has been written
        self.types: list[Type] = []
        self.type_spans: list[Span] = []
        self.open: list[bool] = []  # for every open parenthesis: whether it is that of a CAST

    def run(self) -> Normalised:
        at, index = 0, 0
        while True:
            token = self.tokens[index]
            # One character is a blank. A comment becomes blanks, because sqlglot reads some comments as hints.
            if token.start - at > 1 and (between := self.text[at : token.start]).strip(" \n"):
                self._replace(at, token.start, _NOT_BLANK.sub(" ", between))
            if token.kind is TokenKind.END:
                break
            written, type_follows = self._token(token, index)
            if written != self.text[token.start : token.end]:
                self._replace(token.start, token.end, written)
            at, index = token.end, index + 1
            if type_follows:
                at, index = self._type(index)
        self._copy(len(self.text))
        text, types, spans = "".join(self.parts), tuple(self.types), tuple(self.type_spans)
        return Normalised(text, types, (tuple(self.here), tuple(self.there)), len(self.text), spans)

    def _token(self, token: Token, index: int) -> tuple[str, bool]:
        """How the token is written, and whether a type follows it."""
        match token.kind:
            case TokenKind.WORD:
                return self._word(token, index)
            case TokenKind.SYMBOL:
                return self._symbol(token, index)
            case TokenKind.QUOTED:
                mark = FUNCTION_MARK if self.tokens[index + 1].word == "(" else ""
                return '"' + mark + token.value.replace('"', '""') + '"', False
            case TokenKind.STRING:
                return "'" + token.value.replace("'", "''") + "'", False
            case _:
                return token.value, False

    def _word(self, token: Token, index: int) -> tuple[str, bool]:
        """A keyword, a function name or another word. AS inside of CAST is followed by a type."""
        if token.word == "AS" and self.open and self.open[-1]:
            self.open[-1] = False
            return token.value, True
        if token.word in _SAME_IN_POSTGRES:
            return _SAME_IN_POSTGRES[token.word], False
        if self.tokens[index + 1].word == "(" and self._is_function(token, index):
            return FUNCTION_MARK + token.value, False
        return token.value, False

    def _is_function(self, token: Token, index: int) -> bool:
        """Whether a word before a parenthesis is the name of a function."""
        if token.word in _GRAMMAR or token.word in _CASTS:
            return False
        if token.word in _GRAMMAR_BEFORE:
            return self.tokens[index + 2].word not in _GRAMMAR_BEFORE[token.word]
        keywords = _KEYWORD_CALLS.get(token.word)
        return keywords is None or not self._uses(keywords, index + 1)

    def _uses(self, keywords: frozenset[str], index: int) -> bool:
        """Whether one of the words stands directly inside the parenthesis that opens at the index."""
        depth = 0
        for token in self.tokens[index:]:
            depth += (token.word == "(") - (token.word == ")")
            if depth == 0:
                return False
            if depth == 1 and token.kind is TokenKind.WORD and token.word in keywords:
                return True
        return False

    def _symbol(self, token: Token, index: int) -> tuple[str, bool]:
        """A symbol. Parentheses are counted: sqlglot's parser recurses, and would exhaust the stack."""
        if token.word == "(":
            self.open.append(index > 0 and self.tokens[index - 1].word in _CASTS)
            if len(self.open) > MAX_DEPTH:
                raise QueryTooDeep(MAX_DEPTH).at(token.span)
        elif token.word == ")" and self.open:
            self.open.pop()
        elif token.word == "::":
            return "::", True
        elif token.word == ",":
            self._refuse_nothing_after(token, index)
        return _SAME_IN_POSTGRES.get(token.word, token.value), False

    def _refuse_nothing_after(self, comma: Token, index: int) -> None:
        """Refuse a comma that nothing follows. sqlglot would ignore it."""
        after = self.tokens[index + 1]
        if after.kind is TokenKind.END or after.word in _AFTER_NO_COMMA:
            raise MalformedQuery("nothing stands after this comma").at(comma.span)

    def _type(self, index: int) -> tuple[int, int]:
        """Read the type at the index and put a placeholder. Returns the offset and the index behind the type."""
        before = self.tokens[index - 1].end
        cursor = Cursor(self.text, self.tokens, index)
        start = cursor.token.start
        type_ = read_type(cursor)
        span = cursor.span_from(start)
        self._replace(before, span.end, f" {TYPE_MARK}{len(self.types)} ")
        self.types.append(type_)
        self.type_spans.append(span)
        return span.end, cursor.index

    def _replace(self, start: int, end: int, written: str) -> None:
        """Write a piece in place of a part of the text, after what is before it."""
        self._copy(start)
        self._put(written, start)
        self.copied = end

    def _copy(self, end: int) -> None:
        """Copy the text that has not been written yet."""
        if self.copied < end:
            self._put(self.text[self.copied : end], self.copied)

    def _put(self, written: str, original: int) -> None:
        if written:
            self.here.append(self.length)
            self.there.append(original)
            self.parts.append(written)
            self.length += len(written)


# Made once, because sqlglot makes a new one whenever it is given a name.
_POSTGRES, SPARK = Dialect.get_or_raise("postgres"), Dialect.get_or_raise("spark")
# sqlglot reads statements too. Only queries are wanted here.
_STARTS = re.compile(r"\s*(?:\(\s*)*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE)


def parse(normalised: Normalised) -> exp.Expr:
    """The query as a tree of sqlglot. Its errors become errors of ours, with a span in the text as it was written."""
    if not _STARTS.match(normalised.text):
        raise MalformedQuery("it begins with no SELECT, VALUES or WITH")
    try:
        tree = sqlglot.parse_one(normalised.text, read=_POSTGRES)
    except ParseError as error:
        raise _malformed(error, normalised) from None
    except TokenError as error:
        raise MalformedQuery(str(error).splitlines()[0]) from None
    if not isinstance(tree, exp.Query | exp.Values):
        raise MalformedQuery("it is no SELECT, VALUES or WITH")
    return tree


def every_node(tree: exp.Expr) -> list[exp.Expr]:
    """All nodes of a tree, each before what is below it: those of `walk`, which takes three times as long."""
    found = [tree]
    for node in found:  # it grows on the way
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                found.append(value)
            elif isinstance(value, list):
                found.extend(each for each in value if isinstance(each, exp.Expr))
    return found


def _malformed(error: ParseError, normalised: Normalised) -> HeadgateError:
    """sqlglot's error with the position of the token that it did not understand."""
    if not error.errors:
        return MalformedQuery(str(error).splitlines()[0])
    first = error.errors[0]
    # Line and column are those of the last character of the token that was not understood.
    lines = normalised.text.split("\n")
    line, column = int(first.get("line") or 1), int(first.get("col") or 1)
    end = sum(len(text) + 1 for text in lines[: line - 1]) + column
    highlight = first.get("highlight") or " "
    start = max(0, end - len(highlight))
    return MalformedQuery(_reason(first, highlight)).at(normalised.span(start, end))


def _reason(first: dict[str, object], highlight: str) -> str:
    """sqlglot's message in our words: without marks, names of Python classes and what it prints for the end."""
    reason = str(first.get("description") or "").rstrip(".").lower().replace(FUNCTION_MARK, "")
    reason = re.sub(r"but got <token.*sentinel.*>", "but the query ends", reason)
    reason = re.sub(r"required keyword: '.*' missing for <class .*>", "something is missing", reason)
    shown = highlight.replace(FUNCTION_MARK, "").strip()
    return f'{reason} near "{shown}"' if shown and "near" not in reason else reason


FRAMES = 60_000  # calls inside calls; a level of parentheses takes about 20
STACK = 512 * 1024 * 1024  # address space only; pages are touched as the stack grows
SHALLOW = 40  # levels that fit into an ordinary stack, even if the caller has used much of it

Result = TypeVar("Result")
# The stack size and the recursion limit are settings of the whole process.
_ONE_AT_A_TIME = threading.Lock()


def with_room(depth: int, work: Callable[[], Result]) -> Result:
    """Do the work on a stack that is deep enough for a query of this depth.

    sqlglot and our own walk recurse once per level. A deep query therefore runs in a thread with a large stack: with a
    higher recursion limit alone, a long chain of operators overflows the 1 MB stack of an ordinary thread on some
    systems and kills the process.
    """
    if depth <= SHALLOW:
        try:
            return work()
        except RecursionError:
            pass
    try:
        return on_big_stack(work)
    except RecursionError:
        raise QueryTooDeep(MAX_DEPTH) from None


def on_big_stack(work: Callable[[], Result]) -> Result:
    """Do the work once, in a thread whose stack is large enough for the deepest query."""
    done: list[Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits for this one
            failed.append(error)

    with _ONE_AT_A_TIME:
        limit, size = sys.getrecursionlimit(), threading.stack_size(STACK)
        sys.setrecursionlimit(FRAMES)
        try:
            thread = threading.Thread(target=run, name="deep query")
            thread.start()
            thread.join()
        finally:
            sys.setrecursionlimit(limit)
            threading.stack_size(size)
    if failed:
        raise failed[0]
    return done[0]


@lru_cache(maxsize=4096)
def is_plain_name(name: str) -> bool:
    """Whether a relation of this name needs no quotes in a query. Some words are names in statements and keywords in queries."""
    try:
        tree = parse(normalise(f"SELECT {name}.a FROM {name}"))
    except HeadgateError:
        return False
    tables = list(tree.find_all(exp.Table))
    return len(tables) == 1 and tables[0].name == name and len(list(tree.find_all(exp.Column))) == 1
