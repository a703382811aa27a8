"""Options: ``NAME [=] value``, separated by commas, in parentheses, from a declared table.

A name may consist of several words, and the longest match counts. ``_`` and a blank are the same in it, so that
``on_error`` and ``ON ERROR`` are one option. The table also declares the kind of the value, which says how to read it.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from headgate.errors import HeadgateError, Span, similar_names
from headgate.sql.errors import (
    InvalidOptionValue,
    RepeatedOption,
    UnknownChoice,
    UnknownOption,
)
from headgate.sql.queries import read_expression
from headgate.sql.statement import Expression, ObjectName, block, object_name, print_name, print_string
from headgate.text.cursor import Cursor
from headgate.text.lexer import TokenKind, describe_token, shortened


@dataclass(frozen=True, slots=True)
class StringLiteral:
    value: str


@dataclass(frozen=True, slots=True)
class NumberLiteral:
    """A number as it was written, with its sign."""

    text: str


@dataclass(frozen=True, slots=True)
class BooleanLiteral:
    value: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the words that an option allows, in upper case: ``FOLLOW``, ``DISABLE BINDING``."""

    words: str


@dataclass(frozen=True, slots=True)
class SecretReference:
    name: ObjectName


@dataclass(frozen=True, slots=True)
class ListLiteral:
    items: tuple[StringLiteral | NumberLiteral, ...]


@dataclass(frozen=True, slots=True)
class MapLiteral:
    entries: tuple[tuple[str, str], ...]


Value: TypeAlias = (
    StringLiteral
    | NumberLiteral
    | BooleanLiteral
    | Choice
    | SecretReference
    | ListLiteral
    | MapLiteral
    | Expression
)


@dataclass(frozen=True, slots=True)
class Option:
    """An option with the name from its table, regardless of the case or alias that the user wrote."""

    name: str
    value: Value


def option(options: Iterable[object], name: str) -> Value | None:
    """The value of the option of this name, or None if it is not given. Items that are not options are skipped."""
    return next((o.value for o in options if isinstance(o, Option) and o.name == name), None)


class ValueKind(enum.Enum):
    """The kind of value that an option takes. The enum's value is its name in errors and docs."""

    STRING = "a string"
    INTEGER = "a whole number"
    TIMESTAMP = "a number of milliseconds or a timestamp in a string"
    BOOLEAN = "true or false"
    CHOICE = "a choice"
    SECRET = "a string or SECRET and the name of a secret"
    INTERVAL = "an interval in a string"
    STRINGS = "strings in parentheses"
    OFFSETS = "an offset from 0 on, offsets in parentheses, EARLIEST or LATEST"
    SEED_OFFSETS = "offsets in parentheses"
    MAP = "MAP['key' => 'value', ...]"
    EXPRESSION = "an expression"


