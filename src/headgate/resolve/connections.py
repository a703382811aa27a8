"""What ALTER CONNECTION makes of a connection."""

from __future__ import annotations

from dataclasses import replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import definition_of
from headgate.errors import similar_names
from headgate.resolve.statements import object_id
from headgate.sql.connections import AlterConnection, ConnectionOptions, CreateConnection
from headgate.sql.errors import UnknownOption
from headgate.sql.options import OptionRule, given_options, rules


def altered_connection(catalog: Catalog, statement: AlterConnection) -> CreateConnection:
    """The connection with the options that the statement sets and without those that it resets. Raises UnknownOption for an option
    that its system does not have: ALTER does not name the system, so that its parser takes all of them."""
    known = definition_of(catalog.get(object_id(statement.name)), CreateConnection)
    options = known.options
    changed: dict[str, object] = {
        _rule(options, given.name).field: value for given, value in given_options(statement.set_options)
    }
    for name in statement.reset_options:
        rule = _rule(options, name)
        changed[rule.field] = rule.default
    return replace(known, options=replace(options, **changed), with_options=statement.with_options)  # type: ignore[arg-type]


def _rule(options: ConnectionOptions, name: str) -> OptionRule:
    """The option of this name or alias."""
    known = rules(type(options))
    for rule in known:
        if name in (rule.name, *rule.aliases):
            return rule
    names = tuple(rule.name for rule in known)
    raise UnknownOption(name, f"the {options.system.lower()} connection", names, similar_names(name, names))
