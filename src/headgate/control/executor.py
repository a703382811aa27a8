"""Scripts: planned as a whole against a copy of the catalog, then done statement by statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from headgate.catalog.apply import apply
from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import Change, ObjectCreated
from headgate.catalog.definitions import facts_of, purified_text
from headgate.catalog.names import DEFAULT_PATH, SearchPath, find, resolve, search_path
from headgate.catalog.secrets import FromEnvironment, FromFile, Secret, SecretSource
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import Connections
from headgate.connectors.kafka import NewTopicOptions
from headgate.control.cancellation import Cancellation
from headgate.control.following import Follower
from headgate.control.looking import look
from headgate.control.replaying import quarantining, replayed
from headgate.control.results import Done, Notice, Result
from headgate.errors import HeadgateError
from headgate.plan.errors import NotSupportedYet
from headgate.plan.planned import CreateTopic, Effect, Planned, RegisterSchema
from headgate.plan.relations import analyse_query
from headgate.plan.sink import plan_sink, subjects
from headgate.plan.statements import plan, skipped
from headgate.purify import outside
from headgate.purify.statements import purify
from headgate.registry.schemas import to_register
from headgate.runtime.replay import Replayed
from headgate.schema.types import Type
from headgate.sql.connections import (
    AlterSecret,
    CreateConnection,
    CreateSecret,
    SecretFromEnv,
    SecretFromFile,
    SecretText,
    ValidateConnection,
)
from headgate.sql.formats import with_frozen_schemas
from headgate.sql.queries import Select, SetSearchPath
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.redact import redacted_text
from headgate.sql.registry_formats import FrozenSchema, Side
from headgate.sql.script import parse_script
from headgate.sql.show import ReplayQuarantine
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import AcceptSchemaChange
from headgate.sql.statement import Kind, Statement
from headgate.sql.views import CreateView


@dataclass(slots=True)
class Session:
    """What a client has set: the search path."""

    path: SearchPath = field(default=DEFAULT_PATH)


class Queries(Protocol):
    """Whoever runs a query and gives its rows."""

    def select(
        self, catalog: Catalog, path: SearchPath, statement: Select, cancellation: Cancellation
    ) -> Iterator[Result]: ...

    def types(self, catalog: Catalog, analysed: AnalysedQuery) -> tuple[Type, ...]:
        """The types of a query's columns, asked of Spark without running it."""

    def replay(self, task: int, name: str) -> Replayed:
        """Send the quarantined records of a task through again."""


@dataclass(frozen=True, slots=True)
class Step:
    """A statement of a script, with the plan it has if it changes something and the path it was planned under."""

    statement: Statement
    written: str
    path: SearchPath
    planned: Planned | None = None


