"""A materialization ON DEMAND: its definition, its gRPC service, and what a client asks of it. Pure.

A filter is analysed by our own analysis over the materialization's fields. It can read nothing else, so that it needs no rights of
its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NoReturn

import jiter

from headgate.catalog.catalog import Catalog, object_comment
from headgate.catalog.objects import Object, is_on_demand
from headgate.errors import HeadgateError, Span, raise_all, similar_names
from headgate.plan import materialization_errors as errors
from headgate.plan.materialization_errors import MaterializationCannotQuarantine, NativeTypeRefused
from headgate.plan.materialized_fields import resolve_fields
from headgate.plan.on_demand_messages import PACKAGE
from headgate.plan.relations import fields_without_column, named_types
from headgate.plan.target_definitions import (
    ON_DEMAND_VIEW,
    ROW_COLUMNS,
    Fields,
    OnDemandDefinition,
    RowFilter,
)
from headgate.schema import types as t
from headgate.schema.errors import NameClash, SchemaError
from headgate.schema.formats.protobuf.names import type_name
from headgate.schema.names import ROOT, Found, field_path, find, force_quotes
from headgate.schema.render import print_type
from headgate.schema.values import from_json, to_json
from headgate.sql import materializations as m
from headgate.sql.query.scope import Column, Relation
from headgate.sql.query.select import analyse
from headgate.sql.query.tree import Project, RelationName, Scan
from headgate.sql.statement import Kind
from headgate.text.cursor import Identifier
from headgate.text.lexer import TokenKind, tokenize

_OPENING, _CLOSING = ("(", "["), (")", "]")


def plan_on_demand(
    catalog: Catalog, relation: Object, statement: m.CreateMaterialization, name: str, entry: Object | None
) -> OnDemandDefinition:
    """The definition over the relation as it is now. Any relation will do, because its rows are computed as those of a SELECT are."""
    if withheld := fields_without_column(relation):
        raise withheld[0]
    _check_options(statement, name)
    _check_service(catalog, name, entry)
    fields = resolve_fields(catalog, relation, name, statement.fields)
    for one in fields:
        for _, leaf in one.leaves():
            if leaf.native is not None:
                reason = "a materialization ON DEMAND has no target with types of its own"
                raise NativeTypeRefused(name, leaf.name, leaf.native, reason, "Leave AS out.")
    raise_all(_equal_paths(fields))
    resolve = named_types(catalog)
    key = tuple((c.name, t.map_named(c.type, resolve)) for c in relation.columns if c.key)
    on_error = statement.with_options.on_error
    return OnDemandDefinition(name, relation.id, fields, key, on_error, object_comment(relation))


def _equal_paths(fields: Fields) -> Iterator[HeadgateError]:
    """Leaves that flat rows could not tell apart, because a name has dots in it."""
    seen: dict[str, str] = {}
    for one in fields:
        for above, leaf in one.leaves():
            names = [each.name for each in (*above, leaf)]
            path = reduce(field_path, names, ROOT)
            first = seen.setdefault(".".join(names), path)
            if first != path:
                yield NameClash(".".join(names), first, path)


def check_has_task(entry: Object, action: str) -> None:
    """Raises NoTaskOnDemand for a materialization without a task."""
    if is_on_demand(entry):
        raise errors.NoTaskOnDemand(entry.name, action)


def _check_options(statement: m.CreateMaterialization, name: str) -> None:
    options = statement.with_options
    if options.on_error == "QUARANTINE":
        raise MaterializationCannotQuarantine(name, "it is ON DEMAND, and no task could send a row through again")
    for given, words in (
        (options.nested is not None, "NESTED"),
        (options.adopt, "ADOPT"),
        (options.delta_updates, "DELTA UPDATES"),
        (options.on_incompatible_schema_change is not None, "ON INCOMPATIBLE SCHEMA CHANGE"),
    ):
        if given:
            raise errors.OptionNotOnDemand(name, words)


# Services


def service_word(name: str) -> str:
    """The last part of the name of a materialization's service: its name in camel case, with the characters that Protobuf allows."""
    return type_name(re.sub(r"[^A-Za-z0-9]+", "_", name), "")


def _check_service(catalog: Catalog, name: str, entry: Object | None) -> None:
    for other in catalog.of_kind(Kind.MATERIALIZATION):
        if entry is not None and other.id == entry.id:
            continue
        if is_on_demand(other) and service_word(other.name) == service_word(name):
            raise errors.ServiceNameTaken(name, f"{PACKAGE}.{service_word(name)}", catalog.display_name(other.id))


def check_renamed_service(catalog: Catalog, entry: Object, name: str) -> None:
    """Raises ServiceNameTaken if a materialization cannot have another name."""
    if is_on_demand(entry):
        _check_service(catalog, name, entry)


def on_demand_materializations(catalog: Catalog) -> Iterator[Object]:
    """All materializations ON DEMAND, in the order of their creation."""
    for entry in sorted(catalog.of_kind(Kind.MATERIALIZATION), key=lambda one: one.id):
        if is_on_demand(entry):
            yield entry


# What a client asks


@dataclass(frozen=True, slots=True)
class RowsRequest:
    """The parts of a call, as the client writes them. An empty ``filter`` is none, no ``fields`` are all."""

    filter: str = ""
    fields: tuple[str, ...] = ()
    limit: int | None = None
    key: str | None = None


def chosen_fields(definition: OnDemandDefinition, names: Sequence[str]) -> Fields:
    """The fields of these names, or all. Raises UnknownRowField."""
    known = [field.name for field in definition.fields]
    chosen = set()
    for name in names:
        found = find(name, name in known, known)
        if not isinstance(found, Found):
            raise errors.UnknownRowField(definition.name, name, similar_names(name, known))
        chosen.add(found.name)
    return tuple(field for field in definition.fields if not names or field.name in chosen)


