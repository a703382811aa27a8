"""INSERT INTO … VALUES: literals become values of the columns' types. Nothing is asked and nothing is computed by Spark."""

from __future__ import annotations

import base64
import decimal
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import Object
from headgate.errors import HeadgateError, Span, similar_names
from headgate.plan import plans
from headgate.plan.reading import stream_layout, written_sides
from headgate.resolve import stream_errors as errors
from headgate.resolve.statements import object_id
from headgate.schema import types as t
from headgate.schema.errors import ValueDoesNotFit
from headgate.schema.evolve.merge import can_hold
from headgate.schema.names import ROOT, Found, element_path, field_path, find, value_path
from headgate.schema.parse import read_type
from headgate.schema.render import print_type
from headgate.schema.values import from_json
from headgate.sql.queries import InsertQuery, InsertValues
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.statement import Expression, Kind, Query
from headgate.sql.streams import CreateStream, CreateStreamAs
from headgate.text.cursor import Cursor, Identifier
from headgate.text.lexer import TokenKind, tokenize


def plan_insert(catalog: Catalog, statement: InsertValues) -> plans.InsertRows:
    """The rows as canonical values by column. Raises for values that do not fit, before anything of the script is done."""
    target = insert_target(catalog, object_id(statement.relation))
    columns = _with_nulls(target, insert_columns(target, statement.columns))
    rows = []
    for written in statement.rows:
        if len(written) != len(columns):
            raise errors.WrongNumberOfValues(*who(target), len(written), tuple(c.name for c in columns))
        values = {c.name: _value(target, c, e) for c, e in zip(columns, written, strict=True)}
        rows.append(checked_row(target, values))
    deletes = target.kind is Kind.TABLE and all(_is_key(target, column.name) for column in columns)
    return plans.InsertRows(target.id, tuple(rows), deletes)


def plan_insert_query(
    catalog: Catalog, statement: InsertQuery, query: Query, analysed: AnalysedQuery
) -> plans.InsertQuery:
    """The resolved query, and the columns that its columns go into."""
    target = insert_target(catalog, object_id(statement.relation))
    if statement.emit_changes:
        raise errors.InsertFollows(*who(target))
    columns = insert_columns(target, statement.columns)
    if len(columns) != len(analysed.columns):
        raise errors.WrongNumberOfValues(*who(target), len(analysed.columns), tuple(c.name for c in columns))
    for column, given in zip(columns, analysed.columns, strict=True):
        if given.type is not None and not _goes_into(given.type, column.type):
            raise errors.InsertTypeDiffers(*who(target), column.name, print_type(given.type), print_type(column.type))
    return plans.InsertQuery(target.id, query, tuple(c.name for c in columns))


def _goes_into(have: t.Type, want: t.Type) -> bool:
    """Whether values are of the type, numbers or texts that it can hold, or symbols or bytes that it may hold."""
    match have, want:
        case (t.Text() | t.Enum(), t.Enum()) | (t.Bytes(), t.Bytes()):
            return True  # checked row by row
        case _:
            pass
    return print_type(t.plain(have)).replace(" not null", "") == print_type(t.plain(want)).replace(" not null", "") or (
        not isinstance(have, t.Record | t.Array | t.Map)
        and not isinstance(want, t.Text | t.Json)
        and can_hold(want, have)
    )


def from_result(value: Any, type_: t.Type) -> Any:
    """The canonical value of a value in a result, where bytes are hex digits and json is text."""
    if value is None:
        return None
    match type_:
        case t.Bytes():
            return bytes.fromhex(value)
        case t.Json():
            return str(value)
        case t.Real() | t.Double() if isinstance(value, str):
            return float(value)
        case t.Record(fields):
            return {f.name: from_result(value.get(f.name), f.type) for f in fields}
        case t.Array(element):
            return [from_result(one, element) for one in value]
        case t.Map(inner):
            return {key: from_result(one, inner) for key, one in value.items()}
        case _:
            return from_json(value, type_)


def insert_target(catalog: Catalog, id_: int) -> Object:
    target = catalog.get(id_)
    if not isinstance(target.definition, CreateStream | CreateStreamAs):
        raise errors.NotInsertable(target.kind.value, target.name)
    return target


def who(target: Object) -> tuple[str, str]:
    return target.kind.value, target.name


