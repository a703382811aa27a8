"""Calls of materializations ON DEMAND: from what a client asks to the rows that the query process gives.

The services are those of the catalog at the time of a call: CREATE, DROP and schema changes need no restart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from google.protobuf import descriptor_pb2 as pb

from headgate.catalog.catalog import Catalog
from headgate.catalog.graph import upstream
from headgate.catalog.names import DEFAULT_PATH, resolve
from headgate.catalog.objects import Object, is_on_demand
from headgate.catalog.positions import ClockPosition, KafkaPosition, LogPosition, Position, Positions
from headgate.catalog.store.sqlite import SqliteStore
from headgate.control.definitions import exact_relations, relation_definitions
from headgate.control.sessions import Cancellation
from headgate.errors import HeadgateError, InternalError
from headgate.plan import definitions as d
from headgate.plan.materialization_errors import NotOnDemand
from headgate.plan.materializations import existing_materialization
from headgate.plan.on_demand import (
    RowsRequest,
    checked_limit,
    chosen_fields,
    key_values,
    on_demand_materializations,
    row_filter,
    service_word,
)
from headgate.plan.on_demand_messages import descriptors, row_file, shared_files
from headgate.plan.target_definitions import (
    OnDemandDefinition,
    OnDemandRows,
    RowForm,
)
from headgate.resolve.streams import READ_KINDS
from headgate.runtime import query as answers
from headgate.runtime.query_process import Queries
from headgate.runtime.source import Follow
from headgate.sql.errors import UnknownColumn
from headgate.sql.statement import Kind, ObjectName, object_name
from headgate.text.cursor import Cursor
from headgate.text.lexer import TokenKind, tokenize

REGROWTHS = 3  # how often a call is begun anew because its sources got other columns meanwhile


@dataclass(frozen=True, slots=True)
class RowsCall:
    """A call. ``materialization`` is the id of an object."""

    materialization: int
    request: RowsRequest
    form: RowForm


@dataclass(frozen=True, slots=True)
class RowsEnd:
    """What a client is told after the rows. ``position`` says what they reflect, by the name of each relation that was read.
    ``skipped`` rows do not fit the materialization, and records of sources that could not be decoded are in ``left_out``."""

    position: Mapping[str, object]
    skipped: int = 0
    left_out: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """The service of a materialization: its name, and the file of its message."""

    materialization: int
    name: str
    file: pb.FileDescriptorProto


class OnDemand:
    """Answers calls. Any number of threads may use it."""

    def __init__(
        self,
        store: SqliteStore,
        queries: Queries,
        request: Callable[[Catalog, d.SelectDefinition], answers.QueryRequest],
        follow: Follow,
        follow_arrived: Callable[[Catalog, Object], bool],
    ) -> None:
        """``request`` adds to a query all that the query process needs. ``follow`` lets a source take up new schemas."""
        self._store = store
        self._queries = queries
        self._request = request
        self._follow = follow
        self._follow_arrived = follow_arrived
        self._guard = threading.Lock()
        self._known: tuple[int, tuple[Service, ...]] | None = None

    # services

    def services(self) -> tuple[Service, ...]:
        """The services of the catalog as it is now. A materialization that cannot be planned any more has none."""
        catalog = self._store.load()
        with self._guard:
            if self._known is None or self._known[0] != catalog.version:
                self._known = catalog.version, tuple(self._services(catalog))
            return self._known[1]

    def _services(self, catalog: Catalog) -> Iterator[Service]:
        for entry in on_demand_materializations(catalog):
            try:
                made = self._file(entry, _planned(catalog, entry))
            except HeadgateError:  # DESCRIBE EXTENDED says why
                continue
            yield Service(entry.id, service_word(entry.name), made)

    def _file(self, entry: Object, definition: OnDemandDefinition) -> pb.FileDescriptorProto:
        """The file of a materialization's message. It is stored, because the next one must have the same numbers."""
        before = self._store.row_message(entry.id)
        made = row_file(definition, service_word(entry.name), before)
        written = made.SerializeToString(deterministic=True)
        if written != before:
            self._store.save_row_message(entry.id, written)
        return made

    def find(self, name: str) -> int:
        """The materialization of a name, as a statement would write it. Raises UnknownObject and NotOnDemand."""
        catalog = self._store.load()
        found = resolve(catalog, DEFAULT_PATH, _object_name(name), Kind.MATERIALIZATION)
        if not is_on_demand(found):
            raise NotOnDemand(found.name)
        return found.id

    # calls

    def rows(self, call: RowsCall, cancellation: Cancellation) -> Generator[tuple[bytes, ...] | RowsEnd, None, None]:
        """The rows of a call, in pieces, and what is to be said after them. A call whose sources must grow first is planned anew when
        they have."""
        catalog = self._store.load()
        for tried in range(REGROWTHS):
            try:
                planned = self._plan(catalog, call)
            except UnknownColumn:
                if tried or not self._sources_grew(catalog, call.materialization):
                    raise
                catalog = self._store.load()
                continue
            grown = yield from self._run(catalog, planned, cancellation)
            if grown is None:
                return
            for source, arrived in grown.arrived:
                self._follow(source, arrived)
            catalog = self._store.load()
        raise InternalError("the sources of a materialization get other columns again and again")

    def check(self, call: RowsCall) -> None:
        """Raises what is wrong with a call, before anything runs."""
        catalog = self._store.load()
        try:
            self._plan(catalog, call)
        except UnknownColumn:
            if not self._sources_grew(catalog, call.materialization):
                raise
            self._plan(self._store.load(), call)

    def _sources_grew(self, catalog: Catalog, materialization: int) -> bool:
        sources = [one for one in upstream(catalog, materialization) if one.kind in READ_KINDS]
        grown = [self._follow_arrived(catalog, one) for one in sources]  # a list, so that every source follows
        return any(grown)

    def _plan(self, catalog: Catalog, call: RowsCall) -> answers.QueryRequest:
        entry = catalog.get(call.materialization)
        definition = _planned(catalog, entry)
        relation = catalog.get(definition.relation)
        relations = relation_definitions(catalog, [relation.id])
        relations, exact = exact_relations(catalog, relation.id, relations, definition.fields)
        definition = replace(definition, fields=exact)
        asked = call.request
        fields = chosen_fields(definition, asked.fields)
        filter_ = row_filter(catalog, definition, asked.filter, fields)
        limit = checked_limit(asked.limit)
        key = key_values(definition, relation.name, asked.key)
        wanted = OnDemandRows(
            definition, call.form, fields, filter_, limit, key, self._descriptors(entry, definition, call.form)
        )
        read = d.QueryDefinition(
            f"SELECT * FROM {d.spark_name(relation.id)}",
            tuple((column.name, column.type) for column in relation.columns),
            (relation.id,),
            row_by_row=True,
            limit=None if definition.on_error == "SKIP" else limit,
        )
        return replace(self._request(catalog, d.SelectDefinition(read, relations)), on_demand=wanted)

    def _descriptors(self, entry: Object, definition: OnDemandDefinition, form: RowForm) -> bytes:
        match form:
            case "message":
                with self._guard:
                    return descriptors(self._file(entry, definition))
            case "json":
                return descriptors(shared_files()[0])
            case "flat":
                return descriptors(shared_files()[1])
            case "object":
                return b""

    def _run(
        self, catalog: Catalog, request: answers.QueryRequest, cancellation: Cancellation
    ) -> Generator[tuple[bytes, ...] | RowsEnd, None, answers.Grown | None]:
        running = self._queries.open(request)
        with closing(running), cancellation.stops(running.cancel):
            for answer in running.answers():
                match answer:
                    case answers.Messages(rows):
                        yield rows
                    case answers.Finished():
                        yield _end(catalog, answer)
                    case answers.Grown():
                        return answer
                    case answers.Failed(error):
                        raise error
                    case _:
                        pass
        return None


