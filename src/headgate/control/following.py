"""Schema changes in flight: the new schemas of a source are taken into the catalog, with all that follows from them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import DefinitionChanged, Unit
from headgate.catalog.definitions import statement_of
from headgate.catalog.errors import CatalogChanged
from headgate.catalog.store import Store
from headgate.connectors.connections import Connections
from headgate.control.definitions import source_definition
from headgate.errors import HeadgateError
from headgate.plan.encodings import encodings
from headgate.plan.follow import AskTypes, SinkChange, plan_follow, sink_change
from headgate.registry.errors import IncompatibleSchema
from headgate.registry.schemas import to_register
from headgate.runtime.source import Arrived, SourceReader
from headgate.schema.encodings import SchemaEncoding
from headgate.schema.evolve.arriving import breaking_fields
from headgate.sql.sources import CreateSource

log = logging.getLogger(__name__)

TRIES = 5


class Follower:
    """Shared by all tasks and queries of an engine: whoever meets a schema first brings it in for all."""

    def __init__(self, store: Store, connections: Connections, ask: AskTypes) -> None:
        self._store = store
        self._connections = connections
        self._ask = ask
        self._guard = threading.Lock()

    def follow(self, source_id: int, arrived: Sequence[Arrived]) -> None:
        """Nothing happens for schemas that the source has already. A sink whose registry refuses its new schema keeps
        the old one and is halted when it is planned again; the others go on."""
        with self._guard:
            for _ in range(TRIES):
                try:
                    return self._follow(self._store.load(), source_id, arrived)
                except CatalogChanged:  # a statement came in between
                    continue
            return self._follow(self._store.load(), source_id, arrived)

    def catch_up(self, sink_id: int) -> bool:
        """Register what a sink was refused, in case its registry takes it now. Whether it did; a registry that does not
        answer raises."""
        with self._guard:
            catalog = self._store.load()
            needed = sink_change(catalog, catalog.get(sink_id))
            if needed is None:
                return False
            try:
                unit = Unit(
                    (needed.change(self._register(catalog, needed)),), "the registry takes its schema now"
                )
                self._store.commit_all([unit], planned=catalog.version)
            except (IncompatibleSchema, CatalogChanged):  # after a change the sink is tried again anyway
                return False
            return True

    def accept(self, source_id: int) -> tuple[int, ...]:
        """Take up every change of the source's schema that the registry has now, also what nobody follows by himself;
        the ids of the schemas. Raises if something downstream would not fit any more, and then nothing is done."""
        with self._guard:
            catalog = self._store.load()
            reader = SourceReader(
                source_definition(catalog, catalog.get(source_id)), self._connections.of(catalog)
            )
            reader.refresh()
            schemas = reader.schemas["value"].changed()
            if not schemas:
                return ()
            planned = plan_follow(catalog, catalog.get(source_id), schemas, self._ask, all_fit=True)
            sinks = [sink.change(self._register(catalog, sink)) for sink in planned.sinks]
            ids = tuple(schema.id or 0 for schema in schemas)
            unit = Unit((*planned.changes, *sinks), f"schema id {', '.join(map(str, ids))} accepted")
            self._store.commit_all([unit], planned=catalog.version)
            return ids

    def _follow(self, catalog: Catalog, source_id: int, arrived: Sequence[Arrived]) -> None:
        source = catalog.get(source_id)
        side = encodings(statement_of(source, CreateSource).formats)[0]
        assert isinstance(side, SchemaEncoding)
        new = _fitting(side, arrived)
        if not new:
            return
        planned = plan_follow(catalog, source, [a.schema for a in new], self._ask)
        sinks = [change for sink in planned.sinks if (change := self._registered(catalog, sink)) is not None]
        ids = ", ".join(str(a.schema.id) for a in new)
        unit = Unit((*planned.changes, *sinks), f"schema id {ids}", None, new[0].record)
        self._store.commit_all([unit], planned=catalog.version)
        log.info('source "%s" follows schema id %s, first seen at %s', source.name, ids, new[0].record)

    def _registered(self, catalog: Catalog, sink: SinkChange) -> DefinitionChanged | None:
        try:
            return sink.change(self._register(catalog, sink))
        except HeadgateError as error:
            log.warning('sink "%s" cannot follow: %s', sink.sink.name, error)
            return None

    def _register(self, catalog: Catalog, sink: SinkChange) -> list[int]:
        return [
            self._connections.registry(catalog, effect.connection).register(
                effect.subject, to_register(effect.schema)
            )
            for _, effect in sink.register
        ]


def _fitting(side: SchemaEncoding, arrived: Sequence[Arrived]) -> list[Arrived]:
    """Those that the side does not have, without those that contradict one before them: that is not followed."""
    new: list[Arrived] = []
    known = {schema.id for schema in side.schemas}
    for schema in arrived:
        if schema.schema.id not in known and not breaking_fields(side, schema.schema):
            new.append(schema)
            side = replace(side, schemas=(*side.schemas, schema.schema))
    return new