def _is_key(target: Object, name: str) -> bool:
    return any(column.key and column.name == name for column in target.columns)


def insert_columns(target: Object, given: Sequence[Identifier]) -> list[t.Field]:
    """The columns that are inserted: those that are named, or all that are part of keys and values."""
    assert isinstance(target.definition, CreateStream | CreateStreamAs)
    layout = stream_layout(target.definition)
    known = {c.name: t.Field(c.name, c.type) for c in layout.columns if c.origin.section in ("key", "value")}
    if not given:
        return list(known.values())
    found: list[t.Field] = []
    for identifier in given:
        match find(identifier.name, identifier.quoted, list(known)):
            case Found(name) if known[name] not in found:
                found.append(known[name])
            case Found(name):
                raise errors.UnknownInsertColumn(*who(target), name, "it is named twice")
            case _:
                headers = any(c.name == identifier.name for c in layout.columns)
                reason = "it holds headers" if headers else "there is no such column"
                similar = similar_names(identifier.name, list(known))
                raise errors.UnknownInsertColumn(*who(target), identifier.name, reason, similar)
    return found


def checked_row(target: Object, values: Mapping[str, Any]) -> plans.Row:
    """The row with null for what is not given. A table's key is never null."""
    for column in target.columns:
        if column.key and values.get(column.name) is None:
            raise errors.InsertKeyMissing(*who(target), column.name)
    return tuple(values.items())


def _with_nulls(target: Object, columns: Sequence[t.Field]) -> list[t.Field]:
    """The columns, with nulls at every depth on a side that has a schema: the writer gives a field its default, or refuses the
    row."""
    assert isinstance(target.definition, CreateStream | CreateStreamAs)
    by_schema = {name for side in written_sides(target.definition) if side and side.schema for name in side.columns}
    return [replace(c, type=t.with_nulls(c.type)) if c.name in by_schema else c for c in columns]


def _value(target: Object, column: t.Field, expression: Expression) -> Any:
    """The canonical value of a literal. Errors point at it."""
    try:
        cursor = Cursor(expression.text, tokenize(expression.text))
        found = _Literals(cursor, lambda: errors.NoLiteral(*who(target), column.name)).whole()
        path = field_path(ROOT, column.name)
        return None if found is None else from_json(_in_form(found, column.type, path), column.type, path)
    except HeadgateError as error:
        error.span = Span(expression.span.start, expression.span.end)
        raise


class _Struct(list[tuple[str, Any]]):
    """A record whose fields are named. A name may be there twice, until it is known which field it means."""


class _Row(list[Any]):
    """A record whose fields come by position."""


