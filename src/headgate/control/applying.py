"""`plan` and `apply`: a script as desired state, told as a table, and made true."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from textwrap import fill

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import DefinitionChanged, ObjectCreated
from headgate.catalog.objects import Column, Object
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import Connections
from headgate.connectors.errors import TopicNotFound
from headgate.control.desired import DesiredState, Wish, desired
from headgate.control.engine import Engine
from headgate.control.executor import Executor, Session, Step
from headgate.control.results import Done, Result, ResultColumns, ResultRows
from headgate.errors import HeadgateError
from headgate.plan.planned import CreateTopic, Planned, RegisterSchema
from headgate.schema.formats.avro.read import load_tree
from headgate.schema.formats.avro.tree import Record as AvroRecord
from headgate.schema.render import print_type
from headgate.sql.queries import SetSearchPath
from headgate.sql.statement import Kind

COLUMNS = ResultColumns(tuple((name, "text") for name in ("object", "kind", "action", "detail")))
WIDTH = 80  # of a line of details


def plan(engine: Engine, text: str) -> Iterator[Result]:
    """What `apply` would do, one row per statement. Nothing is done."""
    with _scripts(engine) as scripts:
        yield from scripts.plan(text)


def apply(engine: Engine, text: str) -> Iterator[Result]:
    """The rows of the plan, then the answers of what is done, and at the end what came of it."""
    with _scripts(engine) as scripts:
        yield from scripts.apply(text, lambda script: engine.run(script, Session()))


@contextmanager
def _scripts(engine: Engine) -> Iterator[Scripts]:
    """With connections of their own: secrets are those of the planned catalog, as a script may make one and use it."""
    store = engine.store
    connections = Connections(store.keys.reveal, engine.project.address)
    try:
        yield Scripts(store, connections, Executor(store, connections, engine, engine.follower))
    finally:
        connections.close()


@dataclass(frozen=True, slots=True)
class Scripts:
    """Scripts as desired state of a catalog; ``executor`` plans them."""

    store: SqliteStore
    connections: Connections
    executor: Executor

    def plan(self, text: str) -> Iterator[Result]:
        yield from _told(self.wishes(text))

    def apply(self, text: str, run: Callable[[str], Iterator[Result]]) -> Iterator[Result]:
        """``run`` does a script; it is not called if there is nothing to do."""
        state = self.wishes(text)
        yield from _told(state)
        if any(wish.action != "keep" for wish in state.wishes):
            try:
                yield from run(state.script)
            except HeadgateError as error:
                raise state.placed(error) from error.__cause__
        counts = [
            sum(wish.action == action for wish in state.wishes) for action in ("create", "change", "keep")
        ]
        yield Done(f"APPLY: {counts[0]} created, {counts[1]} changed, {counts[2]} kept")

    def wishes(self, text: str) -> DesiredState:
        """The wishes of the script with all that their plans tell."""
        catalog = self.store.load()
        state = desired(catalog, text, self.store.keys.reveal)
        try:
            steps = self.executor.plan(state.script, Session())
            detailed = _detailed(state.wishes, steps, catalog, self.connections)
            return replace(state, wishes=tuple(detailed))
        except HeadgateError as error:
            raise state.placed(error) from error.__cause__


def _told(state: DesiredState) -> Iterator[Result]:
    yield COLUMNS
    yield ResultRows(tuple((w.name, w.kind, w.action, w.detail) for w in state.wishes))
    yield Done("PLAN")


def _detailed(
    wishes: Iterable[Wish], steps: Iterable[Step], catalog: Catalog, connections: Connections
) -> Iterator[Wish]:
    planned = (step.planned for step in steps if not isinstance(step.statement, SetSearchPath))
    for wish in wishes:
        plan_ = next(planned) if wish.action != "keep" else None
        lines = [wish.detail] if wish.detail else []
        if plan_ is not None:
            lines += _details(plan_, catalog, connections)
        yield replace(wish, detail="\n".join(map(_wrapped, lines)))


def _wrapped(line: str) -> str:
    return fill(line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _details(planned: Planned, catalog: Catalog, connections: Connections) -> Iterator[str]:
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
            case CreateTopic():
                yield _topic(effect, catalog, connections)
            case RegisterSchema():
                yield f'registers a schema for subject "{effect.subject}"'
                yield from _without_docs(effect.schema.text)
    yield from planned.notices


def _column(column: Column) -> str:
    return f"{column.name} {print_type(column.parsed)}{'' if column.nullable else ' not null'}"


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
    """Of what comes in; columns of views have the docs of those that they are made of."""
    missing = [c.name for c in made.columns if c.comment.imported is None]
    if made.kind is Kind.SOURCE and missing:
        yield f"without docs: {', '.join(missing)}"


def _without_docs(avro: str) -> Iterator[str]:
    schema = load_tree(avro)
    fields = schema.fields if isinstance(schema, AvroRecord) else ()
    missing = [field.name for field in fields if not field.doc]
    if missing:
        yield f"without docs: {', '.join(missing)}"


def _topic(effect: CreateTopic, catalog: Catalog, connections: Connections) -> str:
    noun = "partition" if effect.partitions == 1 else "partitions"
    made = f'creates topic "{effect.topic}" with {effect.partitions} {noun}'
    if effect.connection not in catalog.objects:  # one that the script makes
        return f"{made}, if it does not exist"
    try:
        connections.kafka(catalog, effect.connection).topic(effect.topic)
    except TopicNotFound:
        return made
    return f'writes to topic "{effect.topic}", which exists'
