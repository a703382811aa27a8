"""The printed form of a type. `parse` is its inverse.

The short form leaves out docs and foreign names. DESCRIBE shows it, and `parse_type(print_type(t))` is `plain(t)`.
The full form is stored in the catalog, and `parse_type(print_type(t, full=True))` is `t` itself. Name and doc of a
record or an enum stand before the parenthesis, so that the comment of a field can follow it:

    record "shop.Order" comment 'one order' (id bigint not null comment 'from the till', size enum "shop.Size"
    default 's' ('s', 'm'))

`spark_ddl` prints a type in the words of Spark SQL, for CAST. (`formats/spark.py` makes Spark's objects, and needs
Spark.)
"""

from __future__ import annotations

from headgate.errors import InternalError
from headgate.schema import types as t
from headgate.schema.names import RESERVED, force_quotes, quote_identifier, quote_literal

WORDS: dict[type, str] = {
    t.Boolean: "boolean",
    t.Integer: "integer",
    t.Bigint: "bigint",
    t.Real: "real",
    t.Double: "double",
    t.Text: "text",
    t.Date: "date",
    t.Time: "time",
    t.Timestamp: "timestamp",
    t.TimestampTz: "timestamptz",
    t.Uuid: "uuid",
    t.Json: "json",
}

# Words that `parse` reads as a built-in type, or refuses. A type of the catalog with such a name is printed in quotes.
_TYPE_WORDS = """
any array bigint bool boolean bytea bytes char character date decimal double enum float float4 float8 f32 f64
i32 i64 int int2 int4 int8 integer json jsonb list long map numeric object real record short smallint string
struct text time timestamp timestamptz tinyint uuid varbinary varchar
"""
TYPE_WORDS = frozenset(_TYPE_WORDS.split())
_RESERVED_ALONE = RESERVED | TYPE_WORDS


def print_type(type_: t.Type, *, full: bool = False) -> str:
    """The short form, or with `full` the form that keeps docs and foreign names."""
    match type_:
        case t.Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case t.Bytes(length):
            return "bytes" if length is None else f"bytes({length})"
        case t.Enum():
            symbols = ", ".join(quote_literal(symbol) for symbol in type_.symbols)
            return f"enum{_about_enum(type_) if full else ''}({symbols})"
        case t.Array(element, nullable):
            return f"array<{print_type(element, full=full)}{_not_null(nullable)}>"
        case t.Map(value, nullable):
            return f"map<text, {print_type(value, full=full)}{_not_null(nullable)}>"
        case t.Record():
            fields = ", ".join([print_field(field, full=full) for field in type_.fields])
            return f"record{_about(type_.name, None, type_.doc) if full else ''}({fields})"
        case t.Named():
            return _print_named(type_)
        case _:
            return WORDS[type(type_)]


def print_field(field: t.Field, *, full: bool = False) -> str:
    """A field of a record, or a column in a list of columns."""
    comment = f" comment {quote_literal(field.doc)}" if full and field.doc is not None else ""
    type_ = print_type(field.type, full=full)
    return f"{quote_identifier(field.name)} {type_}{_not_null(field.nullable)}{comment}"


def _not_null(nullable: bool) -> str:
    return "" if nullable else " not null"


def _about_enum(type_: t.Enum) -> str:
    return _about(type_.name, type_.default, type_.doc)


def _about(name: str | None, default: str | None, doc: str | None) -> str:
    """The name, default and doc of a record or enum, as they stand before the parenthesis."""
    parts = [
        force_quotes(name) if name is not None else "",
        f"default {quote_literal(default)}" if default is not None else "",
        f"comment {quote_literal(doc)}" if doc is not None else "",
    ]
    text = " ".join(part for part in parts if part)
    return f" {text} " if text else ""


def _print_named(type_: t.Named) -> str:
    """A part that was written in quotes keeps them, because it matches exactly. Only a name of one part can be
    mistaken for a built-in type."""
    reserved = _RESERVED_ALONE if len(type_.parts) == 1 else RESERVED
    quoted = type_.quoted or (False,) * len(type_.parts)
    return ".".join(
        force_quotes(part) if exact else quote_identifier(part, reserved)
        for part, exact in zip(type_.parts, quoted, strict=True)
    )


# Spark SQL

# Types that Spark lacks are strings there.
_SCALARS = {
    t.Boolean: "BOOLEAN", t.Integer: "INT", t.Bigint: "BIGINT", t.Real: "FLOAT", t.Double: "DOUBLE", t.Text: "STRING",
    t.Bytes: "BINARY", t.Date: "DATE", t.Time: "TIME", t.Timestamp: "TIMESTAMP_NTZ", t.TimestampTz: "TIMESTAMP",
    t.Uuid: "STRING", t.Json: "STRING", t.Enum: "STRING", t.CatalogEnum: "STRING",
}  # fmt: skip


def spark_ddl(type_: t.Type) -> str:
    """The type in the words of Spark SQL. Named types must have been resolved."""
    match type_:
        case t.Decimal(precision, scale):
            return f"DECIMAL({precision}, {scale})"
        case t.Array(element, _):
            return f"ARRAY<{spark_ddl(element)}>"
        case t.Map(value, _):
            return f"MAP<STRING, {spark_ddl(value)}>"
        case t.Record(fields):
            return f"STRUCT<{', '.join(f'{spark_identifier(f.name)}: {spark_ddl(f.type)}' for f in fields)}>"
        case t.Named(parts):
            raise InternalError(f"type {'.'.join(parts)} was not resolved")
        case _:
            return _SCALARS[type(type_)]


def spark_identifier(name: str) -> str:
    """A name for Spark SQL, always in backticks."""
    return "`" + name.replace("`", "``") + "`"
