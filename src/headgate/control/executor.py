"""Scripts: every statement is resolved, purified and planned once, against a copy of the catalog; then the plans run in
order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Protocol, assert_never

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import apply
from headgate.catalog.errors import CatalogChanged
from headgate.catalog.names import SearchPath
from headgate.catalog.objects import Object
from headgate.catalog.secrets import FromEnvironment, FromFile, Secret, SecretSource
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import Connections
from headgate.control.effects import check_effect, effects_done, last_effects, released_tasks, with_schema_ids
from headgate.control.inserts import Inserts
from headgate.control.sessions import Cancellation, Done, Notice, Result, ResultColumns, ResultRows, Session
from headgate.control.show import show
from headgate.errors import HeadgateError, Span
from headgate.plan import plans
from headgate.plan.relations import sources_named
from headgate.plan.statements import plan, skip_existing
from headgate.purify.lookups import ChangedSchemas, LiveLookups, PlannedLookups
from headgate.purify.statements import purify
from headgate.resolve.statements import Answers, Context, resolve_statement
from headgate.runtime.replay import Replayed
from headgate.schema.types import Type
from headgate.sql.connections import AlterSecret, CreateSecret, SecretFromEnv, SecretFromFile, SecretText
from headgate.sql.errors import UnknownColumn
from headgate.sql.queries import Select
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.redact import redacted_text
from headgate.sql.registry_formats import PendingId
from headgate.sql.script import parse_script
from headgate.sql.show import ShowObjects
from headgate.sql.statement import Query, Statement

TRIES = 5  # attempts to commit a statement while other clients change the catalog


class QueryRunner(Protocol):
    """The part of the engine that the executor needs to run queries and to reach tasks."""

    def select(self, catalog: Catalog, query: Query, cancellation: Cancellation) -> Iterator[Result]:
        """The answer to a query that has the ids of what it names."""

    def follow_changes(
        self, catalog: Catalog, plan: plans.FollowChanges, cancellation: Cancellation
    ) -> Iterator[Result]:
        """The changes of a materialized view, as they come."""

    def types(self, catalog: Catalog, analysed: AnalysedQuery) -> tuple[Type, ...]:
        """The types of a query's columns, asked of Spark without running it."""

    def follow_arrived(self, catalog: Catalog, source: Object) -> bool:
        """Follow the schemas that records of a source have by now. Returns whether there were any."""

    def read_times(self, texts: Sequence[str], format_: str) -> Sequence[int | None]:
        """The times of texts by a pattern of Spark, in milliseconds; None for a text that is not written so."""

    def is_time_pattern(self, format_: str) -> bool:
        """Whether Spark can read times by a pattern."""

    def replay(self, task: int, name: str) -> Replayed:
        """Send the quarantined records of a task through again."""

    def refresh_tasks(self) -> None:
        """Let the catalog know how far the tasks are behind now."""


@dataclass(frozen=True, slots=True)
class PlannedStatement:
    """A statement of a script, the context that it was planned in, and its plan."""

    statement: Statement
    context: Context
    plan: plans.Plan

    @property
    def version(self) -> int:
        return self.context.catalog.version


