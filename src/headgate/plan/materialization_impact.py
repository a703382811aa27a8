"""What a change of its relation does to a materialization."""

from __future__ import annotations

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import Object
from headgate.errors import HeadgateError
from headgate.plan.materializations import existing_materialization
from headgate.plan.plans import Consequence, Outcome
from headgate.plan.target_definitions import MaterializationDefinition, OnDemandDefinition, TableDefinition
from headgate.plan.widening import narrowed_columns
from headgate.schema.render import print_type


def materialization_consequence(before: Catalog, after: Catalog, entry: Object, *, all_fit: bool) -> Consequence:
    """What becomes of a materialization. With ``all_fit``, one that can no longer be made raises instead of halting."""
    try:
        new = existing_materialization(after, entry)
        old = existing_materialization(before, entry)
    except HeadgateError as error:
        if all_fit:
            raise
        return Consequence(entry.id, Outcome.HALTS, error.message())
    return changed_target(entry, old, new)


def changed_target(entry: Object, old: MaterializationDefinition, new: MaterializationDefinition) -> Consequence:
    """The fields that a target gains, or that get another type."""
    if not isinstance(new, OnDemandDefinition) and (narrowed := narrowed_columns(old, new)):
        anew = new.on_incompatible in (None, "BACKFILL")
        return Consequence(entry.id, Outcome.FILLED_ANEW if anew else Outcome.HALTS, ", ".join(narrowed))
    known = dict(_types(old))
    gained = [name for name, _ in _types(new) if name not in known]
    if gained:
        return Consequence(entry.id, Outcome.GAINS, ", ".join(gained))
    widened = [f"{name} from {known[name]} to {type_}" for name, type_ in _types(new) if known[name] != type_]
    if widened:
        return Consequence(entry.id, Outcome.WIDENS, ", ".join(widened))
    return Consequence(entry.id, Outcome.UNCHANGED)


def _types(planned: MaterializationDefinition) -> list[tuple[str, str]]:
    if isinstance(planned, TableDefinition):
        return [(name, column.postgres) for name, column in planned.all_columns()]
    return [(field.name, print_type(field.type)) for field in planned.fields]
