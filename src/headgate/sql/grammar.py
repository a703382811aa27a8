"""The grammar of every statement for the docs. A test generates statements from it and reads them with the parser.

``[…]`` is optional, ``{… | …}`` a choice, ``<…>`` a rule or a name of the user's, ``[, ...]`` repeats what stands
before it.
"""

from __future__ import annotations

from headgate.sql import (
    captures,
    collections,
    connections,
    formats,
    kafka,
    materializations,
    objects,
    queries,
    show,
    sinks,
    sources,
    streams,
    types,
    views,
)
from headgate.sql.options import OptionRule, Options, ValueKind, rules

_STATEMENTS = (
    objects.SYNOPSES, connections.SYNOPSES, sources.SYNOPSES, types.SYNOPSES, views.SYNOPSES, sinks.SYNOPSES,
    streams.SYNOPSES, collections.SYNOPSES, captures.SYNOPSES, materializations.SYNOPSES, queries.SYNOPSES, show.SYNOPSES,
)  # fmt: skip
_RULES = (
    objects.RULES, captures.RULES, connections.RULES, formats.RULES, queries.RULES, materializations.RULES, show.RULES,
    sinks.RULES, sources.RULES, streams.RULES, views.RULES,
)  # fmt: skip
_OPTION_LISTS = (
    captures.OPTION_LISTS, collections.OPTION_LISTS, connections.OPTION_LISTS, objects.OPTION_LISTS,
    formats.OPTION_LISTS, kafka.OPTION_LISTS, materializations.OPTION_LISTS, sinks.OPTION_LISTS,
    sources.OPTION_LISTS, streams.OPTION_LISTS, views.OPTION_LISTS,
)  # fmt: skip

# Placeholders for what the user writes; everything else in angle brackets is a rule.
TERMINALS = (
    "name", "new name", "column", "schema", "database", "string", "number", "boolean", "interval", "map", "type",
    "pointer", "query", "expression", "option name", "create statement", "create or replace statement",
    "create sink statement", "alter statement", "insert statement",
)  # fmt: skip

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
    """The synopsis of each statement, by its name, with line breaks."""
    return {name: wrapped(synopsis) for group in _STATEMENTS for name, synopsis in group.items()}


def all_rules() -> dict[str, str]:
    """The rules that synopses and other rules refer to. Those for lists of options are made from their declarations."""
    written = {name: rule for group in _RULES for name, rule in group.items()}
    return written | {name: _options_rule(cls) for name, cls in all_option_lists().items()}


def all_option_lists() -> dict[str, type[Options]]:
    return {name: cls for group in _OPTION_LISTS for name, cls in group.items()}


def _options_rule(cls: type[Options]) -> str:
    return "{" + " | ".join(f"{rule.name} = {_placeholder(rule)}" for rule in rules(cls)) + "}"


def _placeholder(rule: OptionRule) -> str:
    if rule.kind is ValueKind.CHOICE:
        return "{" + " | ".join(rule.choices) + "}"
    if rule.choices:
        return "{" + " | ".join(f"'{choice}'" for choice in rule.choices) + "}"
    return _PLACEHOLDERS[rule.kind]


def wrapped(synopsis: str, width: int = 100) -> str:
    """The synopsis with line breaks before outer brackets and in long choices."""
    lines: list[str] = [""]
    for part in _split(synopsis, " "):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("   ")
        if len(part) > width - 4 and part.startswith("{"):
            part = "\n    | ".join(alternative.strip() for alternative in _split(part[1:-1], "|")).join("{}")
        lines[-1] += (" " if lines[-1] else "") + part
    return "\n".join(lines)


def _split(text: str, separator: str) -> list[str]:
    """Split the text at separators that are outside of all brackets."""
    parts, depth = [""], 0
    for before, character in zip(" " + text, text, strict=False):
        if before + character != "->":
            depth += (character in "[{(<") - (character in "]})>")
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
