"""The rows of a child table: taken out of the JSON of a record, or of an array of records, by the database.

The record is staged beside its parent's row, so that a row and the records in it are merged together or not at all. Spark has checked every
value of the JSON text, and the database casts each member to the type of its column.
"""

from __future__ import annotations

from collections.abc import Mapping

from psycopg import sql

from headgate.connectors.postgres import Connection
from headgate.plan.target_definitions import INDEX, ChildColumn, ChildTable, TableName
from headgate.runtime.targets.postgres_columns import identifier
from headgate.runtime.targets.table_rows import OP, WRITE
from headgate.schema import types as t
from headgate.schema.formats.postgres import to_postgres

STAGE = sql.Identifier("pg_temp", "hg_stage")
_RECORD = sql.Identifier("e", "v")


class ChildRows:
    """Writes one child table. ``columns`` are the types that it has."""

    def __init__(self, child: ChildTable, columns: Mapping[str, str]) -> None:
        self._child = child
        self._columns = columns

    @property
    def name(self) -> TableName:
        return self._child.table

    @property
    def columns(self) -> Mapping[str, str]:
        """The types that the columns have."""
        return self._columns

    def replace_rows(
        self, connection: Connection, key: Mapping[str, sql.Composable], condition: sql.Composable
    ) -> None:
        """Put the records of the staged rows in the place of those that the table has for their keys. ``key`` has the values of the
        parent's key in a staged row `s`."""
        written = sql.SQL("{} = {} AND ({})").format(sql.Identifier("s", OP), sql.Literal(WRITE), condition)
        same = sql.SQL(" AND ").join(
            sql.SQL("{} = {}").format(sql.Identifier("hg", name), value) for name, value in key.items()
        )
        table = identifier(self._child.table)
        connection.execute(
            sql.SQL("DELETE FROM {} AS hg USING {} AS s WHERE {} AND {}").format(table, STAGE, same, written)
        )
        connection.execute(self._insert(key, written))

    def _insert(self, key: Mapping[str, sql.Composable], written: sql.Composable) -> sql.Composed:
        names = [*key, *([INDEX] if self._child.is_array else []), *(one.column.name for one in self._child.columns)]
        values = [*key.values(), *([sql.SQL("e.n - 1")] if self._child.is_array else [])]
        values += [self._value(one) for one in self._child.columns]
        return sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} AS s CROSS JOIN LATERAL {} WHERE {} AND {}").format(
            identifier(self._child.table),
            sql.SQL(", ").join(map(sql.Identifier, names)),
            sql.SQL(", ").join(values),
            STAGE,
            self._records(),
            written,
            self._is_there(),
        )

    def _records(self) -> sql.Composable:
        """The records in the staged JSON of a row, as `e.v`, of an array with the position `e.n`."""
        staged = sql.Identifier("s", self._child.staged.name)
        if self._child.is_array:
            return sql.SQL("jsonb_array_elements({}::jsonb) WITH ORDINALITY AS e(v, n)").format(staged)
        return sql.SQL("(SELECT {}::jsonb) AS e(v)").format(staged)

    def _is_there(self) -> sql.Composable:
        """Whether a record is there. An element that is null has no row. An object inside a JSON document, or one that only groups
        fields, is there if one of its leaves is."""
        is_object = sql.SQL("jsonb_typeof({}) = 'object'").format(_RECORD)
        field = self._child.staged.field
        if self._child.is_array or (field.path is not None and field.path.inside is None):
            return is_object
        leaves = [sql.SQL("{} IS NOT NULL").format(_text(one.path)) for one in self._child.columns]
        return sql.SQL("{} AND ({})").format(is_object, sql.SQL(" OR ").join(leaves))

    def _value(self, one: ChildColumn) -> sql.Composable:
        type_, final = one.column.field.type, one.column.postgres
        if self._columns.get(one.column.name) == "numeric" and final in ("double precision", "real"):
            final = "numeric"  # it was widened so; a cast to double would keep 15 digits, and one to real 6
        if isinstance(type_, t.Array) and final.endswith("[]"):
            return _array(one.path, type_.element, final)
        if final == "jsonb":
            return sql.SQL("NULLIF({}, 'null'::jsonb)").format(_json(one.path))
        return _cast(_text(one.path), type_, final)


def _cast(text: sql.Composable, type_: t.Type, final: str) -> sql.Composable:
    if isinstance(type_, t.Bytes) and final == "bytea":
        return sql.SQL("decode({}, 'base64')").format(text)
    if final.lower().startswith(("varchar", "character", "char", "bpchar")):
        return text  # an explicit cast cuts what is too long; an assignment refuses it
    return sql.SQL("({})::{}").format(text, sql.SQL(final))


def _array(path: tuple[str, ...], element: t.Type, final: str) -> sql.Composable:
    item = _cast(sql.SQL("i.v #>> '{}'"), element, final.removesuffix("[]"))
    if isinstance(element, t.Json) or to_postgres(element) == "jsonb":
        item = sql.SQL("i.v")
    return sql.SQL(
        "CASE WHEN jsonb_typeof({0}) = 'array' THEN "
        "ARRAY(SELECT {1} FROM jsonb_array_elements({0}) WITH ORDINALITY AS i(v, n) ORDER BY i.n)::{2} END"
    ).format(_json(path), item, sql.SQL(final))


def _json(path: tuple[str, ...]) -> sql.Composable:
    return sql.SQL("({} #> {})").format(_RECORD, sql.Literal(list(path)))


def _text(path: tuple[str, ...]) -> sql.Composable:
    return sql.SQL("({} #>> {})").format(_RECORD, sql.Literal(list(path)))