@dataclass(frozen=True, slots=True)
class OptionRule:
    """One option. ``choices`` of a STRING are printed as strings, those of a CHOICE as words.

    Errors never quote the value of a ``sensitive`` option.
    """

    name: str
    kind: ValueKind
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The options of one list. ``owner`` is its name in errors, ``also`` are other items that the list can hold."""

    owner: str
    rules: tuple[OptionRule, ...]
    also: tuple[str, ...] = ()
    _by_words: dict[tuple[str, ...], OptionRule] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        spelled = {_words(name): rule for rule in self.rules for name in (rule.name, *rule.aliases)}
        object.__setattr__(self, "_by_words", spelled)

    def rule(self, words: tuple[str, ...]) -> OptionRule | None:
        return self._by_words.get(words)

    def longest(self) -> int:
        return max(len(words) for words in self._by_words)

    def names(self) -> tuple[str, ...]:
        return tuple(rule.name for rule in self.rules) + self.also


def items(cursor: Cursor) -> Iterator[None]:
    """Yield once for each item of a list in parentheses; the caller reads the item. A trailing comma is allowed."""
    cursor.expect("(")
    while True:
        yield
        if not cursor.take(","):
            cursor.expect(")")
            return
        if cursor.take(")"):
            return


def unique(table: OptionTable, found: Iterable[tuple[Span, Option]]) -> tuple[Option, ...]:
    """Return the options, and refuse one that is given twice."""
    seen: dict[str, Option] = {}
    for span, option in found:
        if option.name in seen:
            raise RepeatedOption(option.name, table.owner).at(span)
        seen[option.name] = option
    return tuple(seen.values())


def take_option_name(cursor: Cursor, table: OptionTable) -> OptionRule:
    """Step over the longest option name that fits. Raises UnknownOption if none does."""
    length = _count_words(cursor, table.longest())
    for count in range(length, 0, -1):
        words = tuple(w for t in cursor.tokens[cursor.index : cursor.index + count] for w in _words(t.word))
        rule = table.rule(words)
        if rule is not None:
            cursor.index += count
            return rule
    if length == 0:
        cursor.expecting("an option")
        raise cursor.unexpected()
    written = cursor.tokens[cursor.index : cursor.index + length]
    name = shortened(" ".join(token.value for token in written))
    similar = similar_names(name, table.names()) or similar_names(written[0].value, table.names())
    problem = UnknownOption(name, table.owner, table.names(), similar)
    raise problem.at(Span(written[0].start, written[-1].end))


def _count_words(cursor: Cursor, most: int) -> int:
    count = 0
    while count < most and cursor.tokens[cursor.index + count].kind is TokenKind.WORD:
        count += 1
    return count


def _words(name: str) -> tuple[str, ...]:
    return tuple(name.upper().replace("_", " ").split())


_WHOLE = re.compile(r"[+-]?[0-9]+\Z")
_LARGEST_OFFSET = 2**63 - 1


def options(cursor: Cursor, table: OptionTable) -> tuple[Option, ...]:
    """Read the options in parentheses that must come next."""
    return unique(table, ((cursor.token.span, one_option(cursor, table)) for _ in items(cursor)))


def with_options(cursor: Cursor, table: OptionTable) -> tuple[Option, ...]:
    """``[WITH (…)]``."""
    return options(cursor, table) if cursor.take("WITH") else ()


def one_option(cursor: Cursor, table: OptionTable) -> Option:
    """``NAME [=] value``."""
    rule = take_option_name(cursor, table)
    cursor.take("=")
    return Option(rule.name, _value(cursor, table, rule))


def _value(cursor: Cursor, table: OptionTable, rule: OptionRule) -> Value:
    match rule.kind:
        case ValueKind.STRING | ValueKind.INTERVAL:
            return _string(cursor, table, rule)
        case ValueKind.INTEGER | ValueKind.TIMESTAMP:
            return _number(cursor, table, rule)
        case ValueKind.BOOLEAN:
            return _boolean(cursor, table, rule)
        case ValueKind.CHOICE:
            return Choice(_choice(cursor, table, rule))
        case ValueKind.SECRET:
            return (
                SecretReference(object_name(cursor))
                if cursor.take("SECRET")
                else _string(cursor, table, rule)
            )
        case ValueKind.STRINGS | ValueKind.OFFSETS | ValueKind.SEED_OFFSETS:
            return _list(cursor, table, rule)
        case ValueKind.MAP:
            return map_literal(cursor)
        case ValueKind.EXPRESSION:
            return read_expression(cursor)


def _string(cursor: Cursor, table: OptionTable, rule: OptionRule) -> StringLiteral:
    start = cursor.token
    if rule.kind is ValueKind.INTERVAL:
        cursor.take("INTERVAL")
    value = cursor.take_string()
    if value is None:
        raise _wrong(cursor, table, rule)
    if rule.choices:
        folded = value.casefold()
        if folded not in rule.choices:
            quoted = tuple(f"'{choice}'" for choice in rule.choices)
            problem = UnknownChoice(rule.name, table.owner, quoted, similar_names(folded, rule.choices))
            raise problem.at(start.span)
        return StringLiteral(folded)
    return StringLiteral(value)


def _number(cursor: Cursor, table: OptionTable, rule: OptionRule) -> NumberLiteral | StringLiteral:
    """Read a number, also one in a string, as ksqlDB allows."""
    start = cursor.token
    if start.kind is TokenKind.STRING:
        if _WHOLE.match(start.value):
            cursor.step()
            return NumberLiteral(start.value.removeprefix("+"))
        if rule.kind is ValueKind.TIMESTAMP:
            return StringLiteral(cursor.string())
    number = _signed_number(cursor)
    if number is None:
        problem = InvalidOptionValue(rule.name, table.owner, rule.kind.value, describe_token(start))
        raise problem.at(start.span)
    return NumberLiteral(number)


def _signed_number(cursor: Cursor) -> str | None:
    """Read a whole number with an optional sign. A plus is dropped."""
    sign = cursor.token.word if cursor.token.word in ("-", "+") else ""
    number = cursor.tokens[cursor.index + 1] if sign else cursor.token
    if number.kind is not TokenKind.NUMBER or not _WHOLE.match(number.value):
        return None
    cursor.index += 2 if sign else 1
    return sign.replace("+", "") + number.value


def _boolean(cursor: Cursor, table: OptionTable, rule: OptionRule) -> BooleanLiteral:
    """Read true or false, also in a string. An option without a value is true."""
    token = cursor.token
    written = token.word or token.value.upper()
    if token.kind in (TokenKind.WORD, TokenKind.STRING) and written in ("TRUE", "FALSE"):
        cursor.step()
        return BooleanLiteral(written == "TRUE")
    if token.word in (",", ")") and cursor.tokens[cursor.index - 1].word != "=":
        return BooleanLiteral(True)
    raise _wrong(cursor, table, rule)


def _choice(cursor: Cursor, table: OptionTable, rule: OptionRule) -> str:
    token = cursor.token
    if token.kind is TokenKind.STRING and token.value.upper().replace("-", "_") in rule.choices:
        return cursor.step().value.upper().replace("-", "_")
    chosen = cursor.choose(*rule.choices)
    if chosen is None:
        written = token.value if token.kind is TokenKind.WORD else ""
        problem = UnknownChoice(rule.name, table.owner, rule.choices, similar_names(written, rule.choices))
        raise problem.at(token.span)
    return chosen


def _list(cursor: Cursor, table: OptionTable, rule: OptionRule) -> ListLiteral | Choice | NumberLiteral:
    if rule.kind is ValueKind.OFFSETS:
        chosen = cursor.choose("EARLIEST", "LATEST")
        if chosen is not None:
            return Choice(chosen)
    close = {"(": ")", "[": "]"}.get(cursor.token.word)
    if close is None:
        if rule.kind is ValueKind.SEED_OFFSETS:
            raise _wrong(cursor, table, rule)
        # One offset applies to all partitions, a list has one for each.
        item = _list_item(cursor, table, rule)
        return item if isinstance(item, NumberLiteral) else ListLiteral((item,))
    cursor.step()
    found = [_list_item(cursor, table, rule)]
    while cursor.take(","):
        found.append(_list_item(cursor, table, rule))
    cursor.expect(close)
    return ListLiteral(tuple(found))


def _list_item(cursor: Cursor, table: OptionTable, rule: OptionRule) -> StringLiteral | NumberLiteral:
    if rule.kind in (ValueKind.OFFSETS, ValueKind.SEED_OFFSETS):
        return _offset(cursor, table, rule)
    # A list of strings may also contain names without quotes: SCHEMAS (public, sales).
    return StringLiteral(str(object_name(cursor))) if cursor.at_name() else _string(cursor, table, rule)


def _offset(cursor: Cursor, table: OptionTable, rule: OptionRule) -> StringLiteral | NumberLiteral:
    """Read an offset from 0 on. Kafka's -1 and -2 are written LATEST and EARLIEST; as numbers they would silently mean the start."""
    start = cursor.token
    number = _number(cursor, table, rule)
    if isinstance(number, NumberLiteral) and not 0 <= int(number.text) <= _LARGEST_OFFSET:
        problem = InvalidOptionValue(rule.name, table.owner, rule.kind.value, f"number {number.text}")
        raise problem.at(start.span)
    return number


