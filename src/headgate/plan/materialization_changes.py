"""Statements about materializations: what each changes in the catalog, and what it does outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from headgate.catalog import changes
from headgate.catalog.objects import Dependency, DependencyKind, Object, definition_of
from headgate.plan import plans
from headgate.plan.errors import NotSupportedYet
from headgate.plan.impact import definition
from headgate.plan.indexes import index_name
from headgate.plan.materialization_errors import NoWayInPlace
from headgate.plan.materializations import plan_materialization
from headgate.plan.on_demand import check_has_task
from headgate.plan.plans import ChangeCatalog, Effect, Skip
from headgate.plan.tables import table_name
from headgate.plan.target_definitions import (
    IndexDefinition,
    MaterializationDefinition,
    OnDemandDefinition,
    TableDefinition,
)
from headgate.plan.widening import narrowed_columns
from headgate.resolve.statements import Context, object_id
from headgate.sql.materializations import (
    BackfillMaterialization,
    CreateMaterialization,
    ElasticsearchTarget,
    PostgresTarget,
    SetMaterializationFields,
)


def plan_create(statement: CreateMaterialization, context: Context, made: Object) -> ChangeCatalog:
    """CREATE MATERIALIZATION: the target is checked now, and made by the task when it starts."""
    planned = plan_materialization(context.catalog, statement)
    needs = [Dependency(planned.relation, DependencyKind.READS)]
    if not isinstance(planned, OnDemandDefinition):
        needs.append(Dependency(planned.connection, DependencyKind.CONNECTION))
    created = changes.ObjectCreated(replace(made, dependencies=tuple(needs)))
    return ChangeCatalog(statement.words, (created,), tuple(_provisioned(planned, new=True)))


def _provisioned(planned: MaterializationDefinition, *, new: bool) -> Iterator[Effect]:
    match planned:
        case TableDefinition():
            yield plans.ProvisionTable(planned, new)
        case IndexDefinition():
            yield plans.ProvisionIndex(planned, new)
        case OnDemandDefinition():
            return


def plan_backfill(statement: BackfillMaterialization, context: Context) -> ChangeCatalog:
    """BACKFILL: the definition gets another count, and the task brings its target in step with all rows of the relation."""
    entry = context.catalog.get(object_id(statement.name))
    check_has_task(entry, "BACKFILL")
    known = definition_of(entry, CreateMaterialization)
    planned = plan_materialization(context.catalog, known, entry)
    assert not isinstance(planned, OnDemandDefinition)
    notice = f'materialization "{entry.name}" is brought in step with all rows of its relation'
    _check_refill(planned, "BACKFILL")
    if not planned.merges:
        notice = f'the rows of materialization "{entry.name}" are deleted and written anew'
    change = definition(entry, filled_anew(known), entry.columns)
    return ChangeCatalog(statement.words, (change,), notices=(notice,))


def _check_refill(planned: MaterializationDefinition, what: str) -> None:
    """Nobody knows which rows of an adopted target without a key are those of the relation, and all would be written twice."""
    if not isinstance(planned, OnDemandDefinition) and not planned.merges and planned.adopt:
        raise NotSupportedYet(f"{what} of an adopted target without a key")


def filled_anew(statement: CreateMaterialization) -> CreateMaterialization:
    """The same materialization, whose target must be filled anew."""
    options = statement.with_options
    return replace(statement, with_options=replace(options, seed_backfill=(options.seed_backfill or 0) + 1))


def plan_set_fields(statement: SetMaterializationFields, context: Context) -> ChangeCatalog | Skip:
    """SET FIELDS. A field that narrows needs CONFIRM, because the target is filled anew for it."""
    catalog = context.catalog
    entry = catalog.get(object_id(statement.name))
    known = definition_of(entry, CreateMaterialization)
    if known.fields == statement.fields:
        return Skip(statement.words, f'the fields of materialization "{entry.name}" stay as they are')
    wanted = replace(known, fields=statement.fields)
    planned = plan_materialization(catalog, wanted, entry)
    narrowed = narrowed_columns(plan_materialization(catalog, known, entry), planned)
    if narrowed:
        if not statement.with_options.confirm:
            raise NoWayInPlace(entry.name, narrowed)
        _check_refill(planned, "SET FIELDS with a narrower type")
        wanted = filled_anew(wanted)
    effects = tuple(_provisioned(planned, new=False))
    return ChangeCatalog(statement.words, (definition(entry, wanted, entry.columns),), effects)


def released_targets(dropped: Sequence[Object], *, drop: bool) -> tuple[Effect, ...]:
    """What DROP does to the targets of materializations: it keeps them, unless DROP TARGET says otherwise."""
    return tuple(effect for entry in dropped for effect in _released(entry, drop))


def _released(entry: Object, drop: bool) -> Iterator[Effect]:
    statement = entry.definition
    if not isinstance(statement, CreateMaterialization):
        return
    match statement.target:
        case PostgresTarget(connection, options):
            table = table_name(entry.name, options.table)
            yield plans.ReleaseTable(object_id(connection), table, entry.id, drop)
        case ElasticsearchTarget(connection, options):
            yield plans.ReleaseIndex(object_id(connection), index_name(entry.name, options.index), entry.id, drop)
        case _:
            return