class Executor:
    """Plans and runs scripts. ``changed`` asks the registry for the schemas that ACCEPT SCHEMA CHANGE accepts."""

    def __init__(
        self, store: SqliteStore, connections: Connections, queries: QueryRunner, changed: ChangedSchemas
    ) -> None:
        self._store = store
        self._connections = connections
        self._queries = queries
        self._lookups = LiveLookups(connections, changed, partial(_last_batch, store))
        self._inserts = Inserts(connections, queries.read_times)

    def run(self, text: str, session: Session, cancellation: Cancellation | None = None) -> Iterator[Result]:
        """The results of a script. No statement runs unless all of them can be planned."""
        yield from self.run_steps(self.plan(text, session), session, cancellation or Cancellation())

    # planning

    def plan(
        self, text: str, session: Session, statements: Sequence[Statement] | None = None
    ) -> tuple[PlannedStatement, ...]:
        """Plan a script. ``statements`` are those of the text if it is parsed already; their spans point into it."""
        found = parse_script(text) if statements is None else statements
        catalog, now = self._store.load(), datetime.now(UTC)
        contexts = [
            Context(
                catalog,
                session.path,
                now,
                redacted_text(text[statement.span.start : statement.span.end]),
                Answers(
                    self._encrypted_secret(statement),
                    types=self._queries.types,
                    is_pattern=self._queries.is_time_pattern,
                ),
            )
            for statement in found
        ]
        script = list(zip(found, contexts, strict=True))
        try:
            return self._plan_all(script, session.path)
        except UnknownColumn:
            if not self._sources_grew(found, session.path):
                raise
        return self._plan_all(script, session.path)

    def _sources_grew(self, statements: Sequence[Statement], path: SearchPath) -> bool:
        """Let the sources of the script's SELECTs follow new schemas, which may have the unknown column. Returns whether one did."""
        catalog = self._store.load()
        queries = [statement.query for statement in statements if isinstance(statement, Select)]
        sources = {o.id: o for query in queries for o in sources_named(catalog, path, query)}
        grown = [
            self._queries.follow_arrived(catalog, source) for source in sources.values()
        ]  # a list, so that every source follows
        return any(grown)

    def _plan_all(self, script: Sequence[tuple[Statement, Context]], path: SearchPath) -> tuple[PlannedStatement, ...]:
        """Plan statements one after the other, each against the catalog that the statements before it will leave.

        Of the given contexts only the time, the text and the secret are used.
        """
        catalog = self._store.load()
        lookups = PlannedLookups(self._lookups)
        steps: list[PlannedStatement] = []
        for statement, given in script:
            with _pointing_at(statement.span):
                step = self._plan_one(statement, replace(given, catalog=catalog, path=path), lookups)
            if isinstance(step.plan, plans.ChangeCatalog):
                catalog = step.context.after(step.plan.changes).catalog
            elif isinstance(step.plan, plans.SetSearchPath):
                path = step.plan.path
            steps.append(step)
        return tuple(steps)

    def _plan_one(self, statement: Statement, context: Context, lookups: PlannedLookups) -> PlannedStatement:
        if (skip := skip_existing(statement, context)) is not None:
            return PlannedStatement(statement, context, skip)
        resolved = resolve_statement(statement, context)
        purified, answered = purify(resolved, context, lookups)
        made = plan(purified, answered)
        if isinstance(made, plans.ChangeCatalog):
            self._check(made.effects, context.catalog, lookups)
        return PlannedStatement(statement, context, made)

    def _check(self, effects: Sequence[plans.Effect], catalog: Catalog, lookups: PlannedLookups) -> None:
        """Check the effects of one statement, and tell ``lookups`` about them for later statements.

        A topic or subject of an earlier statement cannot be checked, because it does not exist yet. Nor can a schema whose
        subject gets another compatibility level first.
        """
        clients = self._connections.of(catalog)
        levels = {(e.connection, e.subject) for e in effects if isinstance(e, plans.SetCompatibility)}
        for effect in effects:
            match effect:
                case plans.CreateTopic(connection, topic):
                    if (connection, topic) not in lookups.topics:
                        check_effect(effect, clients)
                        lookups.topics[connection, topic] = effect.partitions or 1
                case plans.RegisterSchema(connection, subject):
                    if (connection, subject) not in levels | lookups.schemas.keys():
                        check_effect(effect, clients)
                    lookups.schemas[connection, subject] = effect.schema
                case plans.ReuseSchema(connection, subject):
                    if (connection, subject) not in lookups.schemas:
                        check_effect(effect, clients)
                    lookups.schemas[connection, subject] = effect.schema
                case (
                    plans.SetCompatibility()
                    | plans.DeleteTopic()
                    | plans.ProvisionTable()
                    | plans.ReleaseTable()
                    | plans.ProvisionIndex()
                    | plans.ReleaseIndex()
                ):
                    check_effect(effect, clients)
                case _:
                    assert_never(effect)

    def _encrypted_secret(self, statement: Statement) -> SecretSource | None:
        if not isinstance(statement, CreateSecret | AlterSecret):
            return None
        match statement.value:
            case SecretText(text):
                return self._store.seal(Secret(text))
            case SecretFromEnv(variable):
                return FromEnvironment(variable)
            case SecretFromFile(path):
                return FromFile(path)

    # running

    def run_steps(
        self, steps: Sequence[PlannedStatement], session: Session, cancellation: Cancellation
    ) -> Iterator[Result]:
        """Run plans in order. If the catalog has changed meanwhile, the statements that are left are planned again.

        It changes when a source follows a schema change, or when another client commits.
        """
        ids: dict[PendingId, int] = {}
        tries = 0
        while steps:
            with _pointing_at(steps[0].statement.span):
                if self._store.load().version != steps[0].version:
                    before, steps = steps[0], self._plan_again(steps)
                    if steps[0].plan != before.plan:
                        yield Notice("the catalog has changed meanwhile, and the statement was planned again")
                if inserts := _leading_inserts(steps):
                    yield from self._insert(inserts)
                    steps = steps[len(inserts) :]
                    continue
                try:
                    yield from self._run(steps[0], session, cancellation, ids)
                except CatalogChanged:
                    # Only a commit can be tried again: it has returned no result yet, and its effects are undone.
                    tries += 1
                    if tries == TRIES or not isinstance(steps[0].plan, plans.ChangeCatalog):
                        raise
                    continue
            steps, tries = steps[1:], 0

    def _insert(self, inserts: Sequence[plans.InsertRows]) -> Iterator[Result]:
        """Write the rows of statements that follow each other together: each alone would wait for the broker."""
        self._inserts.insert(self._store.load(), inserts)
        for one in inserts:
            yield Done(f"INSERT {len(one.rows)}")

    def _plan_again(self, steps: Sequence[PlannedStatement]) -> tuple[PlannedStatement, ...]:
        return self._plan_all([(s.statement, s.context) for s in steps], steps[0].context.path)

    def _run(
        self, step: PlannedStatement, session: Session, cancellation: Cancellation, ids: dict[PendingId, int]
    ) -> Iterator[Result]:
        catalog, path = self._store.load(), step.context.path
        match step.plan:
            case plans.Skip(tag, notice):
                yield Notice(notice)
                yield Done(tag)
            case plans.SetSearchPath(new):
                session.path = new
                yield Done("SET")
            case plans.RunQuery(query):
                yield from self._queries.select(catalog, query, cancellation)
            case plans.FollowChanges():
                yield from self._queries.follow_changes(catalog, step.plan, cancellation)
            case plans.CheckConnection(connection):
                self._connections.validate(catalog, connection)
                yield Done("VALIDATE CONNECTION")
            case plans.InsertRows():
                yield from self._insert([step.plan])
            case plans.InsertQuery():
                results = self._queries.select(catalog, step.plan.query, cancellation)
                yield from self._inserts.insert_results(catalog, step.plan, results)
            case plans.ReplayQuarantine(tasks):
                yield from replayed(tasks, catalog, self._queries.replay)
            case plans.Show(statement, after):
                if isinstance(statement, ShowObjects) and statement.what == "TASKS":
                    self._queries.refresh_tasks()
                yield from show(statement, apply(catalog, *after), path, self._store, self._connections.of(catalog))
                yield Done(step.statement.words.split()[0])
            case plans.ChangeCatalog():
                late = self._commit(step, step.plan, ids)
                yield from (Notice(text) for text in (*step.plan.notices, *late))
                yield Done(step.plan.tag)
            case _:
                assert_never(step.plan)

    def _commit(self, step: PlannedStatement, change: plans.ChangeCatalog, ids: dict[PendingId, int]) -> list[str]:
        """Do the effects before the commit. The other way round, a crash in between would leave a sink without a topic. Only what
        cannot be undone comes after it: a task must not lose its target while the catalog has it. Returns what to tell of these."""
        clients = self._connections.of(step.context.catalog)
        uuids = {task: self._store.task_uuid(task) for task in released_tasks(change.effects)}
        with effects_done(change.effects, clients) as registered:
            ids.update(registered)
            changes = [with_schema_ids(each, ids) for each in change.changes]
            self._store.commit(changes, cause=change.cause, statement=step.context.text, planned=step.version)
        return list(last_effects(change.effects, clients, uuids))


