"""Schema changes that arrive in flight: the source follows them in the catalog, and so does everything downstream."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import Commit, DefinitionChanged
from headgate.catalog.errors import CatalogChanged
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import Connections
from headgate.control.definitions import source_definition
from headgate.errors import HeadgateError
from headgate.plan.definitions import RecordSide
from headgate.plan.encodings import encodings
from headgate.plan.impact import SinkChange, needed_sink, plan_follow, sink_change
from headgate.registry.errors import IncompatibleSchema
from headgate.registry.schemas import to_register
from headgate.resolve.statements import SparkTypes, TakenSchema
from headgate.resolve.streams import read_statement
from headgate.runtime.source import ArrivedSchema, SourceReader
from headgate.schema.encodings import Encoding, SchemaEncoding
from headgate.schema.evolve.verdicts import Target, arriving
from headgate.sql.registry_formats import Side
from headgate.sql.sources import CreateSource

log = logging.getLogger(__name__)

TRIES = 5
SIDES: dict[RecordSide, Side] = {"key": "KEY", "value": "VALUE"}


class SchemaChanges:
    """Shared by all tasks and queries of an engine. The first of them that meets a new schema makes the source follow it."""

    def __init__(self, store: SqliteStore, connections: Connections, ask: SparkTypes) -> None:
        self._store = store
        self._connections = connections
        self._ask = ask
        self._guard = threading.Lock()

    def follow(self, source_id: int, arrived: Sequence[ArrivedSchema]) -> None:
        """Make a source follow new schemas. Schemas that it reads already change nothing.

        A sink whose registry refuses the new schema keeps the old one and halts when it is planned again. Others go on.
        """
        with self._guard:
            for _ in range(TRIES):
                try:
                    return self._follow(self._store.load(), source_id, arrived)
                except CatalogChanged:  # a statement was committed in between
                    continue
            return self._follow(self._store.load(), source_id, arrived)

    def retry_registration(self, sink_id: int) -> bool:
        """Register again the schema that the registry refused for a sink. Returns whether the registry accepts it now.

        Raises if the registry does not answer.
        """
        with self._guard:
            catalog = self._store.load()
            sink = catalog.get(sink_id)
            needed = sink_change(catalog, sink, needed_sink(catalog, sink))
            if needed is None:
                return False
            try:
                unit = Commit((needed.change(self._register(catalog, needed)),), "the registry accepts its schema now")
                self._store.commit_all([unit], planned=catalog.version)
            except (IncompatibleSchema, CatalogChanged):  # a change of the catalog starts the sink again anyway
                return False
            return True

    def changed_schemas(self, catalog: Catalog, source_id: int) -> tuple[TakenSchema, ...]:
        """The schemas that the registry has for a source and that the source does not read yet, for ACCEPT."""
        source = source_definition(catalog.get(source_id))
        reader = SourceReader(source, self._connections.of(catalog))
        reader.refresh()
        values: list[TakenSchema] = [("VALUE", one) for one in reader.schemas["value"].changed()]
        return (*values, *(("KEY", one) for one in reader.schemas["key"].changed()))

    def _follow(self, catalog: Catalog, source_id: int, arrived: Sequence[ArrivedSchema]) -> None:
        source = catalog.get(source_id)
        new = followable(read_statement(source), arrived)
        if not new:
            return
        schemas = [(SIDES[a.side], a.schema) for a in new]
        planned = plan_follow(catalog, source, schemas, self._ask)
        sinks = [change for sink in planned.sinks if (change := self._registered(catalog, sink)) is not None]
        ids = ", ".join(str(a.schema.id) for a in new)
        unit = Commit((*planned.changes, *sinks), f"schema id {ids}", None, new[0].record)
        self._store.commit_all([unit], planned=catalog.version)
        at = new[0].record
        log.info(
            'source "%s" follows schema id %s, first seen at topic "%s" partition %s offset %s',
            source.name, ids, at.topic, at.partition, at.offset,
        )  # fmt: skip

    def _registered(self, catalog: Catalog, sink: SinkChange) -> DefinitionChanged | None:
        try:
            return sink.change(self._register(catalog, sink))
        except HeadgateError as error:
            log.warning('sink "%s" cannot follow: %s', sink.sink.name, error)
            return None

    def _register(self, catalog: Catalog, sink: SinkChange) -> list[int]:
        return [
            self._connections.registry(catalog, effect.connection).register(effect.subject, to_register(effect.schema))
            for _, effect in sink.register
        ]


def followable(source: CreateSource, arrived: Sequence[ArrivedSchema]) -> list[ArrivedSchema]:
    """The schemas that the source does not read yet and can follow. One that contradicts an earlier one is left out."""
    value, key = encodings(source.formats)
    known: dict[RecordSide, Encoding | None] = {"value": value, "key": key}
    new: list[ArrivedSchema] = []
    for one in arrived:
        side = known[one.side]
        assert isinstance(side, SchemaEncoding)
        target = Target.KEY if one.side == "key" else Target.READER
        if arriving(side, one.schema, target).grows:
            new.append(one)
            known[one.side] = replace(side, schemas=(*side.schemas, one.schema))
    return new
