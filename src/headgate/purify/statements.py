"""Which statements ask something of the outside, and what."""

from __future__ import annotations

from dataclasses import replace

from headgate.purify.errors import SecretWrittenOut
from headgate.purify.lookups import Lookups
from headgate.purify.sources import has_password, purify_source
from headgate.resolve.context import Context
from headgate.resolve.statements import check_connections, topic_name
from headgate.sql.connections import CreateConnection
from headgate.sql.options import OptionRule, given_options
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import AcceptSchemaChange, CreateSource
from headgate.sql.statement import Kind, ObjectName, Statement


def purify(statement: Statement, context: Context, lookups: Lookups) -> tuple[Statement, Context]:
    """The resolved statement with every outside answer in it, and the context with those answers that the statement has
    no place for."""
    match statement:
        case CreateConnection():
            return _purify_connection(statement, context, lookups), context
        case CreateSource():
            return purify_source(statement, context, lookups), context
        case CreateSink():
            topic_name(statement.kafka)
            check_connections(context.catalog, statement)
            return statement, context
        case AcceptSchemaChange(kind=Kind.SOURCE, name=ObjectName(id=int(source))):
            schemas = lookups.changed_schemas(context.catalog, source)
            return statement, replace(context, answers=replace(context.answers, schemas=schemas))
        case _:
            return statement, context


def _purify_connection(statement: CreateConnection, context: Context, lookups: Lookups) -> CreateConnection:
    """Check that no secret is written out, and that the system answers."""
    for rule, value in given_options(statement.options):
        if isinstance(value, str) and _contains_secret(rule, value):
            raise SecretWrittenOut(rule.name, str(statement.name))
    if statement.with_options.validate:
        lookups.check(context.catalog, statement)
    return statement


def _contains_secret(rule: OptionRule, value: str) -> bool:
    if rule.field == "ssl_key":  # the path of a file that holds the key is no secret
        return "-----BEGIN" in value
    return rule.sensitive or (rule.field == "url" and has_password(value))
