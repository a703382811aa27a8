"""`headgate plan` and `headgate apply`: a script as desired state, shown as a table and then run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from textwrap import fill
from typing import assert_never

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import DefinitionChanged, ObjectCreated
from headgate.catalog.objects import Column, Object
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import Connections
from headgate.connectors.errors import TopicNotFound
from headgate.control.desired_state import ScriptItem, desired_state
from headgate.control.engine import Engine
from headgate.control.executor import Executor, PlannedStatement
from headgate.control.sessions import Cancellation, Done, Result, ResultColumns, ResultRows, Session
from headgate.plan import plans
from headgate.schema.formats.avro.read import load_tree
from headgate.schema.formats.avro.tree import Record as AvroRecord
from headgate.schema.render import print_type
from headgate.sql.statement import Kind

COLUMNS = ResultColumns(tuple((name, "text") for name in ("object", "kind", "action", "detail")))
WIDTH = 80  # of a line of details


def plan(engine: Engine, text: str) -> Iterator[Result]:
    """A table of what `apply` would do, one row per statement."""
    with _scripts(engine) as scripts:
        yield from scripts.plan(text)


def apply(engine: Engine, text: str) -> Iterator[Result]:
    """The table of the plan, then the results of its statements, and at the end how many objects changed."""
    try:
        with _scripts(engine) as scripts:
            yield from scripts.apply(text)
    finally:
        engine.wake()


@contextmanager
def _scripts(engine: Engine) -> Iterator[Scripts]:
    """Scripts with connections of their own. A script may create a secret and use it, and its clients must not outlive it."""
    store = engine.store
    connections = Connections(store.keys.reveal, engine.project.address)
    try:
        yield Scripts(store, connections, Executor(store, connections, engine, engine.follower.changed_schemas))
    finally:
        connections.close()


@dataclass(frozen=True, slots=True)
class Scripts:
    """Scripts as desired state of a catalog. ``executor`` plans and runs them."""

    store: SqliteStore
    connections: Connections
    executor: Executor

    def plan(self, text: str) -> Iterator[Result]:
        yield from plan_table(self.planned(text)[0])

    def apply(self, text: str) -> Iterator[Result]:
        """Run the very plans that the table shows."""
        items, steps = self.planned(text)
        yield from plan_table(items)
        if any(item.action != "keep" for item in items):
            yield from self.executor.run_steps(steps, Session(), Cancellation())
        created, changed, kept = (
            sum(item.action == action for item in items) for action in ("create", "change", "keep")
        )
        yield Done(f"APPLY: {created} created, {changed} changed, {kept} kept")

    def planned(self, text: str) -> tuple[tuple[ScriptItem, ...], tuple[PlannedStatement, ...]]:
        """The items of the script with the details of their plans, and the plans."""
        catalog = self.store.load()
        state = desired_state(catalog, text, self.store.keys.reveal)
        steps = self.executor.plan(text, Session(), state.statements)
        return tuple(with_details(state.items, steps, catalog, self.connections)), steps


def plan_table(items: Iterable[ScriptItem]) -> Iterator[Result]:
    yield COLUMNS
    yield ResultRows(tuple((i.name, i.kind, i.action, i.detail) for i in items))
    yield Done("PLAN")


def with_details(
    items: Iterable[ScriptItem], steps: Iterable[PlannedStatement], catalog: Catalog, connections: Connections
) -> Iterator[ScriptItem]:
    left = (step.plan for step in steps if not isinstance(step.plan, plans.SetSearchPath))
    for item in items:
        lines = [item.detail] if item.detail else []
        action = item.action
        if action != "keep":
            planned = next(left)
            lines += detail_lines(planned, catalog, connections)
            action = "keep" if isinstance(planned, plans.Skip) else action
        yield replace(item, action=action, detail="\n".join(map(_wrapped, lines)))


def _wrapped(line: str) -> str:
    return fill(line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def detail_lines(planned: plans.Plan, catalog: Catalog, connections: Connections) -> Iterator[str]:
    if isinstance(planned, plans.Skip):
        yield planned.notice
    if not isinstance(planned, plans.ChangeCatalog):
        return
    for change in planned.changes:
        match change:
            case ObjectCreated(made) if made.columns:
                yield f"columns {', '.join(map(_column, made.columns))}"
                yield from _undocumented(made)
            case DefinitionChanged():
                yield from _column_changes(catalog.get(change.id).columns, change.columns)
            case _:
                pass
    for effect in planned.effects:
        match effect:
            case plans.CreateTopic():
                yield _topic(effect, catalog, connections)
            case plans.RegisterSchema():
                yield f'registers a schema for subject "{effect.subject}"'
                yield from _without_docs(effect.schema.text)
            case plans.SetCompatibility():
                yield f'sets the compatibility level of subject "{effect.subject}" to {effect.level}'
            case _:
                assert_never(effect)
    for consequence in planned.consequences:
        if consequence.outcome is plans.Outcome.UNCHANGED:
            continue
        name = catalog.display_name(consequence.object) if consequence.object in catalog.objects else "the new object"
        yield f"{name} {consequence.outcome} {consequence.detail}".rstrip()
    yield from planned.notices


def _column(column: Column) -> str:
    return f"{column.name} {print_type(column.type)}{'' if column.nullable else ' not null'}"


def _column_changes(old: Iterable[Column], new: Iterable[Column]) -> Iterator[str]:
    before, after = ({c.name: _column(c) for c in columns} for columns in (old, new))
    yield from (f"adds column {shown}" for name, shown in after.items() if name not in before)
    yield from (f"takes column {name} away" for name in before if name not in after)
    yield from (
        f"column {before[name]} becomes {shown}"
        for name, shown in after.items()
        if name in before and before[name] != shown
    )


def _undocumented(made: Object) -> Iterator[str]:
    """The columns of a source without docs. Columns of views have the docs of the columns that they come from."""
    missing = [c.name for c in made.columns if c.comment.imported is None]
    if made.kind is Kind.SOURCE and missing:
        yield f"without docs: {', '.join(missing)}"


def _without_docs(avro: str) -> Iterator[str]:
    schema = load_tree(avro)
    fields = schema.fields if isinstance(schema, AvroRecord) else ()
    missing = [field.name for field in fields if not field.doc]
    if missing:
        yield f"without docs: {', '.join(missing)}"


def _topic(effect: plans.CreateTopic, catalog: Catalog, connections: Connections) -> str:
    partitions = effect.partitions or 1
    noun = "partition" if partitions == 1 else "partitions"
    made = f'creates topic "{effect.topic}" with {partitions} {noun}'
    if isinstance(effect.connection, int) and effect.connection not in catalog.objects:  # one that the script makes
        return f"{made}, if it does not exist"
    try:
        connections.kafka(catalog, effect.connection).topic(effect.topic)
    except TopicNotFound:
        return made
    return f'writes to topic "{effect.topic}", which exists'
