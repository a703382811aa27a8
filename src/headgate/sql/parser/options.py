"""Options: ``NAME [=] value``, comma-separated, in parentheses, from a declared table.

A name may be of several words and is matched as far as it goes; ``_`` and a blank are the same in it, so that
``on_error`` and ``ON ERROR`` are one option. The value's kind is declared too; ``values`` reads it accordingly.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from headgate.errors import Span, similar_names
from headgate.sql.ast.values import Option
from headgate.sql.errors import RepeatedOption, UnknownOption
from headgate.text.cursor import Cursor
from headgate.text.lexer import TokenKind, shortened


class ValueKind(enum.Enum):
    """What an option takes; the value is how an error and the docs call it."""

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
    """One option. ``choices`` of a STRING are printed as a string, those of a CHOICE as words."""

    name: str
    kind: ValueKind
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The options of one list. ``owner`` is how an error calls it, ``also`` what else the list can hold."""

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
    """Once for each item of a list in parentheses; the caller reads the item. A comma may stand after the last one."""
    cursor.expect("(")
    while True:
        yield
        if not cursor.take(","):
            cursor.expect(")")
            return
        if cursor.take(")"):
            return


def unique(table: OptionTable, found: Iterable[tuple[Span, Option]]) -> tuple[Option, ...]:
    """The options, none of them given twice."""
    seen: dict[str, Option] = {}
    for span, option in found:
        if option.name in seen:
            raise RepeatedOption(option.name, table.owner).at(span)
        seen[option.name] = option
    return tuple(seen.values())


def take_option_name(cursor: Cursor, table: OptionTable) -> OptionRule:
    """Step over the longest name that the table has; an error if it has none that fits."""
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
