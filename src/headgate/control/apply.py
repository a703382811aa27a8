"""`headgate plan` and `headgate apply`: a script as desired state, shown as a table and then run.

Each statement is compared with the catalog. Only those that have something to do are planned: a statement whose object exists
as it describes it is left out, `CREATE VIEW` with another query becomes `CREATE OR REPLACE VIEW`, `CREATE SECRET` with another
value `ALTER SECRET`. They are planned as a whole and run like any other script. Objects that the script does not name are left
alone, and a second run has nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Literal, TypeAlias, assert_never

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import DefinitionChanged, ObjectCreated
from headgate.catalog.errors import CatalogError, UnknownObject
from headgate.catalog.names import DEFAULT_PATH, SearchPath, owned_column, resolve_fields, resolve_owner, search_path
from headgate.catalog.objects import Column, Comment, DesiredTaskState, Object
from headgate.catalog.secrets import EncryptedSecret, FromEnvironment, FromFile, Secret
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import Connections
from headgate.connectors.errors import TopicNotFound
from headgate.control.engine import Engine
from headgate.control.executor import Executor, PlannedStatement
from headgate.control.sessions import Cancellation, Done, Result, ResultColumns, ResultRows, Session
from headgate.errors import HeadgateError
from headgate.plan import plans
from headgate.plan.errors import NotDesiredState, ObjectDiffers
from headgate.plan.relations import analyse_query, resolved_query
from headgate.plan.target_definitions import TableColumn
from headgate.resolve.definitions import differences, with_current_names
from headgate.resolve.statements import find_object, named_object, resolve_names
from headgate.schema.encodings import type_of_schema
from headgate.schema.names import print_name
from headgate.schema.render import print_type
from headgate.schema.types import Record
from headgate.schema.written import WrittenSchema
from headgate.sql.connections import AlterSecret, CreateSecret, SecretFromEnv, SecretFromFile, SecretText, SecretValue
from headgate.sql.objects import ChangeTaskState, CommentOn
from headgate.sql.queries import SetSearchPath
from headgate.sql.script import parse_script
from headgate.sql.sources import AcceptSchemaChange
from headgate.sql.statement import Create, Kind, ObjectName, Statement
from headgate.sql.views import CreateView
from headgate.text.cursor import Identifier

Action: TypeAlias = Literal["create", "change", "keep"]
Reveal: TypeAlias = Callable[[Catalog, Object], Secret]


@dataclass(frozen=True, slots=True)
class ScriptItem:
    """One statement of the script: the object that it is about, what must be done for it, and why."""

    name: str
    kind: str
    action: Action
    detail: str = ""


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The items of a script in order, and the statements that make them true. Spans are those of the script."""

    items: tuple[ScriptItem, ...]
    statements: tuple[Statement, ...]


def desired_state(catalog: Catalog, text: str, reveal: Reveal) -> DesiredState:
    """Compare the script with the catalog. Raises ObjectDiffers if an object exists with another definition and cannot be
    altered, NotDesiredState for statements such as DROP or INSERT."""
    items: list[ScriptItem] = []
    statements: list[Statement] = []
    comparison = _Comparison(catalog, reveal)
    for statement in parse_script(text):
        item = comparison.item(statement)
        if item is not None:
            items.append(item)
        if item is None or item.action != "keep":
            changes = item is not None and item.action == "change"
            statements.append(_changing(statement) if changes else statement)
    return DesiredState(tuple(items), tuple(statements))


def _changing(statement: Statement) -> Statement:
    """The statement that changes an existing object to what this one describes."""
    match statement:
        case CreateView():
            return replace(statement, or_replace=True)
        case CreateSecret():
            return AlterSecret(Kind.SECRET, statement.name, statement.value, span=statement.span)
        case _:
            return statement


