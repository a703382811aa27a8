"""The values of options, one reader per kind."""

from __future__ import annotations

import re

from headgate.errors import HeadgateError, similar_names
from headgate.sql.ast.names import object_name
from headgate.sql.ast.values import (
    BooleanLiteral,
    Choice,
    ListLiteral,
    MapLiteral,
    NumberLiteral,
    Option,
    SecretReference,
    StringLiteral,
    Value,
)
from headgate.sql.errors import InvalidOptionValue, UnknownChoice
from headgate.sql.parser.body import expression
from headgate.sql.parser.options import OptionRule, OptionTable, ValueKind, items, take_option_name, unique
from headgate.text.cursor import Cursor
from headgate.text.lexer import TokenKind, describe, shortened

_WHOLE = re.compile(r"[+-]?[0-9]+\Z")
_LARGEST_OFFSET = 2**63 - 1


def options(cursor: Cursor, table: OptionTable) -> tuple[Option, ...]:
    """The options in parentheses that must come next."""
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
            return expression(cursor)


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
    """A number; also one in a string, as ksqlDB allows it."""
    start = cursor.token
    if start.kind is TokenKind.STRING:
        if _WHOLE.match(start.value):
            cursor.step()
            return NumberLiteral(start.value.removeprefix("+"))
        if rule.kind is ValueKind.TIMESTAMP:
            return StringLiteral(cursor.string())
    number = _signed_number(cursor)
    if number is None:
        problem = InvalidOptionValue(rule.name, table.owner, rule.kind.value, describe(start))
        raise problem.at(start.span)
    return NumberLiteral(number)


def _signed_number(cursor: Cursor) -> str | None:
    """A whole number with an optional sign; a plus is left out."""
    sign = cursor.token.word if cursor.token.word in ("-", "+") else ""
    number = cursor.tokens[cursor.index + 1] if sign else cursor.token
    if number.kind is not TokenKind.NUMBER or not _WHOLE.match(number.value):
        return None
    cursor.index += 2 if sign else 1
    return sign.replace("+", "") + number.value


def _boolean(cursor: Cursor, table: OptionTable, rule: OptionRule) -> BooleanLiteral:
    """True or false, also in a string; an option without a value is true."""
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
        item = _list_item(cursor, table, rule)  # one offset holds for all partitions, a list for each its own
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
    # A list of strings may hold plain names too: SCHEMAS (public, sales).
    return StringLiteral(str(object_name(cursor))) if cursor.at_name() else _string(cursor, table, rule)


def _offset(cursor: Cursor, table: OptionTable, rule: OptionRule) -> StringLiteral | NumberLiteral:
    """Kafka's own -1 and -2 are words here; taken for numbers, they would mean the start in silence."""
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
    # What stands in the place of a password may be the password.
    found = "something else" if rule.sensitive else describe(cursor.token)
    named = cursor.token.kind in (TokenKind.WORD, TokenKind.QUOTED) and rule.kind is ValueKind.STRING
    unquoted = shortened(cursor.token.value) if named and not rule.sensitive else None
    problem = InvalidOptionValue(rule.name, table.owner, rule.kind.value, found, unquoted)
    return problem.at(cursor.token.span)
