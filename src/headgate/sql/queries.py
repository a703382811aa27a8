"""SELECT, INSERT and SET search_path, and where the body of a query ends.

The statement parser does not read a query, it only finds its end. It counts brackets, so ten thousand of them need no
stack.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.errors import similar_names
from headgate.sql import statement as s
from headgate.sql.errors import UnclosedBracket, UnknownSetting, UnopenedBracket
from headgate.text.cursor import Cursor, Identifier
from headgate.text.errors import EmptyIdentifier
from headgate.text.lexer import Token, TokenKind, shortened


@dataclass(frozen=True, slots=True)
class Select(s.Statement):
    """A query that runs once or, with ``emit_changes``, until ``limit`` changes have been returned or the client
    stops."""

    words = "SELECT"
    query: s.Query
    emit_changes: bool = False
    limit: int | None = None

    def sql(self) -> str:
        emit = (
            s.words("EMIT CHANGES", f"LIMIT {self.limit}" if self.limit is not None else "")
            if self.emit_changes
            else ""
        )
        return s.clauses(self.query.text, emit)


@dataclass(frozen=True, slots=True)
class InsertValues(s.Statement):
    """INSERT INTO relation VALUES rows."""

    words = "INSERT INTO"
    relation: s.ObjectName
    rows: tuple[tuple[s.Expression, ...], ...]
    columns: tuple[Identifier, ...] = ()

    def sql(self) -> str:
        columns = s.print_identifiers(self.columns) if self.columns else ""
        rows = ["(" + ", ".join([expression.text for expression in row]) + ")" for row in self.rows]
        return s.clauses(s.words("INSERT INTO", s.print_name(self.relation), columns), "VALUES " + ",\n    ".join(rows))


@dataclass(frozen=True, slots=True)
class InsertQuery(s.Statement):
    """INSERT INTO relation query: runs once over the rows that are there. ``emit_changes`` is refused when it is planned."""

    words = "INSERT INTO"
    relation: s.ObjectName
    query: s.Query
    columns: tuple[Identifier, ...] = ()
    emit_changes: bool = False

    def sql(self) -> str:
        columns = s.print_identifiers(self.columns) if self.columns else ""
        emit = "EMIT CHANGES" if self.emit_changes else ""
        return s.clauses(s.words("INSERT INTO", s.print_name(self.relation), columns), self.query.text, emit)


@dataclass(frozen=True, slots=True)
class SetSearchPath(s.Statement):
    """The schemas in their order. No schema means DEFAULT."""

    words = "SET"
    path: tuple[s.ObjectName, ...]

    def sql(self) -> str:
        path = ", ".join([s.print_name(schema) for schema in self.path])
        return f"SET search_path = {path or 'DEFAULT'}"


@dataclass(frozen=True, slots=True)
class ShowSearchPath(s.Statement):
    """SHOW search_path."""

    words = "SHOW"

    def sql(self) -> str:
        return "SHOW search_path"


_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())
# Words that may end a body. Most tokens are none of these, and the loop passes over them quickly.
_MARKS = _CLOSING | {";", "EMIT"}
_NOTHING: frozenset[str] = frozenset()
_PARTITION = frozenset({"PARTITION"})
_ITEM_ENDS = frozenset({",", ")"})
STARTS = ("SELECT", "WITH", "VALUES", "(")


def read_query(cursor: Cursor, *, before_partition_by: bool = False) -> s.Query:
    """Read the query that begins here. It ends with the statement, before EMIT CHANGES, or before an outer PARTITION
    BY."""
    if not at_query(cursor):
        raise cursor.unexpected()
    first = _skip(cursor, stop_at=_PARTITION if before_partition_by else _NOTHING)
    span = cursor.span_from(cursor.tokens[first].start)
    return s.Query(cursor.text[span.start : span.end], span=span)


def at_query(cursor: Cursor) -> bool:
    """Whether a query begins here."""
    if cursor.token.word in STARTS:
        return True
    for start in STARTS[:3]:
        cursor.expecting(start)
    return False


def read_expression(cursor: Cursor) -> s.Expression:
    """Read the expression that begins here. It ends before a comma, a closing bracket, EMIT CHANGES or the statement's
    end."""
    first = _skip(cursor, stop_at=_ITEM_ENDS)
    if cursor.index == first:
        cursor.expecting("an expression")
        raise cursor.unexpected()
    span = cursor.span_from(cursor.tokens[first].start)
    return s.Expression(cursor.text[span.start : span.end], span=span)


def take_emit_changes(cursor: Cursor) -> bool:
    """Step over EMIT CHANGES if it comes next. Many statements accept it for users of ksqlDB."""
    return cursor.take("EMIT CHANGES")


def _skip(cursor: Cursor, stop_at: frozenset[str]) -> int:
    """Step over the body and return the index of its first token.

    Outside of brackets it ends with the statement, at EMIT CHANGES and at the given words. One tight loop: a body of
    a megabyte has hundreds of thousands of tokens.
    """
    tokens = cursor.tokens
    first = index = cursor.index
    open_: list[Token] = []
    while True:
        word = tokens[index].word
        if word in _OPENING:
            open_.append(tokens[index])
        elif word in _MARKS or word in stop_at:
            if open_ and word in _CLOSING:
                _close(open_, tokens[index])
            elif _ends(tokens, index, stop_at, open_):
                break
        elif not word and tokens[index].kind is TokenKind.END:
            _refuse_open(open_)
            break
        index += 1
    cursor.index = index
    return first


def _ends(tokens: list[Token], index: int, stop_at: frozenset[str], open_: list[Token]) -> bool:
    """Whether the body ends at this token, which is one of those that may end it."""
    word = tokens[index].word
    if word == ";":
        _refuse_open(open_)
        return True
    if open_:
        return False
    if word in _CLOSING and word not in stop_at:
        raise UnopenedBracket(word).at(tokens[index].span)
    if word == "EMIT":
        return _at_emit_changes(tokens, index)
    return word != "PARTITION" or tokens[index + 1].word == "BY"


def _at_emit_changes(tokens: list[Token], index: int) -> bool:
    """Whether EMIT CHANGES here is the clause: the statement's end or LIMIT must follow. Otherwise the words are
    names."""
    if tokens[index + 1].word != "CHANGES":
        return False
    after = tokens[index + 2]
    return after.kind is TokenKind.END or after.word in (";", "LIMIT")


def _refuse_open(open_: list[Token]) -> None:
    """Raise for the innermost bracket that is still open."""
    if open_:
        raise UnclosedBracket(open_[-1].word).at(open_[-1].span)


def _close(open_: list[Token], token: Token) -> None:
    """Close the innermost bracket. Raises if it is one of another kind."""
    opened = open_.pop()
    if _OPENING[opened.word] != token.word:
        raise UnclosedBracket(opened.word).at(opened.span)


def select(cursor: Cursor) -> Select:
    query = read_query(cursor)
    emit = take_emit_changes(cursor)
    return Select(query, emit, cursor.whole_number() if emit and cursor.take("LIMIT") else None)


def insert(cursor: Cursor) -> InsertValues | InsertQuery:
    """Read INSERT INTO with rows or with a query."""
    cursor.expect("INSERT INTO")
    relation = s.object_name(cursor)
    columns = _columns(cursor)
    if cursor.take("VALUES"):
        return InsertValues(relation, cursor.several(_row), columns)
    query = read_query(cursor)
    return InsertQuery(relation, query, columns, take_emit_changes(cursor))


def _columns(cursor: Cursor) -> tuple[Identifier, ...]:
    """Read a column list. A parenthesis that no name follows belongs to the query."""
    if cursor.at("(") and cursor.at_name(1):
        return cursor.identifiers()
    cursor.expecting("(")
    return ()


def _row(cursor: Cursor) -> tuple[s.Expression, ...]:
    return cursor.in_parentheses(read_expression)


def set_(cursor: Cursor) -> SetSearchPath:
    """Read SET search_path, which is the only setting."""
    cursor.expect("SET")
    if not cursor.at("SEARCH_PATH"):
        _unknown(cursor)
    cursor.step()
    if not cursor.take("="):
        cursor.expect("TO")
    if cursor.take("DEFAULT"):
        return SetSearchPath(())
    return SetSearchPath(cursor.several(_schema))


def _schema(cursor: Cursor) -> s.ObjectName:
    """Read the name of a schema. As in PostgreSQL, it may be a string."""
    start = cursor.token.start
    text = cursor.take_string()
    if text is None:
        return s.object_name(cursor, most=2)
    if not text:
        raise EmptyIdentifier().at(cursor.span_from(start))
    return s.ObjectName((Identifier(text, quoted=True),), span=cursor.span_from(start))


def _unknown(cursor: Cursor) -> None:
    """Raise for another setting than search_path."""
    if cursor.token.kind is not TokenKind.WORD:
        cursor.expecting("search_path")
        raise cursor.unexpected()
    name = cursor.token.value
    raise UnknownSetting(shortened(name), similar_names(name, ("search_path",))).at(cursor.token.span)
