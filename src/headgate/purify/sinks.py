"""CREATE SINK: what it names is found; its topic need not exist."""

from __future__ import annotations

from dataclasses import replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.names import SearchPath, resolve
from headgate.catalog.objects import RELATIONS
from headgate.purify.references import lasting_formats, lasting_kafka, lasting_name
from headgate.purify.topics import topic_name
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import ObjectName
from headgate.text.cursor import Identifier


def purify_sink(statement: CreateSink, catalog: Catalog, path: SearchPath) -> CreateSink:
    relation = lasting_name(catalog, path, statement.relation, *sorted(RELATIONS))
    topic_name(statement.kafka)
    return replace(
        statement,
        # A sink without a name stands where its relation was looked for, whatever the relation is called from now on.
        name=statement.name if relation == statement.relation else sink_name(catalog, path, statement),
        relation=relation,
        kafka=lasting_kafka(catalog, path, statement.kafka),
        formats=lasting_formats(catalog, path, statement.formats),
    )


def sink_name(catalog: Catalog, path: SearchPath, statement: CreateSink) -> ObjectName:
    """The name that is given, or else that of the relation with `_sink` behind it."""
    if statement.name is not None:
        return statement.name
    relation = resolve(catalog, path, statement.relation, *sorted(RELATIONS))
    last = Identifier(f"{relation.name}_sink", quoted=True)
    return ObjectName((*statement.relation.parts[:-1], last), span=statement.relation.span)
