"""`information_schema` as the SQL standard has it, with `comment` added, and the list of all system relations.

`data_type` is the type as Headgate prints it everywhere. A source is FOREIGN, since its rows lie elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from headgate.catalog.catalog import SYSTEM_SCHEMAS, Catalog, column_comment, fold, object_comment
from headgate.catalog.errors import UnknownObject
from headgate.catalog.names import SearchPath, span_of
from headgate.catalog.objects import Object
from headgate.catalog.store import Reader
from headgate.catalog.system_tables import HEADGATE_CATALOG, Row, SystemRelation, record
from headgate.errors import similar_names
from headgate.schema.render import print_type
from headgate.schema.types import (
    Bigint,
    Bytes,
    Date,
    Decimal,
    Double,
    Field,
    Integer,
    Named,
    Real,
    Time,
    Timestamp,
    TimestampTz,
    Type,
)
from headgate.sql.statement import RELATIONS, Kind, ObjectName
from headgate.text.cursor import Identifier

_TABLE_TYPES = {
    Kind.SOURCE: "FOREIGN",
    Kind.VIEW: "VIEW",
    Kind.MATERIALIZED_VIEW: "VIEW",
    Kind.STREAM: "BASE TABLE",
    Kind.TABLE: "BASE TABLE",
    Kind.COLLECTION: "BASE TABLE",
}
_INSERTABLE = (Kind.STREAM, Kind.TABLE, Kind.COLLECTION)

_SCHEMATA = record(
    "catalog_name text not null",
    "schema_name text not null",
    "schema_owner text",
    "default_character_set_catalog text",
    "default_character_set_schema text",
    "default_character_set_name text",
    "sql_path text",
    "comment text",
)

_TABLES = record(
    "table_catalog text not null",
    "table_schema text not null",
    "table_name text not null",
    "table_type text not null",
    "self_referencing_column_name text",
    "reference_generation text",
    "user_defined_type_catalog text",
    "user_defined_type_schema text",
    "user_defined_type_name text",
    "is_insertable_into text not null",
    "is_typed text not null",
    "commit_action text",
    "comment text",
)

_COLUMNS = record(
    "table_catalog text not null",
    "table_schema text not null",
    "table_name text not null",
    "column_name text not null",
    "ordinal_position integer not null",
    "column_default text",
    "is_nullable text not null",
    "data_type text not null",
    "character_maximum_length integer",
    "character_octet_length integer",
    "numeric_precision integer",
    "numeric_precision_radix integer",
    "numeric_scale integer",
    "datetime_precision integer",
    "interval_type text",
    "interval_precision integer",
    "character_set_catalog text",
    "character_set_schema text",
    "character_set_name text",
    "collation_catalog text",
    "collation_schema text",
    "collation_name text",
    "domain_catalog text",
    "domain_schema text",
    "domain_name text",
    "udt_catalog text",
    "udt_schema text",
    "udt_name text",
    "scope_catalog text",
    "scope_schema text",
    "scope_name text",
    "maximum_cardinality integer",
    "dtd_identifier text not null",
    "is_self_referencing text not null",
    "is_identity text not null",
    "identity_generation text",
    "identity_start text",
    "identity_increment text",
    "identity_maximum text",
    "identity_minimum text",
    "identity_cycle text",
    "is_generated text not null",
    "generation_expression text",
    "is_updatable text not null",
    "comment text",
)


def system_relation(path: SearchPath, written: ObjectName) -> SystemRelation | None:
    """The system relation that a name means; None if it names no system schema, so that objects are looked for."""
    name = written.parts
    if len(name) == 1:
        schemas = [schema for _, schema in path.entries if schema in SYSTEM_SCHEMAS]
        return next((r for r in SYSTEM_RELATIONS if r.schema in schemas and _means(name[0], r.name)), None)
    schema = next((s for s in SYSTEM_SCHEMAS if _means(name[-2], s)), None)
    if schema is None or len(name) > 3:
        return None
    known = {r.name: r for r in SYSTEM_RELATIONS if r.schema == schema}
    found = next((r for r in known.values() if _means(name[-1], r.name)), None)
    if found is None:
        missing = UnknownObject("relation", f"{schema}.{name[-1].name}", similar_names(name[-1].name, known))
        raise missing.at(span_of(written))
    return found


def _means(written: Identifier, name: str) -> bool:
    return written.name == name if written.quoted else fold(written.name) == name


def _schemata(catalog: Catalog, _: Reader) -> Iterator[Row]:
    for schema in catalog.of_kind(Kind.SCHEMA):
        database = catalog.get(schema.parent).name
        yield _row(len(_SCHEMATA.fields), {0: database, 1: schema.name, 7: object_comment(schema)})
    for database, name in _system_schemas(catalog):
        yield _row(len(_SCHEMATA.fields), {0: database, 1: name})


def _tables(catalog: Catalog, _: Reader) -> Iterator[Row]:
    for relation in catalog.of_kind(*RELATIONS):
        insertable = _yes(relation.kind in _INSERTABLE)
        yield _table(catalog.path(relation.id), _TABLE_TYPES[relation.kind], insertable, object_comment(relation))
    for path, _columns in _system_paths(catalog):
        yield _table(path, "VIEW", "NO", None)


def _table(path: tuple[str, ...], type_: str, insertable: str, comment: str | None) -> Row:
    values = {0: path[0], 1: path[1], 2: path[2], 3: type_, 9: insertable, 10: "NO", 12: comment}
    return _row(len(_TABLES.fields), values)


def _columns(catalog: Catalog, _: Reader) -> Iterator[Row]:
    for relation in catalog.of_kind(*RELATIONS):
        yield from _columns_of(catalog, relation)
    for path, fields in _system_paths(catalog):
        for position, field in enumerate(fields, 1):
            yield _column(path, position, field.name, field.type, field.nullable, None)


def _columns_of(catalog: Catalog, relation: Object) -> Iterator[Row]:
    path = catalog.path(relation.id)
    for position, c in enumerate(relation.columns, 1):
        yield _column(path, position, c.name, c.type, c.nullable, column_comment(catalog, c))


def _column(path: tuple[str, ...], position: int, name: str, type_: Type, nullable: bool, comment: str | None) -> Row:
    udt = type_.parts if isinstance(type_, Named) else (None, None, None)
    values: dict[str, object] = {
        "table_catalog": path[0],
        "table_schema": path[1],
        "table_name": path[2],
        "column_name": name,
        "ordinal_position": position,
        "is_nullable": _yes(nullable),
        "data_type": print_type(type_),
        "character_maximum_length": type_.length if isinstance(type_, Bytes) else None,
        "datetime_precision": _fraction_digits(type_),
        **dict(zip(("udt_catalog", "udt_schema", "udt_name"), udt, strict=True)),
        **dict(zip(_NUMERIC, _numeric(type_), strict=True)),
        "dtd_identifier": str(position),
        "is_self_referencing": "NO",
        "is_identity": "NO",
        "is_generated": "NEVER",
        "is_updatable": "NO",
        "comment": comment,
    }
    return tuple(values.get(field.name) for field in _COLUMNS.fields)


_NUMERIC = ("numeric_precision", "numeric_precision_radix", "numeric_scale")


def _numeric(type_: Type) -> tuple[int | None, int | None, int | None]:
    """Precision, its radix, and scale, as the standard counts them."""
    match type_:
        case Integer():
            return 32, 2, 0
        case Bigint():
            return 64, 2, 0
        case Real():
            return 24, 2, None
        case Double():
            return 53, 2, None
        case Decimal():
            return type_.precision, 10, type_.scale
        case _:
            return None, None, None


def _fraction_digits(type_: Type) -> int | None:
    match type_:
        case Date():
            return 0
        case Time() | Timestamp() | TimestampTz():
            return 6
        case _:
            return None


def _system_schemas(catalog: Catalog) -> Iterator[tuple[str, str]]:
    return ((d.name, schema) for d in catalog.of_kind(Kind.DATABASE) for schema in SYSTEM_SCHEMAS)


def _system_paths(catalog: Catalog) -> Iterator[tuple[tuple[str, str, str], tuple[Field, ...]]]:
    for database, schema in _system_schemas(catalog):
        for relation in (r for r in SYSTEM_RELATIONS if r.schema == schema):
            yield (database, schema, relation.name), relation.columns.fields


def _row(width: int, values: Mapping[int, object]) -> Row:
    return tuple(values.get(position) for position in range(width))


def _yes(answer: bool) -> str:
    return "YES" if answer else "NO"


def _all() -> Iterable[SystemRelation]:
    yield SystemRelation("information_schema", "schemata", _SCHEMATA, _schemata)
    yield SystemRelation("information_schema", "tables", _TABLES, _tables)
    yield SystemRelation("information_schema", "columns", _COLUMNS, _columns)
    yield from HEADGATE_CATALOG


SYSTEM_RELATIONS = tuple(_all())
