"""CREATE and ALTER MATERIALIZATION."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from headgate.schema.types import Type
from headgate.sql import options as o, statement as s
from headgate.sql.errors import NestedTooDeep, RepeatedClause
from headgate.sql.objects import Target, print_full_type
from headgate.text.cursor import Cursor, Identifier
from headgate.text.errors import InvalidNumber


@dataclass(frozen=True, slots=True)
class TableOptions(o.Options, owner="the postgres target"):
    """The table that is written."""

    table: str | None = o.option()


@dataclass(frozen=True, slots=True)
class IndexOptions(o.Options, owner="the elasticsearch target"):
    """The index that is written."""

    index: str | None = o.option()


@dataclass(frozen=True, slots=True)
class MaterializationOptions(o.Options, owner="the materialization"):
    """Options of CREATE MATERIALIZATION. ADOPT allows it to write an existing table or index. ``seed_backfill`` counts how often the
    target was filled anew by a statement."""

    on_incompatible_schema_change: Literal["BACKFILL", "DISABLE BINDING", "DISABLE TASK", "ABORT"] | None = o.option()
    on_error: o.OnError = o.option("HALT", aliases=("ON INVALID",))
    nested: Literal["FLATTEN", "TABLES", "JSON"] | None = o.option()
    delta_updates: bool = o.option(False)
    adopt: bool = o.option(False)
    seed_backfill: int | None = o.option()


@dataclass(frozen=True, slots=True)
class PostgresTarget:
    """The rows are written to a table."""

    connection: s.ObjectName = field(metadata=s.names(s.Kind.CONNECTION))
    options: TableOptions

    def sql(self) -> str:
        return f"POSTGRES CONNECTION {s.print_name(self.connection)} {o.print_options(self.options)}"


@dataclass(frozen=True, slots=True)
class ElasticsearchTarget:
    """The rows are written to an index."""

    connection: s.ObjectName = field(metadata=s.names(s.Kind.CONNECTION))
    options: IndexOptions

    def sql(self) -> str:
        return f"ELASTICSEARCH CONNECTION {s.print_name(self.connection)} {o.print_options(self.options)}"


@dataclass(frozen=True, slots=True)
class OnDemandTarget:
    """The rows are computed when a client asks for them."""

    def sql(self) -> str:
        return "ON DEMAND"


MaterializationTarget: TypeAlias = PostgresTarget | ElasticsearchTarget | OnDemandTarget


@dataclass(frozen=True, slots=True)
class ObjectType:
    """``OBJECT (…)``: fields that may have pointers, native types and objects of their own."""

    fields: tuple[MaterializedField, ...]

    def sql(self) -> str:
        return "OBJECT (" + ", ".join([field.sql() for field in self.fields]) + ")"


@dataclass(frozen=True, slots=True)
class MaterializedField:
    """``pointer``: where the value is in the row; by default the field's name. ``native``: a type in the target's
    words."""

    name: Identifier
    type: Type | ObjectType
    pointer: str | None = None
    nullable: bool = False
    required: bool = False
    native: str | None = None

    def sql(self) -> str:
        return s.words(
            s.print_identifier(self.name),
            self.type.sql() if isinstance(self.type, ObjectType) else print_full_type(self.type),
            f"FROM {s.print_string(self.pointer)}" if self.pointer is not None else "",
            "NULL" if self.nullable else "",
            "REQUIRED" if self.required else "",
            f"AS {s.print_string(self.native)}" if self.native is not None else "",
        )


@dataclass(frozen=True, slots=True)
class FieldList:
    """The fields are listed in the statement."""

    fields: tuple[MaterializedField, ...]

    def sql(self) -> str:
        return s.block([field.sql() for field in self.fields])


@dataclass(frozen=True, slots=True)
class Pointer:
    """A JSON pointer."""

    text: str


@dataclass(frozen=True, slots=True)
class RecommendedFields:
    """All columns, and the fields of records down to ``depth`` or to the leaves, without those in ``exclude``."""

    depth: int | None = None
    exclude: tuple[s.ObjectName | Pointer, ...] = ()

    def sql(self) -> str:
        excluded = [
            s.print_string(item.text) if isinstance(item, Pointer) else s.print_name(item) for item in self.exclude
        ]
        return s.words(
            "RECOMMENDED",
            f"DEPTH {self.depth}" if self.depth is not None else "",
            f"EXCLUDE {s.block(excluded)}" if excluded else "",
        )


Fields: TypeAlias = FieldList | RecommendedFields


@dataclass(frozen=True, slots=True)
class CreateMaterialization(s.Create):
    """CREATE MATERIALIZATION … FROM relation INTO target."""

    kind = s.Kind.MATERIALIZATION
    relation: s.ObjectName = field(metadata=s.names(*s.RELATIONS))
    target: MaterializationTarget
    fields: Fields | None = None
    with_options: MaterializationOptions = MaterializationOptions()

    def sql(self) -> str:
        return s.clauses(
            self.head(),
            f"FROM {s.print_name(self.relation)}",
            f"INTO {self.target.sql()}",
            f"FIELDS {self.fields.sql()}" if self.fields is not None else "",
            o.print_with_options(self.with_options),
        )


@dataclass(frozen=True, slots=True)
class BackfillMaterialization(s.Alter):
    """ALTER MATERIALIZATION … BACKFILL: bring the target in step with all rows of the relation."""

    def sql(self) -> str:
        return f"{self.head()} BACKFILL"


@dataclass(frozen=True, slots=True)
class SetMaterializationFields(s.Alter):
    """ALTER MATERIALIZATION … SET FIELDS."""

    fields: Fields
    with_options: o.ChangeOptions = o.ChangeOptions()

    def sql(self) -> str:
        given = o.print_with_options(self.with_options)
        return s.words(self.head(), f"SET FIELDS {self.fields.sql()}", given)


MAX_DEPTH = 64  # levels of OBJECT in OBJECT; the parser recurses once per level


def create_materialization(cursor: Cursor) -> CreateMaterialization:
    exists = s.if_not_exists(cursor)
    name = s.object_name(cursor)
    cursor.expect("FROM")
    relation = s.object_name(cursor)
    cursor.expect("INTO")
    target = _target(cursor)
    fields = _fields(cursor) if cursor.take("FIELDS") else None
    given = o.with_options(cursor, MaterializationOptions)
    return CreateMaterialization(name, relation, target, fields, given, if_not_exists=exists)


def _target(cursor: Cursor) -> MaterializationTarget:
    """Read where the rows are written."""
    match cursor.choose("POSTGRES", "ELASTICSEARCH", "ON DEMAND"):
        case "POSTGRES":
            cursor.expect("CONNECTION")
            return PostgresTarget(s.object_name(cursor), o.options(cursor, TableOptions))
        case "ELASTICSEARCH":
            cursor.expect("CONNECTION")
            return ElasticsearchTarget(s.object_name(cursor), o.options(cursor, IndexOptions))
        case "ON DEMAND":
            return OnDemandTarget()
        case _:
            raise cursor.unexpected()


def _fields(cursor: Cursor) -> Fields:
    """Read a list of fields, or RECOMMENDED."""
    if not cursor.take("RECOMMENDED"):
        return FieldList(_field_list(cursor, 1))
    depth = _depth(cursor) if cursor.take("DEPTH") else None
    exclude = tuple(_excluded(cursor) for _ in cursor.items()) if cursor.take("EXCLUDE") else ()
    return RecommendedFields(depth, exclude)


def _excluded(cursor: Cursor) -> s.ObjectName | Pointer:
    pointer = cursor.take_string()
    return Pointer(pointer) if pointer is not None else s.object_name(cursor)


def _depth(cursor: Cursor) -> int:
    token = cursor.token
    depth = cursor.whole_number()
    if depth == 0:
        raise InvalidNumber(token.value, "a whole number above 0").at(token.span)
    return depth


def _field_list(cursor: Cursor, depth: int) -> tuple[MaterializedField, ...]:
    """Read fields in parentheses. ``depth`` counts the levels of OBJECT around them."""
    if depth > MAX_DEPTH:
        raise NestedTooDeep(MAX_DEPTH).at(cursor.token.span)
    return tuple(_field(cursor, depth) for _ in cursor.items())


def _field(cursor: Cursor, depth: int) -> MaterializedField:
    """Read one field. The clauses after its type may come in any order, each once."""
    name = cursor.identifier()
    type_ = _field_type(cursor, depth)
    clauses: dict[str, str] = {}
    while True:
        start = cursor.token
        word = cursor.choose("FROM", "NOT NULL", "NULL", "REQUIRED", "AS")
        if word is None:
            break
        if word in clauses or {word, *clauses} >= {"NULL", "NOT NULL"}:
            raise RepeatedClause(word).at(start.span)
        clauses[word] = cursor.string() if word in ("FROM", "AS") else word
    return MaterializedField(
        name, type_, clauses.get("FROM"), "NULL" in clauses, "REQUIRED" in clauses, clauses.get("AS")
    )


def _field_type(cursor: Cursor, depth: int) -> Type | ObjectType:
    if cursor.at("OBJECT", "("):
        cursor.expect("OBJECT")
        return ObjectType(_field_list(cursor, depth + 1))
    return s.column_type(cursor)


def backfill(cursor: Cursor, target: Target) -> BackfillMaterialization | None:
    if not cursor.take("BACKFILL"):
        return None
    return BackfillMaterialization(target.kind, target.name, if_exists=target.if_exists)


def set_fields(cursor: Cursor, target: Target) -> SetMaterializationFields | None:
    if not cursor.take("SET FIELDS"):
        return None
    fields = _fields(cursor)
    change = o.with_options(cursor, o.ChangeOptions)
    return SetMaterializationFields(target.kind, target.name, fields, change, if_exists=target.if_exists)