class Executor:
    def __init__(
        self, store: SqliteStore, connections: Connections, queries: Queries, follower: Follower
    ) -> None:
        self._store = store
        self._connections = connections
        self._queries = queries
        self._follower = follower

    def run(self, text: str, session: Session, cancellation: Cancellation | None = None) -> Iterator[Result]:
        """Everything that the script answers. Nothing of it is done unless all of it can be planned."""
        steps = self.plan(text, session)
        for step in steps:
            try:
                yield from self._do(step, session, cancellation or Cancellation())
            except HeadgateError as error:
                raise error.at(step.statement.span) from error.__cause__

    def plan(self, text: str, session: Session) -> list[Step]:
        statements = parse_script(text)
        catalog, path = self._store.load(), session.path
        ahead = outside.Planned(outside.World(self._connections))
        steps: list[Step] = []
        for statement in statements:
            written = redacted_text(text[statement.span.start : statement.span.end])
            try:
                step, catalog, path = self._plan_one(statement, written, catalog, path, ahead)
            except HeadgateError as error:
                raise error.at(statement.span) from error.__cause__
            steps.append(step)
        return steps

    def _plan_one(
        self, statement: Statement, written: str, catalog: Catalog, path: SearchPath, ahead: outside.Planned
    ) -> tuple[Step, Catalog, SearchPath]:
        if isinstance(statement, SetSearchPath):
            return Step(statement, written, path), catalog, search_path(catalog, path, statement.path)
        if isinstance(statement, Select):
            if statement.emit_changes:
                raise NotSupportedYet("SELECT … EMIT CHANGES")
            analyse_query(catalog, path, statement.query)
            return Step(statement, written, path), catalog, path
        if isinstance(statement, ValidateConnection):
            resolve(catalog, path, statement.name, Kind.CONNECTION)
            return Step(statement, written, path), catalog, path
        if isinstance(statement, ReplayQuarantine):
            quarantining(statement, catalog, path)
            return Step(statement, written, path), catalog, path
        if isinstance(statement, AcceptSchemaChange) and statement.kind is Kind.SOURCE:
            if not statement.if_exists:
                resolve(catalog, path, statement.name, Kind.SOURCE)
            return Step(statement, written, path), catalog, path
        if look(statement, catalog, path, self._store) is not None:
            return Step(statement, written, path), catalog, path
        planned = skipped(statement, catalog, path)
        if planned is None:
            planned = self._plan_change(statement, written, catalog, path, ahead)
        return Step(statement, written, path, planned), apply(catalog, *planned.changes), path

    def _plan_change(
        self, statement: Statement, written: str, catalog: Catalog, path: SearchPath, ahead: outside.Planned
    ) -> Planned:
        pure = purify(statement, catalog, path, ahead)
        planned = plan(
            pure, catalog, path, written, self._sealed(statement), self._asked(pure, catalog, path)
        )
        if isinstance(pure, CreateSink):
            self._check_subjects(pure, catalog, path, ahead)
        self._check_topics(planned.effects, catalog, ahead)
        _expect(planned.effects, ahead)
        return planned

    def _asked(self, statement: Statement, catalog: Catalog, path: SearchPath) -> tuple[Type, ...]:
        """The types of a view's columns, where our own table of functions does not tell them all."""
        if not isinstance(statement, CreateView):
            return ()
        analysed = analyse_query(catalog, path, statement.query)
        known = all(column.type is not None for column in analysed.columns)
        return () if known else self._queries.types(catalog, analysed)

    def _check_subjects(
        self, statement: CreateSink, catalog: Catalog, path: SearchPath, ahead: outside.Planned
    ) -> None:
        sink = plan_sink(catalog, path, statement)
        for subject, schema in subjects(sink):
            assert sink.registry is not None
            ahead.check_compatible(catalog, sink.registry, subject, schema)

    def _check_topics(self, effects: tuple[Effect, ...], catalog: Catalog, ahead: outside.Planned) -> None:
        """That Kafka would make the topics: what it refuses must be known before anything is done."""
        for effect in effects:
            if isinstance(effect, CreateTopic) and (effect.connection, effect.topic) not in ahead.topics:
                self._connections.kafka(catalog, effect.connection).check_new_topic(
                    effect.topic, _topic_options(effect)
                )

    def _sealed(self, statement: Statement) -> SecretSource | None:
        if not isinstance(statement, CreateSecret | AlterSecret):
            return None
        match statement.value:
            case SecretText(text):
                return self._store.seal(Secret(text))
            case SecretFromEnv(variable):
                return FromEnvironment(variable)
            case SecretFromFile(path):
                return FromFile(path)

    # doing

    def _do(self, step: Step, session: Session, cancellation: Cancellation) -> Iterator[Result]:
        statement = step.statement
        catalog = self._store.load()
        if isinstance(statement, SetSearchPath):
            session.path = search_path(catalog, session.path, statement.path)
            yield Done("SET")
        elif isinstance(statement, Select):
            yield from self._queries.select(catalog, step.path, statement, cancellation)
        elif isinstance(statement, ValidateConnection):
            connection = resolve(catalog, step.path, statement.name, Kind.CONNECTION)
            self._connections.validate(catalog, connection.id)
            yield Done("VALIDATE CONNECTION")
        elif isinstance(statement, AcceptSchemaChange) and step.planned is None:
            yield from self._accept(statement, catalog, step.path)
        elif isinstance(statement, ReplayQuarantine):
            yield from replayed(quarantining(statement, catalog, step.path), catalog, self._queries.replay)
        elif step.planned is None:
            yield from self._look(statement, catalog, step.path)
        else:
            yield from self._change(step, step.planned)

    def _accept(self, statement: AcceptSchemaChange, catalog: Catalog, path: SearchPath) -> Iterator[Result]:
        source = find(catalog, path, statement.name, Kind.SOURCE)
        if source is None:
            yield Notice(f'source "{statement.name}" does not exist, skipped')
        else:
            ids = self._follower.accept(source.id)
            yield Notice(
                f"schema id {', '.join(map(str, ids))} is taken up" if ids else "there is no change to accept"
            )
        yield Done("ALTER SOURCE")

    def _look(self, statement: Statement, catalog: Catalog, path: SearchPath) -> Iterator[Result]:
        table = look(statement, catalog, path, self._store)
        assert table is not None
        yield from table
        yield Done("SHOW")

    def _change(self, step: Step, first: Planned) -> Iterator[Result]:
        """Purified and planned again on the world as it is now, because in the copy the ids of what earlier statements
        make were only guessed; then done."""
        if first.skipped:
            yield from (Notice(text) for text in first.notices)
            yield Done(first.tag)
            return
        catalog = self._store.load()
        statement = step.statement
        if isinstance(statement, CreateConnection):  # whose check is not repeated
            statement = first.statement
        else:
            statement = purify(statement, catalog, step.path, outside.World(self._connections))
        asked = self._asked(statement, catalog, step.path)
        planned = plan(statement, catalog, step.path, step.written, self._sealed(statement), asked)
        ids = self._perform(planned.effects, catalog)
        changes = tuple(_with_ids(change, statement, ids) for change in planned.changes)
        self._store.commit(changes, cause="statement", statement=step.written, planned=catalog.version)
        yield from (Notice(text) for text in planned.notices)
        yield Done(planned.tag)

    def _perform(self, effects: tuple[Effect, ...], catalog: Catalog) -> dict[str, tuple[int, str]]:
        """Do what must be done outside; the ids of the schemas that were registered, by subject."""
        ids: dict[str, tuple[int, str]] = {}
        for effect in effects:
            match effect:
                case CreateTopic():
                    kafka = self._connections.kafka(catalog, effect.connection)
                    kafka.create_topic(effect.topic, _topic_options(effect))
                case RegisterSchema():
                    registry = self._connections.registry(catalog, effect.connection)
                    if effect.level is not None:
                        registry.set_level(effect.level, effect.subject)
                    ids[effect.subject] = (
                        registry.register(effect.subject, to_register(effect.schema)),
                        effect.schema.text,
                    )
        return ids


def _topic_options(effect: CreateTopic) -> NewTopicOptions:
    return NewTopicOptions(effect.partitions, effect.replicas, effect.config)


def _expect(effects: tuple[Effect, ...], ahead: outside.Planned) -> None:
    for effect in effects:
        match effect:
            case CreateTopic():
                ahead.topics[effect.connection, effect.topic] = effect.partitions
            case RegisterSchema():
                ahead.schemas[effect.connection, effect.subject] = effect.schema


def _with_ids(change: Change, statement: Statement, ids: dict[str, tuple[int, str]]) -> Change:
    """The sink with the ids of its schemas frozen into its purified statement."""
    if not ids or not isinstance(change, ObjectCreated) or not isinstance(statement, CreateSink):
        return change
    for subject, (schema_id, text) in ids.items():
        side: Side = "KEY" if subject.endswith("-key") else "VALUE"
        formats = with_frozen_schemas(statement.formats, side, (FrozenSchema(side, schema_id, text),))
        statement = replace(statement, formats=formats)
    purified = purified_text(statement, facts_of(change.object))
    return replace(change, object=replace(change.object, purified=purified))
