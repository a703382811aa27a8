"""Statements about connections: what each changes in the catalog."""

from __future__ import annotations

from dataclasses import replace

from headgate.catalog.objects import Dependency, DependencyKind
from headgate.plan.impact import definition
from headgate.plan.plans import ChangeCatalog
from headgate.resolve.connections import altered_connection
from headgate.resolve.statements import Context, object_id
from headgate.sql.connections import AlterConnection, CreateConnection
from headgate.sql.options import SecretReference, given_options


def connection_secrets(connection: CreateConnection) -> tuple[Dependency, ...]:
    """The secrets that a connection uses."""
    values = [value for _, value in given_options(connection.options)]
    ids = [object_id(value.name) for value in values if isinstance(value, SecretReference)]
    return tuple(Dependency(id_, DependencyKind.SECRET) for id_ in dict.fromkeys(ids))


def plan_alter_connection(statement: AlterConnection, context: Context) -> ChangeCatalog:
    """ALTER CONNECTION. Every task that uses the connection is started anew with it."""
    entry = context.catalog.get(object_id(statement.name))
    altered = altered_connection(context.catalog, statement)
    change = replace(definition(entry, altered, entry.columns), dependencies=connection_secrets(altered))
    return ChangeCatalog(statement.words, (change,))