def map_literal(cursor: Cursor) -> MapLiteral:
    cursor.expect("MAP")
    cursor.expect("[")
    if cursor.take("]"):
        return MapLiteral(())
    entries = [_entry(cursor)]
    while cursor.take(","):
        entries.append(_entry(cursor))
    cursor.expect("]")
    return MapLiteral(tuple(entries))


def _entry(cursor: Cursor) -> tuple[str, str]:
    key = cursor.string()
    cursor.expect("=>")
    return key, cursor.string()


def _wrong(cursor: Cursor, table: OptionTable, rule: OptionRule) -> HeadgateError:
    # The token may be the password itself, without quotes.
    found = "something else" if rule.sensitive else describe_token(cursor.token)
    named = cursor.token.kind in (TokenKind.WORD, TokenKind.QUOTED) and rule.kind is ValueKind.STRING
    unquoted = shortened(cursor.token.value) if named and not rule.sensitive else None
    problem = InvalidOptionValue(rule.name, table.owner, rule.kind.value, found, unquoted)
    return problem.at(cursor.token.span)


ON_ERROR = OptionRule("ON ERROR", ValueKind.CHOICE, ("HALT", "QUARANTINE", "SKIP"), aliases=("ON INVALID",))
ON_SCHEMA_CHANGE = OptionRule("ON SCHEMA CHANGE", ValueKind.CHOICE, ("PIN", "FOLLOW", "HALT"))
CONFIRM = OptionRule("CONFIRM", ValueKind.BOOLEAN)

# A change that narrows a type or rewrites data needs CONFIRM.
CHANGE_OPTIONS = OptionTable("the change", (CONFIRM,))


def print_value(node: Value) -> str:
    match node:
        case StringLiteral(text):
            return print_string(text)
        case NumberLiteral(text) | Choice(text) | Expression(text):
            return text
        case BooleanLiteral(truth):
            return "TRUE" if truth else "FALSE"
        case SecretReference(secret):
            return f"SECRET {print_name(secret)}"
        case ListLiteral(items):
            return "(" + ", ".join([print_value(item) for item in items]) + ")"
        case MapLiteral(entries):
            return print_map(entries)
        case _:
            assert_never(node)


def print_map(entries: Iterable[tuple[str, str]]) -> str:
    return "MAP[" + ", ".join([f"{print_string(key)} => {print_string(text)}" for key, text in entries]) + "]"


def print_option(node: Option) -> str:
    return f"{node.name} = {print_value(node.value)}"


def print_options(nodes: Iterable[Option]) -> str:
    return block([print_option(node) for node in nodes])


def print_with_options(nodes: tuple[Option, ...]) -> str:
    """``WITH (…)``, or nothing."""
    return f"WITH {print_options(nodes)}" if nodes else ""
