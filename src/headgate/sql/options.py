"""Options: ``NAME [=] value``, separated by commas, in parentheses.

The options of one list are declared once, as the fields of a frozen dataclass below ``Options``. The declaration gives
the parser, the printer, the synopsis in the docs, and typed access. The name of a field is the name of its option
(``on_error`` is ``ON ERROR``), its annotation says how the value is read, and its default is what holds if the option
is not given. An option with its default is not printed.

In a statement ``_`` and a blank are the same in a name, and the longest name that matches counts.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import NoneType
from typing import Any, ClassVar, Literal, NewType, NoReturn, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from headgate.errors import HeadgateError, InternalError, Span, similar_names
from headgate.sql import errors, statement as s
from headgate.sql.queries import read_expression
from headgate.text.cursor import Cursor
from headgate.text.lexer import TokenKind, describe_token, shortened


@dataclass(frozen=True, slots=True)
class SecretReference:
    """``SECRET name`` as the value of an option."""

    name: s.ObjectName = dataclasses.field(metadata=s.names(s.Kind.SECRET))


Interval = NewType("Interval", str)
Timestamp: TypeAlias = int | str  # milliseconds, or a time in ISO form
Secret: TypeAlias = str | SecretReference
Map: TypeAlias = tuple[tuple[str, str], ...]
Offsets: TypeAlias = int | tuple[int, ...] | Literal["EARLIEST", "LATEST"]  # one for all partitions, or one for each
OnError: TypeAlias = Literal["HALT", "QUARANTINE", "SKIP"]
OnSchemaChange: TypeAlias = Literal["PIN", "FOLLOW", "HALT"]


def option(default: Any = None, *, aliases: tuple[str, ...] = (), sensitive: bool = False) -> Any:
    """Declare an option. Errors never quote the value of a ``sensitive`` one."""
    return dataclasses.field(default=default, metadata={"aliases": aliases, "sensitive": sensitive})


@dataclass(frozen=True, slots=True)
class Options:
    """The base of all lists of options.

    ``owner`` is the list's name in errors, ``also`` are other items that the list can hold, and ``upper`` says whether
    names are printed as keywords or as they are declared.
    """

    owner: ClassVar[str]
    also: ClassVar[tuple[str, ...]] = ()
    upper: ClassVar[bool] = True

    def __init_subclass__(cls, *, owner: str = "") -> None:
        # A dataclass with slots is made twice, the second time without arguments.
        cls.owner = owner or cls.owner


@dataclass(frozen=True, slots=True)
class ChangeOptions(Options, owner="the change"):
    """A change that narrows a type or rewrites data needs CONFIRM."""

    confirm: bool = option(False)


# The class of the list that is read, so that the result has its fields.
Given = TypeVar("Given", bound=Options)
Item = TypeVar("Item")


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
    """One option. ``choices`` of a STRING are printed as strings, those of a CHOICE as words."""

    name: str
    field: str
    kind: ValueKind
    choices: tuple[str, ...]
    aliases: tuple[str, ...]
    sensitive: bool
    default: object


def _members(annotation: object) -> frozenset[object]:
    """The types of a union without None, or the one type."""
    return frozenset(get_args(annotation) or (annotation,)) - {NoneType}


# How the value of an option is read, by the types that its annotation allows.
_KINDS: dict[object, ValueKind] = {
    frozenset({str}): ValueKind.STRING,
    frozenset({int}): ValueKind.INTEGER,
    frozenset({bool}): ValueKind.BOOLEAN,
    frozenset({Interval}): ValueKind.INTERVAL,
    frozenset({s.Expression}): ValueKind.EXPRESSION,
    frozenset({tuple[str, ...]}): ValueKind.STRINGS,
    frozenset({tuple[int, ...]}): ValueKind.SEED_OFFSETS,
    frozenset({Map}): ValueKind.MAP,
    _members(Timestamp): ValueKind.TIMESTAMP,
    _members(Secret): ValueKind.SECRET,
    _members(Offsets): ValueKind.OFFSETS,
}


_rules: dict[type[Options], tuple[OptionRule, ...]] = {}  # filled on first use, because it needs the annotations


def rules(cls: type[Options]) -> tuple[OptionRule, ...]:
    """The options that a dataclass declares, in its order."""
    if cls not in _rules:
        hints = get_type_hints(cls)
        _rules[cls] = tuple(_rule(cls, field, hints[field.name]) for field in dataclasses.fields(cls))
    return _rules[cls]


def _rule(cls: type[Options], field: dataclasses.Field[Any], annotation: object) -> OptionRule:
    """The rule of one field. Its annotation decides how the value is read."""
    name = field.name.replace("_", " ").upper() if cls.upper else field.name
    members = frozenset({annotation}) if get_origin(annotation) in (tuple, Literal) else _members(annotation)
    [first, *others] = members
    choices: tuple[str, ...] = get_args(first) if get_origin(first) is Literal and not others else ()
    if choices:
        kind = ValueKind.CHOICE if choices[0].isupper() else ValueKind.STRING
    elif members in _KINDS:
        kind = _KINDS[members]
    else:
        raise InternalError(f"option {name} of {cls.__name__} has an annotation that no reader exists for")
    aliases, sensitive = field.metadata["aliases"], field.metadata["sensitive"]
    return OptionRule(name, field.name, kind, choices, aliases, sensitive, field.default)


def _by_words(cls: type[Options]) -> dict[tuple[str, ...], OptionRule]:
    """The rules by the words of their names and aliases."""
    return {_words(name): rule for rule in rules(cls) for name in (rule.name, *rule.aliases)}


def find_rule(cls: type[Options], name: str) -> OptionRule | None:
    """The rule of an option by its name or alias; None if the list has no such option."""
    return _by_words(cls).get(_words(name))


def option_names(cls: type[Options]) -> tuple[str, ...]:
    """All names that the list can hold, for errors."""
    return tuple(rule.name for rule in rules(cls)) + cls.also


def options(cursor: Cursor, cls: type[Given]) -> Given:
    """Read the options in parentheses that must come next."""
    found: dict[str, Any] = {}
    for _ in cursor.items():
        take_option(cursor, cls, found)
    return cls(**found)


def with_options(cursor: Cursor, cls: type[Given]) -> Given:
    """``[WITH (…)]``."""
    return options(cursor, cls) if cursor.take("WITH") else cls()


def take_option(cursor: Cursor, cls: type[Options], found: dict[str, Any]) -> None:
    """Read ``NAME [=] value`` into ``found``, by field. Refuses an option that is there already."""
    span = cursor.token.span
    rule = take_option_name(cursor, cls)
    cursor.take("=")
    value = _Value(cursor, cls.owner, rule).read()
    if rule.field in found:
        raise errors.RepeatedOption(rule.name, cls.owner).at(span)
    found[rule.field] = value


def take_option_name(cursor: Cursor, cls: type[Options]) -> OptionRule:
    """Step over the longest option name that fits. Raises UnknownOption if none does."""
    known = _by_words(cls)
    length = _count_words(cursor, max(map(len, known)))
    # The longest name wins, so that the name of one option may begin with that of another.
    for count in range(length, 0, -1):
        words = tuple(w for t in cursor.tokens[cursor.index : cursor.index + count] for w in _words(t.word))
        rule = known.get(words)
        if rule is not None:
            cursor.index += count
            return rule
    if length == 0:
        cursor.expecting("an option")
        raise cursor.unexpected()
    written = cursor.tokens[cursor.index : cursor.index + length]
    name, names = shortened(" ".join(token.value for token in written)), option_names(cls)
    similar = similar_names(name, names) or similar_names(written[0].value, names)
    raise errors.UnknownOption(name, cls.owner, names, similar).at(Span(written[0].start, written[-1].end))


def _count_words(cursor: Cursor, most: int) -> int:
    """How many words stand from the position on, at most so many."""
    count = 0
    while count < most and cursor.tokens[cursor.index + count].kind is TokenKind.WORD:
        count += 1
    return count


def _words(name: str) -> tuple[str, ...]:
    """The words of a name. ``_`` separates words too."""
    return tuple(name.upper().replace("_", " ").split())


_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}\Z")  # Python refuses to read longer numbers
_LARGEST_OFFSET = 2**63 - 1
# Kafka's own -2 and -1, in words.
_ENDS: tuple[Literal["EARLIEST", "LATEST"], ...] = ("EARLIEST", "LATEST")


@dataclass(frozen=True, slots=True)
class _Value:
    """Reads the value of one option."""

    cursor: Cursor
    owner: str
    rule: OptionRule

    def read(self) -> object:
        """Read the value in the way of its kind."""
        match self.rule.kind:
            case ValueKind.STRING:
                return self._string()
            case ValueKind.INTERVAL:
                self.cursor.take("INTERVAL")
                return self._string()
            case ValueKind.INTEGER:
                return self._number()
            case ValueKind.TIMESTAMP:
                return self._timestamp()
            case ValueKind.BOOLEAN:
                return self._boolean()
            case ValueKind.CHOICE:
                return self._choice()
            case ValueKind.SECRET:
                taken = self.cursor.take("SECRET")
                return SecretReference(s.object_name(self.cursor)) if taken else self._string()
            case ValueKind.STRINGS:
                return self._strings()
            case ValueKind.OFFSETS:
                return self._offsets()
            case ValueKind.SEED_OFFSETS:
                return self._list(self._offset) if self._opens_list() else self._refuse()
            case ValueKind.MAP:
                return read_map(self.cursor)
            case ValueKind.EXPRESSION:
                return read_expression(self.cursor)

    def _string(self) -> str:
        """Read a string. If the option has choices, the string must be one of them, in any case."""
        start = self.cursor.token
        value = self.cursor.take_string()
        if value is None:
            raise self._wrong()
        choices = self.rule.choices
        if not choices:
            return value
        folded = value.casefold()
        if folded not in choices:
            quoted = tuple(f"'{choice}'" for choice in choices)
            problem = errors.UnknownChoice(self.rule.name, self.owner, quoted, similar_names(folded, choices))
            raise problem.at(start.span)
        return folded

    def _timestamp(self) -> int | str:
        """Read milliseconds, or the text of a time, which is parsed when the statement is planned."""
        token = self.cursor.token
        if token.kind is TokenKind.STRING and not _WHOLE.match(token.value):
            return self.cursor.string()
        return self._number()

    def _number(self) -> int:
        """Read a whole number, also one in a string, as ksqlDB allows."""
        start = self.cursor.token
        if start.kind is TokenKind.STRING and _WHOLE.match(start.value):
            self.cursor.step()
            return int(start.value)
        sign = start.word if start.word in ("-", "+") else ""
        number = self.cursor.tokens[self.cursor.index + 1] if sign else start
        if number.kind is not TokenKind.NUMBER or not _WHOLE.match(number.value):
            raise self._invalid(describe_token(start)).at(start.span)
        self.cursor.index += 2 if sign else 1
        return int(sign + number.value)

    def _boolean(self) -> bool:
        """Read true or false, also in a string. An option without a value is true."""
        token = self.cursor.token
        written = token.word or token.value.upper()
        if token.kind in (TokenKind.WORD, TokenKind.STRING) and written in ("TRUE", "FALSE"):
            self.cursor.step()
            return written == "TRUE"
        if token.word in (",", ")") and self.cursor.tokens[self.cursor.index - 1].word != "=":
            return True
        raise self._wrong()

    def _choice(self) -> str:
        """Read a keyword. ksqlDB writes some of them as strings, so these are accepted too."""
        token, choices = self.cursor.token, self.rule.choices
        if token.kind is TokenKind.STRING and token.value.upper().replace("-", "_") in choices:
            return self.cursor.step().value.upper().replace("-", "_")
        chosen = self.cursor.choose(*choices)
        if chosen is None:
            written = token.value if token.kind is TokenKind.WORD else ""
            problem = errors.UnknownChoice(self.rule.name, self.owner, choices, similar_names(written, choices))
            raise problem.at(token.span)
        return chosen

    def _strings(self) -> tuple[str, ...]:
        """Read a list of strings, or one string without brackets."""
        return self._list(self._name) if self._opens_list() else (self._name(),)

    def _name(self) -> str:
        """A list of strings may also contain names without quotes: ``SCHEMAS (public, sales)``."""
        return str(s.object_name(self.cursor)) if self.cursor.at_name() else self._string()

    def _offsets(self) -> Offsets:
        found = self.cursor.choose(*_ENDS)
        if found is not None:
            return found
        return self._list(self._offset) if self._opens_list() else self._offset()

    def _offset(self) -> int:
        """Read an offset from 0 on. Kafka's -1 and -2 are written LATEST and EARLIEST; as numbers they would silently
        mean the start."""
        start = self.cursor.token
        number = self._number()
        if not 0 <= number <= _LARGEST_OFFSET:
            raise self._invalid(f"number {number}").at(start.span)
        return number

    def _opens_list(self) -> bool:
        return self.cursor.token.word in ("(", "[")

    def _list(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        """Read items in parentheses or square brackets."""
        close = ")" if self.cursor.step().word == "(" else "]"
        found = self.cursor.several(lambda _: item())
        self.cursor.expect(close)
        return found

    def _refuse(self) -> NoReturn:
        raise self._wrong()

    def _wrong(self) -> HeadgateError:
        """The error for a value of the wrong kind at the position."""
        # The token may be the password itself, without quotes.
        token, sensitive = self.cursor.token, self.rule.sensitive
        found = "something else" if sensitive else describe_token(token)
        named = token.kind in (TokenKind.WORD, TokenKind.QUOTED) and self.rule.kind is ValueKind.STRING
        return self._invalid(found, shortened(token.value) if named and not sensitive else None).at(token.span)

    def _invalid(self, found: str, unquoted: str | None = None) -> HeadgateError:
        return errors.InvalidOptionValue(self.rule.name, self.owner, self.rule.kind.value, found, unquoted)


def read_map(cursor: Cursor) -> Map:
    """Read ``MAP['key' => 'value', ...]``."""
    cursor.expect("MAP")
    cursor.expect("[")
    if cursor.take("]"):
        return ()
    entries = cursor.several(_entry)
    cursor.expect("]")
    return entries


def _entry(cursor: Cursor) -> tuple[str, str]:
    key = cursor.string()
    cursor.expect("=>")
    return key, cursor.string()


def given_options(node: Options) -> list[tuple[OptionRule, object]]:
    """The options that differ from their default, with their values."""
    values = ((rule, getattr(node, rule.field)) for rule in rules(type(node)))
    return [(rule, value) for rule, value in values if value != rule.default]


def _print_value(rule: OptionRule, value: Any) -> str:
    """The value as SQL that is read back as the same value."""
    match rule.kind:
        case ValueKind.STRING | ValueKind.INTERVAL:
            return s.print_string(value)
        case ValueKind.TIMESTAMP:
            return s.print_string(value) if isinstance(value, str) else str(value)
        case ValueKind.INTEGER | ValueKind.CHOICE:
            return str(value)
        case ValueKind.BOOLEAN:
            return "TRUE" if value else "FALSE"
        case ValueKind.SECRET:
            return f"SECRET {s.print_name(value.name)}" if isinstance(value, SecretReference) else s.print_string(value)
        case ValueKind.STRINGS:
            return "(" + ", ".join([s.print_string(item) for item in value]) + ")"
        case ValueKind.OFFSETS | ValueKind.SEED_OFFSETS:
            return "(" + ", ".join(map(str, value)) + ")" if isinstance(value, tuple) else str(value)
        case ValueKind.MAP:
            return print_map(value)
        case ValueKind.EXPRESSION:
            return str(value.text)


def print_map(entries: Iterable[tuple[str, str]]) -> str:
    return "MAP[" + ", ".join([f"{s.print_string(key)} => {s.print_string(text)}" for key, text in entries]) + "]"


def print_each_option(node: Options) -> list[str]:
    return [f"{rule.name} = {_print_value(rule, value)}" for rule, value in given_options(node)]


def print_options(node: Options) -> str:
    """``(…)``, or nothing if all options have their defaults."""
    given = print_each_option(node)
    return s.block(given) if given else ""


def print_with_options(node: Options) -> str:
    """``WITH (…)``, or nothing."""
    given = print_options(node)
    return f"WITH {given}" if given else ""
