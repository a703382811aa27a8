"""A schema change that a source takes up, carried to everything downstream: `*` follows, at any depth of views.

Pure: from the catalog and the new schemas to changes of the catalog, and the schemas that sinks must register first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeVar

from headgate.catalog.apply import apply
from headgate.catalog.changes import Change, ColumnsChanged, DefinitionChanged
from headgate.catalog.definitions import STATEMENT, purified_text, statement_of
from headgate.catalog.graph import drop_order
from headgate.catalog.names import DEFAULT_PATH
from headgate.catalog.objects import Column, Comment, Kind, Object
from headgate.catalog.snapshot import Catalog
from headgate.plan.chain import view_query
from headgate.plan.planned import RegisterSchema
from headgate.plan.sides import WrittenSchema
from headgate.plan.sink import EncodedSide, SinkPlan, plan_sink
from headgate.plan.source import plan_source
from headgate.plan.views import derive_growth, view_columns
from headgate.registry.schemas import Schema
from headgate.schema.evolve.merge import holds
from headgate.schema.formats.avro.read import from_avro as avro_type
from headgate.schema.render import print_type
from headgate.schema.types import Record, Type
from headgate.sql.ast.formats import Format, Formats, RegistryFormat, SeedSchema, Side
from headgate.sql.ast.sinks import CreateSink
from headgate.sql.ast.sources import CreateSource
from headgate.sql.ast.statement import Statement
from headgate.sql.ast.views import CreateView
from headgate.sql.query.relation import AnalysedQuery

S = TypeVar("S", CreateSource, CreateSink)
AskTypes = Callable[[Catalog, AnalysedQuery], Sequence[Type]]


@dataclass(frozen=True, slots=True)
class SinkChange:
    """A sink whose schemas change: to be registered, and then frozen into its statement with their ids."""

    sink: Object
    statement: CreateSink
    register: tuple[tuple[Side, RegisterSchema], ...]

    def change(self, ids: Sequence[int]) -> DefinitionChanged:
        statement = self.statement
        for (side, effect), id_ in zip(self.register, ids, strict=True):
            statement = with_seeds(statement, side, (SeedSchema(side, id_, effect.schema.text),))
        return definition(self.sink, statement, self.sink.columns)


@dataclass(frozen=True, slots=True)
class FollowPlan:
    changes: tuple[Change, ...]
    sinks: tuple[SinkChange, ...]


def plan_follow(
    catalog: Catalog, source: Object, schemas: Sequence[WrittenSchema], ask: AskTypes
) -> FollowPlan:
    """What changes when a source's values have these schemas too. Raises if the source cannot have the new columns."""
    changes: list[Change] = [_source_change(source, schemas)]
    after = apply(catalog, *changes)
    for relation in reversed(drop_order(catalog, [source.id])):
        if relation.kind is Kind.VIEW:
            change = _view_change(after, relation, ask)
            if change is not None:
                changes.append(change)
                after = apply(after, change)
    sinks = [o for o in drop_order(catalog, [source.id]) if o.kind is Kind.SINK]
    found = [sink_change(after, sink) for sink in reversed(sinks)]
    return FollowPlan(tuple(changes), tuple(change for change in found if change is not None))


def _source_change(source: Object, schemas: Sequence[WrittenSchema]) -> DefinitionChanged:
    statement = statement_of(source, CreateSource)
    known = _seeds(statement.formats.value, "VALUE")
    new = tuple(SeedSchema("VALUE", schema.id or 0, schema.text, schema.references) for schema in schemas)
    statement = with_seeds(statement, "VALUE", (*known, *new))
    planned = plan_source(statement).columns
    columns = [
        Column(0, c.name, print_type(c.type, full=True), c.nullable, c.key, comment=Comment(imported=c.doc))
        for c in planned
    ]
    return definition(source, statement, evolved_columns(source, columns))


def _view_change(catalog: Catalog, view: Object, ask: AskTypes) -> ColumnsChanged | None:
    analysed = view_query(catalog, view)
    asked = ask(catalog, analysed) if any(c.type is None for c in analysed.columns) else ()
    columns = view_columns(analysed, statement_of(view, CreateView).columns, view.name, asked)
    _, columns = derive_growth(catalog, analysed, columns)
    evolved = evolved_columns(view, columns)
    old = [replace(c, comment=Comment()) for c in view.columns]
    return (
        ColumnsChanged(view.id, evolved) if [replace(c, comment=Comment()) for c in evolved] != old else None
    )


def sink_change(catalog: Catalog, sink: Object) -> SinkChange | None:
    """What a sink needs for its relation as it is now; None if it has it."""
    statement = statement_of(sink, CreateSink)
    planned = plan_sink(catalog, DEFAULT_PATH, unseeded(statement))
    register: list[tuple[Side, RegisterSchema]] = []
    sides: tuple[tuple[Side, EncodedSide | None], ...] = (("KEY", planned.key), ("VALUE", planned.value))
    for side, encoded in sides:
        format_ = (
            statement.formats.key if side == "KEY" and statement.formats.key else statement.formats.value
        )
        frozen = _seeds(format_, side)
        if encoded is None or encoded.schema is None or not frozen:
            continue
        old = json.loads(frozen[-1].schema)
        new = with_defaults(old, json.loads(encoded.schema))
        if new == old or (side == "KEY" and _shape(new) == _shape(old)):
            continue
        schema = Schema(json.dumps(new, ensure_ascii=False))
        register.append((side, RegisterSchema(_registry(planned), f"{planned.topic}-{side.lower()}", schema)))
    return SinkChange(sink, statement, tuple(register)) if register else None


