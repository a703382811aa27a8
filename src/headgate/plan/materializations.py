"""Plans of materializations: what is common to all targets. `plan.tables` makes the columns of a table.

The definition of a materialization is planned again from its statement whenever its relation changes: recommended fields follow,
fields that are listed stay.
"""

from __future__ import annotations

from headgate.catalog.catalog import Catalog, object_comment
from headgate.catalog.objects import Growth, Object, definition_of
from headgate.plan import materialization_errors as errors
from headgate.plan.chain import Chain, chain_of, relation_growth, source_key
from headgate.plan.child_tables import child_tables, split_nested
from headgate.plan.definitions import AT
from headgate.plan.indexes import check_index, index_name
from headgate.plan.materialization_errors import DeltaUpdatesNotForIndex, NestedNotForIndex
from headgate.plan.materialized_fields import resolve_fields
from headgate.plan.on_demand import plan_on_demand
from headgate.plan.relations import fields_without_column, key_columns
from headgate.plan.tables import change_columns, table_columns, table_name
from headgate.plan.target_definitions import (
    Fields,
    IndexDefinition,
    MaterializationDefinition,
    TableDefinition,
    WrittenMaterialization,
)
from headgate.resolve.statements import object_id
from headgate.sql import materializations as m
from headgate.sql.query.functions import CLOCK
from headgate.sql.query.growth import Changing
from headgate.sql.query.tree import ColumnRef
from headgate.sql.query.tree_sql import generates_rows, positioned_sql
from headgate.sql.statement import Kind


def plan_materialization(
    catalog: Catalog, statement: m.CreateMaterialization, entry: Object | None = None
) -> MaterializationDefinition:
    """The materialization over its relation as it is now. Raises whatever is wrong with it. ``entry`` is its object if it exists, which
    may have another name by now."""
    relation = catalog.get(object_id(statement.relation))
    name = statement.name.parts[-1].name if entry is None else entry.name
    if isinstance(statement.target, m.OnDemandTarget):
        return plan_on_demand(catalog, relation, statement, name, entry)
    chain = _check_relation(catalog, relation, name)
    merges = relation.growth is Growth.KEYED and not statement.with_options.delta_updates
    _check_quarantine(chain, statement, name, merges=merges)
    match statement.target:
        case m.PostgresTarget():
            made: WrittenMaterialization = _table(catalog, relation, statement, statement.target, name)
        case m.ElasticsearchTarget():
            made = _index(catalog, relation, statement, statement.target, name)
    _check_free(catalog, statement, made, entry)
    return made


def existing_materialization(catalog: Catalog, entry: Object) -> MaterializationDefinition:
    """A materialization of the catalog, over its relation as it is now."""
    return plan_materialization(catalog, definition_of(entry, m.CreateMaterialization), entry)


def _check_relation(catalog: Catalog, relation: Object, name: str) -> Chain:
    """A target holds rows that are added, or the newest row of each key."""
    chain = chain_of(catalog, relation.id, "a materialization")
    if withheld := fields_without_column(relation):
        raise withheld[0]
    if by_clock := sorted(chain.unstable().rows & CLOCK):
        raise errors.ClockInMaterialization(name, relation.kind.value, relation.name, tuple(by_clock))
    found = relation_growth(catalog, relation)
    if isinstance(found, Changing):
        raise errors.MaterializationOverChanging(
            name, relation.kind.value, relation.name, found.why, found.keep, found.cure
        )
    source = chain.source
    if relation.growth is Growth.KEYED and (
        source.growth is not Growth.KEYED
        or source_key(catalog, relation) != {ColumnRef(source.id, c.id) for c in source.columns if c.key}
    ):
        raise errors.MaterializationKeyNotOfSource(
            name, tuple(key_columns(relation)), source.name, tuple(key_columns(source))
        )
    return chain


