"""The cursor: the position in the tokens, what a parser looked for there, and the error that lists it.

Every ``take_…`` that finds something else remembers what it looked for at this position. So when a parse function has
tried all its alternatives and raises ``unexpected()``, the error lists exactly what could have stood here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from headgate.errors import HeadgateError, Span, similar_names
from headgate.text.errors import InvalidNumber, ReservedWord, UnexpectedToken
from headgate.text.lexer import Token, TokenKind, describe_token, shortened

# Words that would make a statement ambiguous if they were names. In quotes they are names too.
RESERVED = frozenset(
    {"AND", "AS", "FALSE", "FROM", "INTO", "NOT", "NULL", "OR", "SELECT", "TRUE", "VALUES", "WHERE", "WITH"}
)

_WHOLE = re.compile(r"[0-9]{1,18}\Z")
_A_NAME = "a name"
Item = TypeVar("Item")
Word = TypeVar("Word", bound=str)


@dataclass(frozen=True, slots=True)
class Identifier:
    """One name in the case it was written in. In quotes it matches exactly, otherwise in any case."""

    name: str
    quoted: bool = False


class Cursor:
    """A position in the tokens of a text, and the methods that read from it."""

    def __init__(self, text: str, tokens: list[Token], index: int = 0) -> None:
        self.text = text
        self.tokens = tokens
        self.index = index
        self._tried: list[str] = []
        self._tried_at = 0

    # Looking

    @property
    def token(self) -> Token:
        """The token at the position. At the end it is of kind END."""
        return self.tokens[self.index]

    def at(self, *words: str) -> bool:
        """Whether exactly these keywords or symbols come next."""
        tokens, index = self.tokens, self.index
        if tokens[index].word != words[0]:
            return False
        # The word of the last token is empty and equals no keyword, so the loop ends before the list does.
        for word in words[1:]:
            index += 1
            if tokens[index].word != word:
                return False
        return True

    def at_end(self) -> bool:
        """Whether the statement ends here."""
        if self.token.kind is TokenKind.END or self.token.word == ";":
            return True
        self._remember("the end of the statement")
        return False

    def at_name(self, ahead: int = 0) -> bool:
        """Whether the token ``ahead`` positions from here can be a name."""
        index = min(self.index + ahead, len(self.tokens) - 1)
        token = self.tokens[index]
        return token.kind is TokenKind.QUOTED or (token.kind is TokenKind.WORD and token.word not in RESERVED)

    # Reading

    def take(self, phrase: str) -> bool:
        """Step over the keywords or the symbol if they come next, all or none."""
        words = _words(phrase)
        if self.at(*words):
            self.index += len(words)
            return True
        self._remember(phrase)
        return False

    def expect(self, phrase: str) -> None:
        """Step over keywords that must come next. The error points at the first token that differs."""
        words = _words(phrase)
        for position, word in enumerate(words):
            if self.token.word != word or self.token.kind is TokenKind.END:
                self._remember(" ".join(words[position:]))
                raise self.unexpected()
            self.index += 1

    def choose(self, *phrases: Word) -> Word | None:
        """Step over the first phrase that comes next and return it. List a longer phrase before its own
        beginning: SINK POLICY before SINK."""
        return next((phrase for phrase in phrases if self.take(phrase)), None)

    def one_of(self, phrases: Iterable[Word]) -> Word:
        """Like ``choose``, but one of the phrases must come next."""
        found = self.choose(*phrases)
        if found is None:
            raise self.unexpected()
        return found

    def step(self) -> Token:
        """Step over one token, whatever it is, and return it."""
        token = self.token
        self.index += 1
        return token

    def take_string(self) -> str | None:
        """The value of the string that comes next; None if something else does."""
        if self.token.kind is TokenKind.STRING:
            return self.step().value
        self._remember("a string")
        return None

    def string(self) -> str:
        """The value of the string that must come next."""
        found = self.take_string()
        if found is None:
            raise self.unexpected()
        return found

    def whole_number(self) -> int:
        """Read a number without sign and fraction."""
        if self.token.kind is not TokenKind.NUMBER:
            self._remember("a whole number")
            raise self.unexpected()
        if not _WHOLE.match(self.token.value):
            raise InvalidNumber(shortened(self.token.value), "a whole number").at(self.token.span)
        return int(self.step().value)

    # Names

    def identifier(self) -> Identifier:
        """Read a name. A reserved word is an error of its own, because quotes make it a name."""
        token = self.token
        if token.kind is TokenKind.QUOTED or (token.kind is TokenKind.WORD and token.word not in RESERVED):
            self.index += 1
            return Identifier(token.value, token.kind is TokenKind.QUOTED)
        if token.kind is TokenKind.WORD:
            raise ReservedWord(token.word).at(token.span)
        self._remember(_A_NAME)
        raise self.unexpected()

    def identifiers(self) -> tuple[Identifier, ...]:
        """Read names in parentheses."""
        return self.in_parentheses(Cursor.identifier)

    # Lists

    def several(self, read: Callable[[Cursor], Item]) -> tuple[Item, ...]:
        """Read one item or more, with commas between them."""
        found = [read(self)]
        while self.take(","):
            found.append(read(self))
        return tuple(found)

    def in_parentheses(self, read: Callable[[Cursor], Item]) -> tuple[Item, ...]:
        """Read one item or more in parentheses. A trailing comma is not allowed, unlike in a list of options."""
        self.expect("(")
        found = self.several(read)
        self.expect(")")
        return found

    def items(self) -> Iterator[None]:
        """Yield once for each item of a list in parentheses; the caller reads the item. A trailing comma is allowed."""
        self.expect("(")
        while True:
            yield
            if not self.take(","):
                self.expect(")")
                return
            if self.take(")"):
                return

    # Spans

    def span_from(self, start: int) -> Span:
        """The span from the offset to the end of the last token that was read."""
        return Span(start, max(start, self.tokens[self.index - 1].end if self.index else 0))

    # Errors

    def unexpected(self) -> HeadgateError:
        """The error that lists what was expected here: everything that was looked for since the last step."""
        expected = tuple(dict.fromkeys(self._tried_here()))
        shown = tuple(phrase if phrase[0].isalpha() else f'"{phrase}"' for phrase in expected)
        token = self.token
        similar = _similar(shortened(token.value), expected) if token.kind is TokenKind.WORD else ()
        found = "the end of the statement" if token.word == ";" else describe_token(token)
        return UnexpectedToken(shown, found, similar).at(token.span)

    def expecting(self, what: str) -> None:
        """Remember something that was looked for here without ``take``."""
        self._remember(what)

    def forget_expected(self) -> None:
        """Forget what was looked for here, so that the next error does not list it."""
        self._tried = []

    def _tried_here(self) -> list[str]:
        """What was looked for at this position. What was looked for before the last step does not count."""
        return self._tried if self._tried_at == self.index else []

    def _remember(self, what: str) -> None:
        if self._tried_at != self.index:
            self._tried = []
            self._tried_at = self.index
        self._tried.append(what)


@functools.cache
def _words(phrase: str) -> tuple[str, ...]:
    """The words of a phrase of the grammar. Cached, because there are a few hundred phrases and every step asks for
    some."""
    return tuple(phrase.split(" "))


def _similar(word: str, expected: tuple[str, ...]) -> tuple[str, ...]:
    """Phrases that resemble the word: by their first word, otherwise as a whole."""
    phrases = {phrase.split(" ")[0]: phrase for phrase in expected if phrase.isupper()}
    if word.upper() in phrases:
        return ()
    near = tuple(phrases[first] for first in similar_names(word, phrases))
    return near or similar_names(word, phrases.values())