def checked_limit(limit: int | None) -> int | None:
    if limit is not None and not 0 <= limit < 2**31:
        raise errors.MalformedLimit(str(limit))
    return limit


# Filters


def row_filter(catalog: Catalog, definition: OnDemandDefinition, text: str, passed: Fields) -> RowFilter | None:
    """The filter as a query that also returns the fields ``passed``; None for an empty text. Spans of errors are offsets in
    ``text``."""
    if not text.strip():
        return None
    _check_brackets(definition, text)
    names = [force_quotes(name) for name in (*(field.name for field in passed), *ROW_COLUMNS)]
    before = f"SELECT {', '.join(names)}, (\n"
    query = f"{before}{text}\n) AS {force_quotes('hg:match')} FROM {force_quotes(ON_DEMAND_VIEW)} AS {force_quotes(definition.name)}"
    relation = _relation(definition)

    def find_relation(parts: tuple[Identifier, ...]) -> Relation:
        if [part.name for part in parts] != [ON_DEMAND_VIEW]:
            raise errors.FilterNotCondition(definition.name, "it reads another relation")
        return relation

    try:
        found = analyse(query, find_relation, named_types(catalog))
    except HeadgateError as error:
        if error.span is None:
            raise
        if error.span.end <= len(before):  # an aggregate makes the columns around it wrong
            raise errors.FilterNotCondition(definition.name, "it needs more than the fields of the row") from error
        start = max(0, error.span.start - len(before))
        error.span = Span(start, max(start, error.span.end - len(before)))
        raise
    match = found.columns[-1]
    if not isinstance(found.tree, Project) or not isinstance(found.tree.input, Scan) or not found.row_by_row:
        raise errors.FilterNotCondition(definition.name, "it needs more than the fields of the row")
    value = found.tree.columns[-1].value
    if value.subqueries:
        raise errors.FilterNotCondition(definition.name, "it has a subquery")
    if match.type is not None and not isinstance(match.type, t.Boolean):
        raise errors.FilterNotCondition(definition.name, f"its type is {print_type(t.plain(match.type))}")
    scan = found.tree.input
    by_ref = {output.ref: name for output, name in zip(scan.columns, scan.names, strict=True)}
    return RowFilter(found.spark_sql, frozenset(by_ref[ref] for ref in value.uses))


def _relation(definition: OnDemandDefinition) -> Relation:
    columns = tuple(Column(f.name, f.type, f.nullable, f.doc) for f in definition.fields)
    hidden = tuple(Column(name, t.Text()) for name in ROW_COLUMNS)
    return Relation(RelationName(definition.name, 0), ON_DEMAND_VIEW, columns, hidden)


def _check_brackets(definition: OnDemandDefinition, text: str) -> None:
    """Raises unless the text can stand in parentheses and be one expression there."""
    depth = 0
    for token in tokenize(text):
        if token.kind is not TokenKind.SYMBOL:
            continue
        if token.value == ";":
            raise errors.FilterNotCondition(definition.name, "it has a semicolon").at(token.span)
        depth += (token.value in _OPENING) - (token.value in _CLOSING)
        if depth < 0 or (depth == 0 and token.value == ","):
            reason = "a bracket is not opened" if depth < 0 else "it is a list"
            raise errors.FilterNotCondition(definition.name, reason).at(token.span)
    if depth:
        raise errors.FilterNotCondition(definition.name, "a bracket is not closed")


# Keys


def key_values(definition: OnDemandDefinition, relation: str, text: str | None) -> tuple[str | bytes, ...] | None:
    """The values of a key as `object_id` prints it: the text of one value, or a JSON array. Raises MalformedKey."""
    if text is None:
        return None
    if not definition.key_columns:
        raise errors.NoKeyOnDemand(definition.name, relation)
    parts = _key_parts(definition, text)
    if len(parts) != len(definition.key_columns):
        _refuse_key(definition, f"it has {len(parts)} parts and not {len(definition.key_columns)}")
    return tuple(
        _key_value(definition, name, type_, part)
        for (name, type_), part in zip(definition.key_columns, parts, strict=True)
    )


def _key_parts(definition: OnDemandDefinition, text: str) -> list[object]:
    types = [type_ for _, type_ in definition.key_columns]
    if text.startswith("["):
        try:
            found = jiter.from_json(text.encode(), float_mode="decimal", allow_inf_nan=False)
        except ValueError:
            _refuse_key(definition, "it is not JSON")
        if isinstance(found, list):
            return found
    if len(types) == 1 and isinstance(types[0], t.Boolean | t.Integer | t.Bigint | t.Real | t.Double):
        try:
            return [jiter.from_json(text.encode(), float_mode="decimal", allow_inf_nan=False)]
        except ValueError:
            _refuse_key(definition, f"it is no {print_type(types[0])}")
    return [text]


def _key_value(definition: OnDemandDefinition, name: str, type_: t.Type, part: object) -> str | bytes:
    if part is None:
        _refuse_key(definition, f'"{name}" is null')
    try:
        value = from_json(part, type_)
    except SchemaError as error:
        _refuse_key(definition, error.message())
    if isinstance(value, bytes):
        return value
    written = to_json(value, type_)
    return str(written).lower() if isinstance(written, bool) else str(written)


def _refuse_key(definition: OnDemandDefinition, reason: str) -> NoReturn:
    key = tuple((name, print_type(t.plain(type_))) for name, type_ in definition.key_columns)
    raise errors.MalformedKey(definition.name, reason, key)