def _object_name(text: str) -> ObjectName:
    cursor = Cursor(text, tokenize(text))
    name = object_name(cursor)
    if cursor.token.kind is not TokenKind.END:
        raise cursor.unexpected()
    return name


def _planned(catalog: Catalog, entry: Object) -> OnDemandDefinition:
    planned = existing_materialization(catalog, entry)
    assert isinstance(planned, OnDemandDefinition), "the caller knows that it is ON DEMAND"
    return planned


# positions


def _end(catalog: Catalog, finished: answers.Finished) -> RowsEnd:
    position: dict[str, object] = {catalog.display_name(id_): _printed(one) for id_, one in finished.read.items()}
    for view, reached in finished.reached.items():
        position[catalog.display_name(view)] = _inputs(catalog, reached)
    bad = {catalog.display_name(id_): count for id_, count in finished.bad_records.items() if count}
    return RowsEnd(position, finished.skipped, bad)


def _inputs(catalog: Catalog, reached: Positions | None) -> object:
    """Up to where a materialized view has its inputs; None before its first batch."""
    if reached is None:
        return None
    return {_name(catalog, id_, one): _printed(one) for id_, one in reached.items()}


def _name(catalog: Catalog, relation: int, position: Position) -> str:
    if isinstance(position, ClockPosition):
        return "now"
    return catalog.display_name(relation) if relation in catalog.objects else "a dropped relation"


def _printed(position: Position) -> object:
    match position:
        case KafkaPosition():
            return {"topic": position.topic, "offsets": list(position.offsets)}
        case LogPosition():
            return {"batch": position.number}
        case ClockPosition():
            return {"time": position.time.isoformat()}
        case _:
            raise InternalError("no relation that can be read has other positions")
