"""The grammar of statements as text: `grammar.txt`, and the rules that are made from declarations.

The reference in the docs and the completion of the shell use it. The parser does not, but a test generates statements from it and
reads them with the parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import get_args

from headgate.sql import (
    captures,
    connections,
    materializations,
    objects,
    registry_formats,
    sinks,
    sources,
    streams,
    subscribe,
    views,
)
from headgate.sql.options import ChangeOptions, OptionRule, Options, ValueKind, rules
from headgate.sql.show import Listing
from headgate.sql.statement import Kind

# The lists of options, by the name of their rule.
OPTION_LISTS: dict[str, type[Options]] = {
    "drop option": objects.DropOptions,
    "read option": connections.ReadOptions,
    "write option": connections.WriteOptions,
    "kafka connection option": connections.KafkaConnectionOptions,
    "registry connection option": connections.RegistryConnectionOptions,
    "postgres connection option": connections.PostgresConnectionOptions,
    "elasticsearch connection option": connections.ElasticsearchConnectionOptions,
    "connection option": connections.AnyConnectionOptions,
    "validate option": connections.ValidateOptions,
    "source option": sources.SourceOptions,
    "change option": ChangeOptions,
    "plain view option": views.MaterializedViewOptions,
    "property": streams.StreamProperties,
    "subscribe option": subscribe.SubscribeOptions,
    "sink option": sinks.SinkOptions,
    "capture option": captures.CaptureOptions,
    "tables option": captures.TablesOptions,
    "collection option": captures.CollectionOptions,
    "materialization option": materializations.MaterializationOptions,
    "table option": materializations.TableOptions,
    "index option": materializations.IndexOptions,
    "inline option": registry_formats.InlineFormatOptions,
    "plain write format option": registry_formats.WriteFormatOptions,
}
# The value of an option in a rule, by its kind.
_PLACEHOLDERS = {
    ValueKind.STRING: "<string>",
    ValueKind.INTEGER: "<number>",
    ValueKind.TIMESTAMP: "{<number> | <string>}",
    ValueKind.BOOLEAN: "<boolean>",
    ValueKind.SECRET: "{<string> | SECRET <name>}",
    ValueKind.INTERVAL: "<interval>",
    ValueKind.STRINGS: "(<string> [, ...])",
    ValueKind.OFFSETS: "{<number> | (<number> [, ...]) | EARLIEST | LATEST}",
    ValueKind.SEED_OFFSETS: "(<number> [, ...])",
    ValueKind.MAP: "<map>",
    ValueKind.EXPRESSION: "<expression>",
}


def all_synopses() -> dict[str, str]:
    """The synopsis of each statement, by its name, on one line."""
    return {name: text for name, text in _written().items() if name[0].isupper()}


def all_rules() -> dict[str, str]:
    """The rules that synopses and other rules refer to, by their names in lower case."""
    made = {"kind": _choice(kind.words for kind in Kind), "listing": _choice(get_args(Listing))}
    written = {name: text for name, text in _written().items() if not name[0].isupper()}
    return written | made | {name: _options_rule(cls) for name, cls in OPTION_LISTS.items()}


@cache
def _written() -> dict[str, str]:
    """The entries of the file: a name and a colon, and below it indented lines."""
    text = (files("headgate.sql") / "grammar.txt").read_text("utf-8")
    return {
        name: " ".join(lines.split()) for name, lines in re.findall(r"^(\w.*):\n((?:    .*\n)+)", text, re.MULTILINE)
    }


def _options_rule(cls: type[Options]) -> str:
    return _choice(f"{rule.name} = {_placeholder(rule)}" for rule in rules(cls))


def _placeholder(rule: OptionRule) -> str:
    """The value of an option as a rule shows it."""
    if rule.choices:
        return _choice(rule.choices if rule.kind is ValueKind.CHOICE else (f"'{choice}'" for choice in rule.choices))
    return _PLACEHOLDERS[rule.kind]


def _choice(alternatives: Iterable[str]) -> str:
    return "{" + " | ".join(alternatives) + "}"