class _Comparison:
    """Compares the statements of a script in order. ``path`` is the search path of the next one."""

    def __init__(self, catalog: Catalog, reveal: Reveal) -> None:
        self.catalog = catalog
        self.path = DEFAULT_PATH
        self._reveal = reveal

    def item(self, statement: Statement) -> ScriptItem | None:
        """None for SET search_path."""
        match statement:
            case SetSearchPath():
                self.path = self._set(statement)
                return None
            case CommentOn():
                return self._comment(statement)
            case ChangeTaskState():
                return self._task_state(statement)
            case AcceptSchemaChange():
                return ScriptItem(_shown(statement.name), statement.kind.value, "change", "accept schema change")
            case Create():
                return self._object(statement)
            case _:
                raise NotDesiredState(statement.words).at(statement.span)

    def _set(self, statement: SetSearchPath) -> SearchPath:
        try:
            return search_path(self.catalog, self.path, statement.path)
        except UnknownObject:  # the script itself creates this schema, so it has no objects yet
            database = self.path.databases()[0]
            names = [tuple(part.name for part in name.parts) for name in statement.path]
            return SearchPath(tuple((name[0] if len(name) > 1 else database, name[-1]) for name in names))

    # objects

    def _object(self, statement: Create) -> ScriptItem:
        """What a CREATE has to do, by the object that exists under its name."""
        kind, name = statement.kind, statement.name
        existing = self._existing(kind, name)
        if existing is None:
            return ScriptItem(self._new_name(kind, name), kind.value, "create")
        action, detail = self._action(statement, existing)
        return ScriptItem(self.catalog.display_name(existing.id), kind.value, action, detail)

    def _action(self, statement: Create, existing: Object) -> tuple[Action, str]:
        if isinstance(statement, CreateSecret):
            same = self._is_secret(existing, statement.value)
            return ("keep", "") if same else ("change", "another value")
        parts = self._differences(statement, existing)
        if not parts:
            return "keep", ""
        if statement.if_not_exists:
            return "keep", f"differs in {', '.join(parts)}, and is left as it is because of IF NOT EXISTS"
        if isinstance(statement, CreateView):
            return "change", f"another {' and '.join(parts)}"
        raise ObjectDiffers(existing.kind.value, self.catalog.display_name(existing.id), parts).at(statement.span)

    def _differences(self, statement: Create, existing: Object) -> tuple[str, ...]:
        found = existing.definition
        if found is None:
            return ()
        wanted = resolve_names(statement, self.catalog, self.path, must_exist=False)
        if isinstance(found, CreateView) and isinstance(wanted, CreateView):
            try:
                analysed = analyse_query(self.catalog, self.path, wanted.query)
            except (
                HeadgateError
            ):  # the query cannot be analysed before the script has run, so only the texts are compared
                found = with_current_names(self.catalog, existing, found)
            else:
                query = resolved_query(self.catalog, self.path, wanted.query, analysed)
                wanted = replace(wanted, query=query)
        return differences(found, wanted)

    def _is_secret(self, existing: Object, wanted: SecretValue) -> bool:
        source = self.catalog.secrets.get(existing.id)
        match wanted:
            case SecretFromEnv(variable):
                return source == FromEnvironment(variable)
            case SecretFromFile(path):
                return source == FromFile(path)
            case SecretText(text):
                try:
                    return isinstance(source, EncryptedSecret) and self._reveal(self.catalog, existing) == Secret(text)
                except CatalogError:  # the key to the stored secret is lost, and the script still has the value
                    return False

    def _new_name(self, kind: Kind, name: ObjectName) -> str:
        """The name of a new object, with its schema unless that is the default schema."""
        here = self.path.entries[0]
        if len(name.parts) > 1 or kind in (Kind.DATABASE, Kind.SCHEMA) or here == DEFAULT_PATH.entries[0]:
            return _shown(name)
        return print_name((here[1], name.parts[0].name))

    def _existing(self, kind: Kind, name: ObjectName) -> Object | None:
        """The object of the name where the statement would make it: in the first schema of the search path."""
        above = kind in (Kind.DATABASE, Kind.SCHEMA)
        path = self.path if above else SearchPath(self.path.entries[:1])
        return find_object(self.catalog, path, kind, name)

    # comments and the state of tasks

    def _comment(self, statement: CommentOn) -> ScriptItem:
        action: Action = "change"
        current = self._current_comment(statement)
        if current is not None and current.explicit == statement.comment:
            action = "keep" if statement.comment is not None or current.suppressed else "change"
        kind = f"comment on {statement.kind or 'column'}"
        return ScriptItem(_shown(statement.name), kind, action)

    def _current_comment(self, statement: CommentOn) -> Comment | None:
        """None if there is nothing yet to comment on."""
        try:
            if statement.kind is None:
                owner = resolve_owner(self.catalog, self.path, statement.name)
                column = owned_column(self.catalog, owner, statement.name)
                return _field_comment(self.catalog, column, statement.fields) if statement.fields else column.comment
            found = self._named(statement.kind, statement.name)
        except CatalogError:
            return None
        return found.comment

    def _task_state(self, statement: ChangeTaskState) -> ScriptItem:
        wanted = DesiredTaskState.PAUSED if statement.action == "PAUSE" else DesiredTaskState.RUNNING
        action: Action = "change"
        try:
            found = self._named(statement.kind, statement.name)
            wanted_now = self.catalog.desired.get(found.id)
        except CatalogError:
            wanted_now = None
        if statement.binding is None and wanted_now is wanted:
            action = "keep"
        return ScriptItem(_shown(statement.name), statement.kind.value, action, statement.action.lower())

    def _named(self, kind: Kind, name: ObjectName) -> Object:
        return named_object(self.catalog, self.path, kind, name)


def _field_comment(catalog: Catalog, column: Column, fields: Sequence[Identifier]) -> Comment | None:
    path = resolve_fields(catalog, column, fields)
    said = next((known for known in column.fields if known.path == path), None)
    return None if said is None else Comment(said.text, suppressed=said.text is None)


def _shown(name: ObjectName) -> str:
    return print_name(tuple(part.name for part in name.parts))


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


def _table_column(column: TableColumn) -> str:
    return f"{column.name} {column.postgres}{'' if column.nullable else ' not null'}"


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
                yield from _without_docs(effect.schema)
            case plans.ReuseSchema():
                yield f'registers schema {effect.schema.id} for subject "{effect.subject}"'
            case plans.DeleteTopic():
                yield f'deletes topic "{effect.topic}"'
            case plans.SetCompatibility():
                yield f'sets the compatibility level of subject "{effect.subject}" to {effect.level}'
            case plans.ProvisionTable():
                yield f'writes table "{effect.table.table}" with columns {", ".join(map(_table_column, effect.table.columns))}'
            case plans.ReleaseTable():
                yield f'{"drops" if effect.drop else "keeps"} table "{effect.table}"'
            case plans.ProvisionIndex():
                fields = ", ".join(f"{field.name} {print_type(field.type)}" for field in effect.index.fields)
                yield f'writes index "{effect.index.index}" with fields {fields}'
            case plans.ReleaseIndex():
                yield f'{"drops" if effect.drop else "keeps"} index "{effect.index}"'
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


def _without_docs(schema: WrittenSchema) -> Iterator[str]:
    type_ = type_of_schema(schema.format, schema).type
    fields = type_.fields if isinstance(type_, Record) else ()
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
