"""What DESCRIBE and EXPLAIN say of a materialization: its fields, where each comes from, and what it is in the target."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import Column, Comment, DependencyKind, Object
from headgate.errors import HeadgateError
from headgate.plan.index_mapping import mapped_leaves
from headgate.plan.materializations import existing_materialization
from headgate.plan.materialized_fields import print_pointer
from headgate.plan.on_demand import service_word
from headgate.plan.on_demand_messages import PACKAGE
from headgate.plan.target_definitions import MaterializationDefinition, OnDemandDefinition, TableDefinition
from headgate.schema import types as t
from headgate.schema.render import print_type


def materialized_columns(catalog: Catalog, entry: Object) -> tuple[Column, ...]:
    """The fields of a materialization as columns. Those of its relation if it can no longer be planned, because DESCRIBE must work
    then too."""
    try:
        planned = existing_materialization(catalog, entry)
    except HeadgateError:
        return catalog.get(next(d.on for d in entry.dependencies if d.use is DependencyKind.READS)).columns
    if isinstance(planned, TableDefinition):
        found = [(name, c.field.type, c.nullable, c.field.key, c.doc) for name, c in planned.all_columns()]
    else:
        found = [(f.name, f.type, f.nullable, f.key, f.doc) for f in planned.fields]
    return tuple(
        Column(number, name, type_, nullable, key, comment=Comment(explicit=doc))
        for number, (name, type_, nullable, key, doc) in enumerate(found, start=1)
    )


def mapping(catalog: Catalog, entry: Object) -> Iterator[tuple[str, str]]:
    """The target, and for every field the path in the row, the type there, and the type in the target."""
    try:
        planned = existing_materialization(catalog, entry)
    except HeadgateError as error:
        yield "cannot run", error.message()
        return
    yield from described(planned)


def described(planned: MaterializationDefinition) -> Iterator[tuple[str, str]]:
    """The properties of a planned materialization."""
    if isinstance(planned, OnDemandDefinition):
        yield from _on_demand(planned)
        return
    if not isinstance(planned, TableDefinition):
        yield "writes index", planned.index
        yield "on error", planned.on_error
        for path, leaf, type_ in mapped_leaves(planned):
            pointer = "" if leaf.path is None else print_pointer(leaf.path.tokens)
            source = "" if leaf.source is None else f" {print_type(t.plain(leaf.source))}"
            yield f"field {path}", f"{pointer}{source} -> {type_}{'' if leaf.nullable else ' not null'}"
        return
    yield "writes table", str(planned.table)
    for child in planned.children:
        yield "writes table", f"{child.table}{' with a row for each element' if child.is_array else ''}"
    yield "on error", planned.on_error
    for name, column in planned.all_columns():
        field = column.field
        pointer = "" if field.path is None else print_pointer(field.path.tokens)
        source = "" if field.source is None else f" {print_type(t.plain(field.source))}"
        nullable = "" if column.nullable else " not null"
        yield f"field {name}", f"{pointer}{source} -> {column.postgres}{nullable}"


def _on_demand(planned: OnDemandDefinition) -> Iterator[tuple[str, str]]:
    """The service, and for every leaf its path in the row, the type there, and the type that clients get."""
    yield "is served by", f"{PACKAGE}.{service_word(planned.name)}"
    yield "on error", planned.on_error
    for field in planned.fields:
        for above, leaf in field.leaves():
            pointer = "" if leaf.path is None else print_pointer(leaf.path.tokens)
            source = "" if leaf.source is None else f" {print_type(t.plain(leaf.source))}"
            nullable = "" if leaf.nullable or any(one.nullable for one in above) else " not null"
            path = ".".join(one.name for one in (*above, leaf))
            yield f"field {path}", f"{pointer}{source} -> {print_type(t.plain(leaf.type))}{nullable}"