def _leading_inserts(steps: Sequence[PlannedStatement]) -> list[plans.InsertRows]:
    found: list[plans.InsertRows] = []
    for step in steps:
        if not isinstance(step.plan, plans.InsertRows):
            break
        found.append(step.plan)
    return found


@contextmanager
def _pointing_at(span: Span) -> Iterator[None]:
    """Give errors without a span the span of their statement."""
    try:
        yield
    except HeadgateError as error:
        raise error.at(span) from error.__cause__


REPLAY_COLUMNS = (("task", "text"), ("replayed", "bigint"), ("outdated", "bigint"), ("kept", "bigint"))


def replayed(tasks: Sequence[int], catalog: Catalog, replay: Callable[[int, str], Replayed]) -> Iterator[Result]:
    """Replay the quarantines of the tasks. A task that fails does not stop the others; its error is raised at the end."""
    failed: HeadgateError | None = None
    yield ResultColumns(REPLAY_COLUMNS)
    for task in tasks:
        name = catalog.display_name(task)
        try:
            done = replay(task, name)
        except HeadgateError as error:
            failed = failed or error
            continue
        yield ResultRows(((name, done.replayed, done.outdated, done.kept),))
        if done.outdated:
            yield Notice(
                f"{name}: {_records(done.outdated)} no longer the last of a key, and left the quarantine unwritten"
            )
    if failed is not None:
        raise failed
    yield Done("REPLAY QUARANTINE")


def _records(count: int) -> str:
    return "1 record was" if count == 1 else f"{count} records were"


def _last_batch(store: SqliteStore, view: int) -> tuple[int, int]:
    ledger = store.ledger(view)
    return (1, 0) if ledger is None else (ledger.generation, ledger.number)