class _Literals:
    """Reads one literal."""

    def __init__(self, cursor: Cursor, refused: Any) -> None:
        self._cursor = cursor
        self._refused = refused

    def whole(self) -> Any:
        found = self.one()
        if self._cursor.token.kind is not TokenKind.END:
            raise self._refused()
        return found

    def one(self) -> Any:
        found = self._plain()
        while self._cursor.take("::"):
            found = self._cast(found)
        return found

    def _plain(self) -> Any:
        cursor, token = self._cursor, self._cursor.token
        if token.kind is TokenKind.STRING:
            return cursor.string()
        if token.kind is TokenKind.NUMBER:
            return _number(cursor.step().value)
        if cursor.take("-"):
            found = self._plain()
            if isinstance(found, bool) or not isinstance(found, int | decimal.Decimal):
                raise self._refused()
            return -found
        match cursor.choose("NULL", "TRUE", "FALSE", "ARRAY", "MAP", "STRUCT", "ROW", "CAST", "DATE", "TIMESTAMPTZ",
                            "TIMESTAMP", "TIME", "UUID"):  # fmt: skip
            case "NULL":
                return None
            case "TRUE":
                return True
            case "FALSE":
                return False
            case "ARRAY":
                return self._items("[", "]")
            case "ROW":
                return _Row(self._items("(", ")"))
            case "MAP":
                return self._entries()
            case "STRUCT":
                return self._fields()
            case "CAST":
                return self._cast_call()
            case None:
                raise self._refused()
            case _:
                found = cursor.take_string()
                if found is None:
                    raise self._refused()
                return found

    def _items(self, opening: str, closing: str) -> list[Any]:
        cursor, found = self._cursor, list[Any]()
        if not cursor.take(opening):
            raise self._refused()
        while not cursor.take(closing):
            if found and not cursor.take(","):
                raise self._refused()
            found.append(self.one())
        return found

    def _entries(self) -> dict[str, Any]:
        cursor, found = self._cursor, dict[str, Any]()
        closing = "]" if cursor.take("[") else ")"
        if closing == ")" and not cursor.take("("):
            raise self._refused()
        while not cursor.take(closing):
            if found and not cursor.take(","):
                raise self._refused()
            key = cursor.take_string()
            if key is None or key in found or not self._assigned():
                raise self._refused()
            found[key] = self.one()
        return found

    def _fields(self) -> _Struct:
        cursor, found = self._cursor, _Struct()
        if not cursor.take("("):
            raise self._refused()
        while not cursor.take(")"):
            if found and not cursor.take(","):
                raise self._refused()
            name = cursor.identifier().name
            if not self._assigned():
                raise self._refused()
            found.append((name, self.one()))
        return found

    def _assigned(self) -> bool:
        """`:=` or `=>`, each of which the lexer may give as one token or two."""
        cursor = self._cursor
        if cursor.take(":=") or cursor.take("=>"):
            return True
        return cursor.take(":") and cursor.take("=")

    def _cast_call(self) -> Any:
        cursor = self._cursor
        if not cursor.take("("):
            raise self._refused()
        inner = self.one()
        if not cursor.take("AS"):
            raise self._refused()
        found = self._cast(inner)
        if not cursor.take(")"):
            raise self._refused()
        return found

    def _cast(self, value: Any) -> Any:
        """The value, checked by the type of a cast. It stays a literal."""
        type_ = read_type(self._cursor)
        if value is not None and not isinstance(type_, t.Named):
            from_json(_in_form(value, type_), type_)
        return value


def _number(text: str) -> int | decimal.Decimal:
    return int(text) if text.isdigit() else decimal.Decimal(text)


def _in_form(value: Any, type_: t.Type, path: str = ROOT) -> Any:
    """A literal in the form in which JSON carries values of the type."""
    match type_, value:
        case t.Record(fields), _Row() if len(value) == len(fields):
            pairs = zip(fields, value, strict=True)
            return {f.name: _nullable_form(item, f.type, field_path(path, f.name)) for f, item in pairs}
        case t.Record(fields), _Struct() | dict():
            known = _by_field(value.items() if isinstance(value, dict) else value, type_, path)
            return {f.name: _nullable_form(known.get(f.name), f.type, field_path(path, f.name)) for f in fields}
        case _, _Row() | _Struct():
            raise ValueDoesNotFit(path, print_type(type_), f"a record of {len(value)} fields")
        case t.Array(element), list():
            return [_nullable_form(item, element, element_path(path)) for item in value]
        case t.Map(inner), dict():
            return {key: _nullable_form(item, inner, value_path(path)) for key, item in value.items()}
        case t.Bytes(), str() if value.startswith("\\x"):
            return base64.b64encode(_hex(value[2:], type_, path)).decode()
        case t.Json(), str():
            return _document(value, type_, path)
        case _:
            return value


def _nullable_form(value: Any, type_: t.Type, path: str) -> Any:
    return None if value is None else _in_form(value, type_, path)


def _by_field(values: Iterable[tuple[str, Any]], type_: t.Record, path: str) -> Mapping[str, Any]:
    """The values by the fields that their names mean. Raises ValueDoesNotFit for a name that means none: it would be lost."""
    found: dict[str, Any] = {}
    for written, item in values:
        match find(written, False, [field.name for field in type_.fields]):
            case Found(name) if name not in found:
                found[name] = item
            case Found(name):
                raise ValueDoesNotFit(path, print_type(type_), "a record", f'field "{name}" is given twice')
            case _:
                raise ValueDoesNotFit(path, print_type(type_), "a record", f'there is no field "{written}"')
    return found


def _hex(text: str, type_: t.Bytes, path: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise ValueDoesNotFit(path, print_type(type_), "string", "it is not pairs of hex digits") from None


def _document(text: str, type_: t.Json, path: str) -> Any:
    try:
        return json.loads(text, parse_float=decimal.Decimal)
    except (ValueError, RecursionError):
        raise ValueDoesNotFit(path, print_type(type_), "string", "it is not valid JSON") from None
