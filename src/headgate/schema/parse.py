"""Read the text of a type. Accepts the printed form of `render` and the spellings of other systems.

Recursive descent over a cursor, the same that reads statements: a type inside a statement is read from the statement's
own tokens (`read_type`), so errors point at the right characters. Keywords and built-in names are case-insensitive, and
no word is reserved: a field may be called `from`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from headgate.errors import Span, similar_names
from headgate.schema import errors, types as t
from headgate.text.cursor import Cursor, Identifier
from headgate.text.lexer import Token, TokenKind, tokenize

# Ours first, then those of PostgreSQL, Spark, ksqlDB and Estuary Flow.
SPELLINGS: dict[str, t.Type] = {
    "boolean": t.Boolean(), "bool": t.Boolean(),
    "integer": t.Integer(), "int": t.Integer(), "int4": t.Integer(), "i32": t.Integer(),
    "bigint": t.Bigint(), "int8": t.Bigint(), "i64": t.Bigint(), "long": t.Bigint(),
    "real": t.Real(), "f32": t.Real(), "float4": t.Real(),
    "double": t.Double(), "f64": t.Double(), "float8": t.Double(),
    "decimal": t.Decimal(), "numeric": t.Decimal(),
    "text": t.Text(), "string": t.Text(), "varchar": t.Text(),
    "bytes": t.Bytes(), "bytea": t.Bytes(), "varbinary": t.Bytes(),
    "date": t.Date(), "time": t.Time(), "timestamp": t.Timestamp(), "timestamptz": t.TimestampTz(),
    "uuid": t.Uuid(),
    "json": t.Json(), "jsonb": t.Json(), "any": t.Json(),
}  # fmt: skip
LISTS = frozenset({"array", "list"})
RECORDS = frozenset({"record", "struct", "object"})
# Words that mean different things in different systems, or a smaller type than any of ours. We never guess.
REFUSED = {
    "float": ("real", "double"),
    "smallint": ("integer",), "tinyint": ("integer",), "short": ("integer",), "int2": ("integer",),
    "char": ("text",), "character": ("text",),
}  # fmt: skip
# By the first word, because most types are one word and are read often.
_OF_SEVERAL_WORDS: dict[str, tuple[tuple[str, t.Type], ...]] = {
    "DOUBLE": (("DOUBLE PRECISION", t.Double()),),
    "TIMESTAMP": (("TIMESTAMP WITH TIME ZONE", t.TimestampTz()), ("TIMESTAMP WITHOUT TIME ZONE", t.Timestamp())),
    "TIME": (("TIME WITHOUT TIME ZONE", t.Time()),),
    "CHARACTER": (("CHARACTER VARYING", t.Text()),),
}


def parse_type(text: str) -> t.Type:
    """Return the type that the whole text names. A name that is not built in is a `Named` type."""
    parser = _Parser(Cursor(text, tokenize(text, foreign=True)))
    found = parser.whole()
    parser.end()
    return found


def read_type(cursor: Cursor) -> t.Type:
    """Read the type that begins at the cursor, and leave the cursor behind it.

    The caller reads what may follow a type in a column (`not null`, `comment`).
    """
    found = _Parser(cursor).whole()
    cursor.forget_expected()  # a list of what can follow a column is long enough without "[" and LIST
    return found


class _Parser:
    """Reads one type from the tokens at the cursor."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.depth = 0

    # types

    def whole(self) -> t.Type:
        """Read a type and check its depth."""
        start = self.cursor.token.start
        found = self.type()
        if t.depth(found) > t.MAX_DEPTH:
            self._fail(errors.TypeTooDeep(), start)
        return found

    def type(self) -> t.Type:
        """Read a type with `[]` and LIST behind it."""
        start = self.cursor.token.start
        found = self._base()
        for _ in range(t.MAX_DEPTH + 1):
            if self.cursor.take("["):
                self._expect("]")
            elif not self.cursor.take("LIST"):
                return found
            found = t.Array(found)
        raise errors.TypeTooDeep().at(self.cursor.span_from(start))

    def _base(self) -> t.Type:
        """Read a type without what may follow it. A name with a dot is always one of the catalog."""
        token = self.cursor.token
        if token.kind is not TokenKind.WORD or self._dot_follows(token):
            return self._named()
        name = token.value.lower()
        if name in LISTS or name in RECORDS or name == "map" or name == "enum":
            return self._composite(name)
        for words, type_ in _OF_SEVERAL_WORDS.get(token.word, ()):
            if self.cursor.take(words):
                return self._unlimited(type_, token.start)
        if name in REFUSED:
            raise errors.UnknownType(token.value, REFUSED[name]).at(token.span)
        if name not in SPELLINGS:
            return self._named()
        self.cursor.step()
        return self._with_arguments(SPELLINGS[name], token.start)

    def _composite(self, name: str) -> t.Type:
        """Read an array, map, record or enum; the cursor is at its first word."""
        self.cursor.step()
        if name == "enum":
            return self._enum()
        with self._deeper():
            if name in LISTS:
                return t.Array(*self._element())
            return self._map() if name == "map" else self._record()

    def _element(self) -> tuple[t.Type, bool]:
        self._expect("<")
        element = self.type()
        nullable = self._nullable()
        self._expect_close(">")
        return element, nullable

    def _map(self) -> t.Type:
        """Read a map. The type of the keys may be left out, because it is always text."""
        self._expect("<")
        key = self.cursor.token
        first = self.type()
        if not self.cursor.take(","):
            nullable = self._nullable()
            self._expect_close(">")
            return t.Map(first, nullable)
        if first != t.Text():
            self._fail(errors.TypeSyntax(("text, the type of every map's key",), self._shown(key)), key.start)
        value = self.type()
        nullable = self._nullable()
        self._expect_close(">")
        return t.Map(value, nullable)

    def _record(self) -> t.Type:
        """Read a record in parentheses, or in angle brackets as Spark writes it."""
        name = self._quoted()
        doc = self._comment()
        if self.cursor.take("<>"):
            return t.Record((), name, doc)
        close = ">" if self.cursor.take("<") else ")"
        if close == ")":
            self._expect("(")
        fields: dict[str, t.Field] = {}
        closed = self.cursor.take(close)
        while not closed:
            start = self.cursor.token.start
            field = self._field()
            if field.name in fields:
                self._fail(errors.DuplicateField(field.name), start)
            fields[field.name] = field
            closed = self._closes(close)
        return t.Record(tuple(fields.values()), name, doc)

    def _field(self) -> t.Field:
        name = self._identifier("a field name").name
        self.cursor.take(":")  # Spark's spelling, struct<a: int>
        return t.Field(name, self.type(), self._nullable(), self._comment())

    def _enum(self) -> t.Type:
        """Read the name, the default, the doc and the symbols of an enum."""
        name = self._quoted()
        start = self.cursor.token.start
        default = self._string() if self.cursor.take("DEFAULT") else None
        doc = self._comment()
        self._expect("(")
        symbols: dict[str, None] = {}
        closed = False
        while not closed:
            token = self.cursor.token
            symbol = self._string()
            if symbol in symbols:
                raise errors.DuplicateSymbol(symbol).at(token.span)
            symbols[symbol] = None
            closed = self._closes(")")
        if default is not None and default not in symbols:
            self._fail(errors.DefaultNotASymbol(default, similar_names(default, symbols)), start)
        return t.Enum(tuple(symbols), name, default, doc)

    def _named(self) -> t.Type:
        """Read the name of a type of the catalog."""
        start = self.cursor.token.start
        parts = [self._identifier("a type")]
        while self._dot_follows(self.cursor.tokens[self.cursor.index - 1], ahead=0):
            self.cursor.step()
            parts.append(self._identifier("a name"))
        names, quoted = tuple(part.name for part in parts), tuple(part.quoted for part in parts)
        return t.Named(names, quoted, self.cursor.span_from(start))

    def _dot_follows(self, name: Token, ahead: int = 1) -> bool:
        """Whether a dot stands directly behind the name, without a blank: then the name has another part."""
        after = self.cursor.tokens[min(self.cursor.index + ahead, len(self.cursor.tokens) - 1)]
        return after.word == "." and after.start == name.end

    # arguments in parentheses

    def _with_arguments(self, type_: t.Type, start: int) -> t.Type:
        """Read what may follow a built-in type in parentheses."""
        match type_:
            case t.Decimal():
                arguments = self._numbers(2)
                return self._decimal(arguments, start) if arguments else type_
            case t.Bytes():
                arguments = self._numbers(1)
                if arguments and arguments[0] < 1:
                    self._fail(errors.InvalidLength("bytes", arguments[0]), start)
                return t.Bytes(arguments[0]) if arguments else type_
            case _:
                return self._unlimited(type_, start)

    def _unlimited(self, type_: t.Type, start: int) -> t.Type:
        """Refuse limits that we would not keep, such as `varchar(20)` and `timestamp(3)`; `timestamp(6)` is what we
        keep."""
        written = self.cursor.text[start : self.cursor.span_from(start).end]
        if isinstance(type_, t.Text | t.Time | t.Timestamp | t.TimestampTz) and self.cursor.at("("):
            numbers = self._numbers(1)
            if isinstance(type_, t.Text) or numbers != [6]:
                arguments = ",".join(map(str, numbers))
                self._fail(errors.LimitedType(f"{written}({arguments})", f"{written} without it"), start)
        return type_

    def _decimal(self, arguments: list[int], start: int) -> t.Type:
        precision, scale = arguments[0], arguments[1] if len(arguments) == 2 else 0
        if not (1 <= precision <= t.MAX_PRECISION and scale <= precision):
            self._fail(errors.InvalidDecimal(precision, scale), start)
        return t.Decimal(precision, scale)

    def _numbers(self, most: int) -> list[int]:
        """Read whole numbers in parentheses, at most so many; none if there are no parentheses."""
        numbers: list[int] = []
        closed = not self.cursor.take("(")
        while not closed:
            numbers.append(self._number())
            if len(numbers) == most:
                self._expect(")")
                return numbers
            closed = self._closes(")")
        return numbers

    def _number(self) -> int:
        digits = self.cursor.token.value
        if self.cursor.token.kind is not TokenKind.NUMBER or not digits.isdecimal() or len(digits) > 9:
            self._unexpected("a whole number")
        return int(self.cursor.step().value)

    # words, names, marks

    def _nullable(self) -> bool:
        """Read NOT NULL or NULL. Without either, the value may be null."""
        if self.cursor.take("NOT"):
            if not self.cursor.take("NULL"):
                self._unexpected("NULL")
            return False
        self.cursor.take("NULL")
        return True

    def _comment(self) -> str | None:
        return self._string() if self.cursor.take("COMMENT") else None

    def _identifier(self, what: str) -> Identifier:
        token = self.cursor.token
        if token.kind not in (TokenKind.WORD, TokenKind.QUOTED):
            self._unexpected(what)
        return Identifier(self.cursor.step().value, token.kind is TokenKind.QUOTED)

    def _quoted(self) -> str | None:
        return self.cursor.step().value if self.cursor.token.kind is TokenKind.QUOTED else None

    def _string(self) -> str:
        found = self.cursor.take_string()
        if found is None:
            self._unexpected("a string in single quotes")
        return found

    def _expect(self, mark: str) -> None:
        if not self.cursor.take(mark):
            self._unexpected(f'"{mark}"')

    def _expect_close(self, mark: str) -> None:
        if not self._take_close(mark):
            self._unexpected(f'"{mark}"')

    def _take_close(self, mark: str) -> bool:
        """Step over a closing mark. The lexer reads `>=` as one symbol; in `x::array<int>=y` its `>` ends the type."""
        token = self.cursor.token
        if token.word == ">=" and mark == ">":
            middle = token.start + 1
            self.cursor.tokens[self.cursor.index : self.cursor.index + 1] = [
                Token(TokenKind.SYMBOL, ">", ">", token.start, middle),
                Token(TokenKind.SYMBOL, "=", "=", middle, token.end),
            ]
        return self.cursor.take(mark)

    def _closes(self, mark: str) -> bool:
        """After an item of a list: whether the list ends here; otherwise another item must follow."""
        if self._take_close(mark):
            return True
        if not self.cursor.take(","):
            self._unexpected('","', f'"{mark}"')
        return False

    def end(self) -> None:
        if self.cursor.token.kind is not TokenKind.END:
            self._unexpected("the end of the type")

    # errors

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        """Count one level of nesting while the inner types are read."""
        if self.depth == t.MAX_DEPTH:
            end = self.cursor.span_from(0).end
            raise errors.TypeTooDeep().at(Span(end, end + 1))
        self.depth += 1
        yield
        self.depth -= 1

    def _unexpected(self, *expected: str) -> NoReturn:
        token = self.cursor.token
        raise errors.TypeSyntax(expected, self._shown(token)).at(token.span)

    def _shown(self, token: Token) -> str:
        """The token as an error names it."""
        if token.kind is TokenKind.END:
            return "the end of the text"
        written = self.cursor.text[token.start : token.end][:40]
        return written if token.kind in (TokenKind.STRING, TokenKind.QUOTED) else f'"{written}"'

    def _fail(self, error: errors.SchemaError, start: int) -> NoReturn:
        """Raise the error for the text from the offset to the last token that was read."""
        raise error.at(self.cursor.span_from(start))
