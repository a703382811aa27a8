"""The text of a type, read. Accepts the printed form of `render` and every spelling people bring along.

Recursive descent over offsets, so that an error points at the very characters, in a type that stands alone as well
as in one inside a statement (`parse_type_prefix`). Keywords and built-in names are case-insensitive.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from headgate.errors import Span, similar_names
from headgate.schema.errors import (
    DefaultNotASymbol,
    DuplicateField,
    DuplicateSymbol,
    InvalidDecimal,
    InvalidLength,
    LimitedType,
    SchemaError,
    TypeSyntax,
    TypeTooDeep,
    UnknownType,
)
from headgate.schema.types import (
    MAX_DEPTH,
    MAX_PRECISION,
    Array,
    Bigint,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Double,
    Enum,
    Field,
    Integer,
    Json,
    Map,
    Named,
    Real,
    Record,
    Text,
    Time,
    Timestamp,
    TimestampTz,
    Type,
    Uuid,
    depth,
)

Known = Callable[[tuple[str, ...]], bool]

SPELLINGS: dict[str, Type] = {
    "boolean": Boolean(), "bool": Boolean(),
    "integer": Integer(), "int": Integer(), "int4": Integer(), "i32": Integer(),
    "bigint": Bigint(), "int8": Bigint(), "i64": Bigint(), "long": Bigint(),
    "real": Real(), "f32": Real(), "float4": Real(),
    "double": Double(), "f64": Double(), "float8": Double(),
    "decimal": Decimal(), "numeric": Decimal(),
    "text": Text(), "string": Text(), "varchar": Text(),
    "bytes": Bytes(), "bytea": Bytes(), "varbinary": Bytes(),
    "date": Date(), "time": Time(), "timestamp": Timestamp(), "timestamptz": TimestampTz(),
    "uuid": Uuid(),
    "json": Json(), "jsonb": Json(), "any": Json(),
}  # fmt: skip
LISTS = frozenset({"array", "list"})
RECORDS = frozenset({"record", "struct", "object"})
# Words that mean different things in different systems, or a smaller type than any of ours. Never guessed.
REFUSED = {
    "float": ("real", "double"),
    "smallint": ("integer",), "tinyint": ("integer",), "short": ("integer",), "int2": ("integer",),
    "char": ("text",), "character": ("text",),
}  # fmt: skip
_OF_SEVERAL_WORDS = (
    ("double", re.compile(r"\s+precision\b", re.I), Double()),
    ("timestamp", re.compile(r"\s+with\s+time\s+zone\b", re.I), TimestampTz()),
    ("timestamp", re.compile(r"\s+without\s+time\s+zone\b", re.I), Timestamp()),
    ("time", re.compile(r"\s+without\s+time\s+zone\b", re.I), Time()),
    ("character", re.compile(r"\s+varying\b", re.I), Text()),
)

_BLANK = re.compile(r"(?:\s+|--[^\n]*|/\*.*?\*/)*", re.S)
_WORD = re.compile(r"[^\W\d][\w$]*")
_QUOTED = re.compile(r'"([^"]*(?:""[^"]*)*)"|`([^`]*(?:``[^`]*)*)`')
_STRING = re.compile(r"'([^']*(?:''[^']*)*)'")
_NUMBER = re.compile(r"[0-9]+")
_TOKEN = re.compile(f"{_WORD.pattern}|{_QUOTED.pattern}|{_STRING.pattern}|{_NUMBER.pattern}|.", re.S)


def parse_type(text: str, *, known: Known | None = None) -> Type:
    """The type that the whole text names.

    A name that is not built in is a `Named` type; with ``known``, one that it does not know is an error.
    """
    parser = _Parser(text, 0, known)
    found = parser.whole()
    parser.end()
    return found


def parse_type_prefix(text: str, start: int = 0, *, known: Known | None = None) -> tuple[Type, int]:
    """The type that begins at ``start``, and the offset just after its last character.

    What may follow a type in a column (`not null`, `comment`) is left to the caller.
    """
    parser = _Parser(text, start, known)
    return parser.whole(), parser.position


class _Parser:
    def __init__(self, text: str, start: int, known: Known | None) -> None:
        self.text = text
        self.position = start
        self.known = known
        self.depth = 0

    # types

    def whole(self) -> Type:
        start = self._at()
        found = self.type()
        if depth(found) > MAX_DEPTH:
            self._fail(TypeTooDeep(), start, self.position)
        return found

    def type(self) -> Type:
        start = self._at()
        found = self._base()
        for _ in range(MAX_DEPTH + 1):
            if self._take_mark("["):
                self._expect_mark("]")
            elif not self._take_word("list"):
                return found
            found = Array(found)
        raise TypeTooDeep().at(Span(start, self.position))

    def _base(self) -> Type:
        start = self._at()
        word = _WORD.match(self.text, start)
        if word is None or self.text[word.end() : word.end() + 1] == ".":
            return self._named()
        name = word[0].lower()
        if name in LISTS or name in RECORDS or name == "map" or name == "enum":
            return self._composite(name, word.end())
        for first, rest, type_ in _OF_SEVERAL_WORDS:
            more = rest.match(self.text, word.end()) if name == first else None
            if more is not None:
                self.position = more.end()
                return self._unlimited(type_, start)
        if name in REFUSED:
            self._fail(UnknownType(word[0], REFUSED[name]), start, word.end())
        if name not in SPELLINGS:
            return self._named()
        self.position = word.end()
        return self._with_arguments(SPELLINGS[name], start)

    def _composite(self, name: str, after: int) -> Type:
        """An array, map, record or enum: the word is known, its inside is not yet read."""
        self.position = after
        if name == "enum":
            return self._enum()
        with self._deeper():
            if name in LISTS:
                return Array(*self._inside())
            return self._map() if name == "map" else self._record()

    def _inside(self) -> tuple[Type, bool]:
        self._expect_mark("<")
        inner = self.type()
        nullable = self._nullable()
        self._expect_mark(">")
        return inner, nullable

    def _map(self) -> Type:
        self._expect_mark("<")
        start = self._at()
        first = self.type()
        if not self._take_mark(","):
            nullable = self._nullable()
            self._expect_mark(">")
            return Map(first, nullable)
        if first != Text():
            self._fail(
                TypeSyntax(("text, the type of every map's key",), self._shown(start)), start, self.position
            )
        value = self.type()
        nullable = self._nullable()
        self._expect_mark(">")
        return Map(value, nullable)

    def _record(self) -> Type:
        name = self._quoted()
        doc = self._comment()
        close = ">" if self._take_mark("<") else ")"
        if close == ")":
            self._expect_mark("(")
        fields: dict[str, Field] = {}
        closed = self._take_mark(close)
        while not closed:
            start = self._at()
            field = self._field()
            if field.name in fields:
                self._fail(DuplicateField(field.name), start, self.position)
            fields[field.name] = field
            closed = self._closes(close)
        return Record(tuple(fields.values()), name, doc)

    def _field(self) -> Field:
        name = self._identifier("a field name")
        self._take_mark(":")  # Spark's spelling, struct<a: int>
        return Field(name, self.type(), self._nullable(), self._comment())

    def _enum(self) -> Type:
        name = self._quoted()
        at = self._at()
        default = self._string() if self._take_word("default") else None
        doc = self._comment()
        self._expect_mark("(")
        symbols: dict[str, None] = {}
        closed = False
        while not closed:
            start = self._at()
            symbol = self._string()
            if symbol in symbols:
                self._fail(DuplicateSymbol(symbol), start, self.position)
            symbols[symbol] = None
            closed = self._closes(")")
        if default is not None and default not in symbols:
            self._fail(DefaultNotASymbol(default, similar_names(default, symbols)), at, self.position)
        return Enum(tuple(symbols), name, default, doc)

    def _named(self) -> Type:
        start = self._at()
        quoted = [self._at_quote()]
        parts = [self._identifier("a type")]
        while self.text[self.position : self.position + 1] == ".":
            self.position += 1
            quoted.append(self._at_quote())
            parts.append(self._identifier("a name"))
        named = Named(tuple(parts), tuple(quoted))
        if self.known is not None and not self.known(named.parts):
            similar = similar_names(parts[0], SPELLINGS) if len(parts) == 1 else ()
            self._fail(UnknownType(".".join(parts), similar), start, self.position)
        return named

    def _at_quote(self) -> bool:
        start = self._at()
        return self.text[start : start + 1] in ('"', "`")

    # arguments in parentheses

    def _with_arguments(self, type_: Type, start: int) -> Type:
        match type_:
            case Decimal():
                arguments = self._numbers(2)
                return self._decimal(arguments, start) if arguments else type_
            case Bytes():
                arguments = self._numbers(1)
                if arguments and arguments[0] < 1:
                    self._fail(InvalidLength("bytes", arguments[0]), start, self.position)
                return Bytes(arguments[0]) if arguments else type_
            case _:
                return self._unlimited(type_, start)

    def _unlimited(self, type_: Type, start: int) -> Type:
        """`varchar(20)` and `timestamp(3)` would promise what is not kept; microseconds, `timestamp(6)`, are."""
        written = self.text[start : self.position]
        if isinstance(type_, Text | Time | Timestamp | TimestampTz) and self._sees_mark("("):
            numbers = self._numbers(1)
            if isinstance(type_, Text) or numbers != [6]:
                arguments = ",".join(map(str, numbers))
                self._fail(
                    LimitedType(f"{written}({arguments})", f"{written} without it"), start, self.position
                )
        return type_

    def _decimal(self, arguments: list[int], start: int) -> Type:
        precision, scale = arguments[0], arguments[1] if len(arguments) == 2 else 0
        if not (1 <= precision <= MAX_PRECISION and scale <= precision):
            self._fail(InvalidDecimal(precision, scale), start, self.position)
        return Decimal(precision, scale)

    def _numbers(self, most: int) -> list[int]:
        numbers: list[int] = []
        closed = not self._take_mark("(")
        while not closed:
            numbers.append(self._number())
            if len(numbers) == most:
                self._expect_mark(")")
                return numbers
            closed = self._closes(")")
        return numbers

    def _number(self) -> int:
        number = _NUMBER.match(self.text, self._at())
        if number is None or len(number[0]) > 9:
            self._unexpected("a whole number")
        self.position = number.end()
        return int(number[0])

    # words, names, marks

    def _nullable(self) -> bool:
        if self._take_word("not"):
            if not self._take_word("null"):
                self._unexpected("NULL")
            return False
        self._take_word("null")
        return True

    def _comment(self) -> str | None:
        return self._string() if self._take_word("comment") else None

    def _identifier(self, what: str) -> str:
        quoted = self._quoted()
        if quoted is not None:
            return quoted
        word = _WORD.match(self.text, self._at())
        if word is None:
            self._unexpected(what)
        self.position = word.end()
        return word[0]

    def _quoted(self) -> str | None:
        quoted = _QUOTED.match(self.text, self._at())
        if quoted is None:
            return None
        self.position = quoted.end()
        return quoted[1].replace('""', '"') if quoted[1] is not None else quoted[2].replace("``", "`")

    def _string(self) -> str:
        string = _STRING.match(self.text, self._at())
        if string is None:
            self._unexpected("a string in single quotes")
        self.position = string.end()
        return string[1].replace("''", "'")

    def _take_word(self, word: str) -> bool:
        found = _WORD.match(self.text, self._at())
        if found is None or found[0].lower() != word:
            return False
        self.position = found.end()
        return True

    def _sees_mark(self, mark: str) -> bool:
        return self.text.startswith(mark, self._at())

    def _take_mark(self, mark: str) -> bool:
        at = self._at()
        if not self.text.startswith(mark, at):
            return False
        self.position = at + 1
        return True

    def _expect_mark(self, mark: str) -> None:
        if not self._take_mark(mark):
            self._unexpected(f'"{mark}"')

    def _closes(self, mark: str) -> bool:
        """After an item of a list: whether the list ends here; otherwise another item must follow."""
        if self._take_mark(mark):
            return True
        if not self._take_mark(","):
            self._unexpected('","', f'"{mark}"')
        return False

    def end(self) -> None:
        if self._at() < len(self.text):
            self._unexpected("the end of the type")

    # where we are

    def _at(self) -> int:
        """Where the next token starts. The position itself stays at the end of the last one."""
        blank = _BLANK.match(self.text, self.position)
        return blank.end() if blank else self.position

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        if self.depth == MAX_DEPTH:
            self._fail(TypeTooDeep(), self.position, self.position + 1)
        self.depth += 1
        yield
        self.depth -= 1

    def _unexpected(self, *expected: str) -> NoReturn:
        start = self._at()
        token = _TOKEN.match(self.text, start)
        self._fail(TypeSyntax(expected, self._shown(start)), start, token.end() if token else start)

    def _shown(self, start: int) -> str:
        """The token at an offset, as an error names it."""
        token = _TOKEN.match(self.text, start)
        if token is None:
            return "the end of the text"
        return f"{token[0][:40]}" if token[0][0] in "'\"`" else f'"{token[0][:40]}"'

    def _fail(self, error: SchemaError, start: int, end: int) -> NoReturn:
        raise error.at(Span(start, end))