def unwritable(catalog: Catalog, sink: Object) -> tuple[str, ...]:
    """The columns of a sink's relation whose values its schemas cannot hold, because a registry refused others."""
    statement = statement_of(sink, CreateSink)
    frozen = plan_sink(catalog, DEFAULT_PATH, statement)
    needed = plan_sink(catalog, DEFAULT_PATH, unseeded(statement))
    sides = ((frozen.key, needed.key), (frozen.value, needed.value))
    return tuple(column for old, new in sides if old and new for column in _unwritable(old, new))


def _unwritable(old: EncodedSide, new: EncodedSide) -> Iterator[str]:
    if old.schema is None or new.schema is None:
        return
    have, want = avro_type(old.schema), avro_type(new.schema)
    assert isinstance(have, Record)
    assert isinstance(want, Record)
    for column, name in zip(new.columns, new.names or new.columns, strict=True):
        known, field = have.field(name), want.field(name)
        if field is not None and (
            known is None or not holds(known.type, field.type) or (field.nullable and not known.nullable)
        ):
            yield column


def _registry(plan: SinkPlan) -> int:
    assert plan.registry is not None
    return plan.registry


# statements


def definition(object_: Object, statement: Statement, columns: tuple[Column, ...]) -> DefinitionChanged:
    """The object with another purified statement; what the user wrote stays."""
    facts = {
        name: value for name, value in object_.purified_json().items() if name not in (STATEMENT, "mark")
    }
    return DefinitionChanged(
        object_.id,
        object_.statement,
        purified_text(statement, facts),
        object_.dependencies,
        columns,
        object_.growth,
        object_.body,
    )


def _seeds(format_: Format, side: Side) -> tuple[SeedSchema, ...]:
    options = format_.options if isinstance(format_, RegistryFormat) else ()
    return tuple(o for o in options if isinstance(o, SeedSchema) and o.side == side)


def with_seeds(statement: S, side: Side, seeds: Sequence[SeedSchema]) -> S:
    """The statement with these schemas for one side in place of those it has."""
    formats = statement.formats
    if side == "KEY" and formats.key is not None:
        return replace(statement, formats=Formats(formats.value, _with_seeds(formats.key, side, seeds)))
    return replace(statement, formats=Formats(_with_seeds(formats.value, side, seeds), formats.key))


def _with_seeds(format_: Format, side: Side, seeds: Sequence[SeedSchema]) -> Format:
    assert isinstance(format_, RegistryFormat)
    kept = tuple(o for o in format_.options if not (isinstance(o, SeedSchema) and o.side == side))
    return replace(format_, options=(*kept, *seeds))


def unseeded(statement: CreateSink) -> CreateSink:
    def bare(format_: Format) -> Format:
        if not isinstance(format_, RegistryFormat):
            return format_
        return replace(format_, options=tuple(o for o in format_.options if not isinstance(o, SeedSchema)))

    key = statement.formats.key
    return replace(statement, formats=Formats(bare(statement.formats.value), bare(key) if key else None))


# columns


def evolved_columns(old: Object, columns: Sequence[Column]) -> tuple[Column, ...]:
    """A column that keeps its name is the old one; new ones get ids never used."""
    ids = {c.name: c.id for c in old.columns}
    numbers = count(old.next_column)
    return tuple(replace(c, id=ids.get(c.name) or next(numbers)) for c in columns)


# schemas of sinks


def with_defaults(old: Any, new: Any) -> Any:
    """The new Avro schema, in which every field that the old one lacks has the default null: without one, nobody who
    has it could read what was written before, and BACKWARD refuses it."""
    match old, new:
        case {"fields": list() as before}, {"fields": list() as fields}:
            known = {field["name"]: field for field in before}
            made = [
                {**field, "type": with_defaults(known[field["name"]]["type"], field["type"])}
                | ({"default": known[field["name"]]["default"]} if "default" in known[field["name"]] else {})
                if field["name"] in known
                else _defaulted(field)
                for field in fields
            ]
            return {**new, "fields": made}
        case {"items": inner}, {"items": items}:
            return {**new, "items": with_defaults(inner, items)}
        case {"values": inner}, {"values": values}:
            return {**new, "values": with_defaults(inner, values)}
        case _, ["null", branch]:
            inner = old[1] if isinstance(old, list) and len(old) == 2 and old[0] == "null" else old
            return ["null", with_defaults(inner, branch)]
        case _:
            return new


def _defaulted(field: dict[str, object]) -> dict[str, object]:
    type_ = field["type"]
    nullable = isinstance(type_, list) and type_[:1] == ["null"]
    return {**field, "default": None} if nullable and "default" not in field else field


def _shape(schema: object) -> object:
    """The schema without its docs."""
    match schema:
        case dict():
            return {key: _shape(value) for key, value in schema.items() if key != "doc"}
        case list():
            return [_shape(item) for item in schema]
        case _:
            return schema