def _check_quarantine(chain: Chain, statement: m.CreateMaterialization, name: str, *, merges: bool) -> None:
    """Raises if rows cannot be set aside by the position of their records and sent through again."""
    if statement.with_options.on_error != "QUARANTINE":
        return
    if chain.source.kind is Kind.MATERIALIZED_VIEW:
        raise errors.MaterializationCannotQuarantine(name, "it reads a materialized view, and a row of it is no record")
    views = [(query.tree, [column.name for column in query.columns]) for query in reversed(chain.queries)]
    if positioned_sql("source", [f"v{number}" for number in range(len(views))], views, AT) is None:
        raise errors.MaterializationCannotQuarantine(name, "a row may come from several records")
    if not merges and generates_rows(views):
        raise errors.MaterializationCannotQuarantine(
            name, "a record may give several rows, and some of them would be written twice"
        )


def _table(
    catalog: Catalog, relation: Object, statement: m.CreateMaterialization, target: m.PostgresTarget, name: str
) -> TableDefinition:
    options = statement.with_options
    table, flat = table_name(name, target.options.table), options.nested != "JSON"
    fields = resolve_fields(catalog, relation, name, statement.fields, flat=flat)
    _check_key(relation, fields, name)
    own, nested = split_nested(fields) if options.nested == "TABLES" else (fields, ())
    columns = table_columns(name, own, flat=flat)
    keys = [column for column in columns if column.field.key]
    delta_updates = options.delta_updates and bool(keys)
    if delta_updates:
        columns = change_columns(columns)
    if nested and not keys:
        raise errors.ChildTablesNeedKey(name, nested[0].name, relation.kind.value, relation.name)
    if nested and delta_updates:
        raise errors.ChildTablesOfChanges(name, nested[0].name)
    return TableDefinition(
        name,
        relation.id,
        object_id(target.connection),
        table,
        fields,
        columns,
        tuple(column.name for column in keys),
        options.on_error,
        options.on_incompatible_schema_change,
        options.adopt,
        object_comment(relation),
        child_tables(name, table, keys, nested),
        delta_updates,
    )


def _index(
    catalog: Catalog, relation: Object, statement: m.CreateMaterialization, target: m.ElasticsearchTarget, name: str
) -> IndexDefinition:
    """An index keeps objects as they are. Documents of rows without a key have the position of their record as their `_id`."""
    options = statement.with_options
    if options.nested is not None:
        raise NestedNotForIndex(name, options.nested)
    if options.delta_updates:
        raise DeltaUpdatesNotForIndex(name)
    fields = resolve_fields(catalog, relation, name, statement.fields)
    _check_key(relation, fields, name)
    keys = {field.path.column: field.name for field in fields if field.key and field.path is not None}
    made = IndexDefinition(
        name,
        relation.id,
        object_id(target.connection),
        index_name(name, target.options.index),
        fields,
        tuple(keys[column] for column in key_columns(relation)),
        options.on_error,
        options.on_incompatible_schema_change,
        options.adopt,
        object_comment(relation),
        catalog.display_name(relation.id),
    )
    check_index(made)
    return made


def _check_key(relation: Object, fields: Fields, name: str) -> None:
    """The target must hold every column of the key as it is."""
    held = {field.path.column for field in fields if field.key and field.path is not None and not field.path.fields}
    missing = tuple(column.name for column in relation.columns if column.key and column.name not in held)
    if missing:
        raise errors.KeyNotMaterialized(name, missing, relation.name)


def _check_free(
    catalog: Catalog, statement: m.CreateMaterialization, made: WrittenMaterialization, entry: Object | None
) -> None:
    """Two tasks cannot write one table or index: each would take the other's rows for its own."""
    target = _printed_target(made.name, statement.target)
    for other in catalog.of_kind(Kind.MATERIALIZATION):
        if entry is not None and other.id == entry.id:
            continue
        known = definition_of(other, m.CreateMaterialization)
        if _printed_target(other.name, known.target) == target and _connection(known.target) == made.connection:
            raise errors.TargetTaken(made.name, target, other.name)


def _connection(target: m.MaterializationTarget) -> int | None:
    return None if isinstance(target, m.OnDemandTarget) else target.connection.id


def _printed_target(name: str, target: m.MaterializationTarget) -> str:
    """What a target is called in errors. Targets of one connection with the same name are the same."""
    match target:
        case m.PostgresTarget():
            return f'table "{table_name(name, target.options.table)}"'
        case m.ElasticsearchTarget():
            return f'index "{index_name(name, target.options.index)}"'
        case m.OnDemandTarget():
            return ""
