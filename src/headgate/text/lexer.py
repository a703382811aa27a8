"""Tokens, and the lexer that makes them from text in one linear pass.

It knows all that Headgate's SQL contains: "x" and `x` identifiers, '…' and E'…' strings, $$x$$ and $tag$x$tag$ quotes,
nested comments. Every token has its offsets, so that a query body can be cut out of the text exactly. Blanks and
comments are not tokens.
"""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

from headgate.errors import HeadgateError, Span
from headgate.text import errors


class TokenKind(enum.Enum):
    """The kinds of tokens. Keywords are words: which words are keywords depends on the grammar around them."""

    WORD = "word"
    QUOTED = "quoted identifier"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"


class Token(NamedTuple):
    """One token. A named tuple is made three times as fast as a dataclass, and a statement of 1 MB has 200,000 tokens.

    ``value`` is the content: of a quoted identifier or a string without quotes and escapes, otherwise the text.
    ``word`` is a word in upper case, as keywords are compared, or a symbol; empty for everything else.
    """

    kind: TokenKind
    value: str
    word: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        """Where the token stands in the text."""
        return Span(self.start, self.end)


def describe_token(token: Token) -> str:
    """Describe a token for an error. The content of strings is not shown, because it may be a secret."""
    match token.kind:
        case TokenKind.WORD | TokenKind.SYMBOL:
            return f'"{shortened(token.value)}"'
        case TokenKind.QUOTED:
            return f'identifier "{shortened(token.value)}"'
        case TokenKind.STRING:
            return "a string"
        case TokenKind.NUMBER:
            return f"number {shortened(token.value)}"
        case TokenKind.END:
            return "the end of the text"


def shortened(text: str, width: int = 40) -> str:
    """Cut a name so that it fits into the one line of an error."""
    shown = text if len(text) <= width else text[:width] + "…"
    return shown.replace("\n", " ").replace("\r", " ")


# The quantifiers are possessive (*+), so that a literal of a megabyte is read once, without backtracking.
_TOKEN = re.compile(
    r"""
    (?: [ \t\r\n\f\v]++ | --[^\n]*+ )*+
    (?: (?P<mark>  [(),;\[\]] )
    | (?P<comment> /\* )
    | (?P<escaped> [eE]'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+' )
    | (?P<open_escaped> [eE]' )
    | (?P<word>    [^\W\d][\w$]*+ )
    | (?P<string>  '[^']*+(?:''[^']*+)*+' )
    | (?P<quoted>  "[^"]*+(?:""[^"]*+)*+" | `[^`]*+(?:``[^`]*+)*+` )
    | (?P<number>  (?:[0-9]++(?:\.(?!\.)[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+\w*+ )
    | (?P<dollar>  \$(?:[^\W\d]\w*+)?\$ )
    | (?P<symbol>  ->> | -> | => | :: | := | <=> | <> | <= | >= | != | \|\| | \$[0-9]++ | [-+*/%<>=!~&|^?@\#:.{}] )
    | (?P<open>    ['"`] )
    | (?P<end>     \Z )
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_BLANK = re.compile(r"(?:[ \t\r\n\f\v]++|--[^\n]*+)*+")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")
_ESCAPE = re.compile(r"''|\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_NAMED_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def tokenize(text: str, *, foreign: bool = False) -> list[Token]:
    """All tokens of the text. The last one is of kind END and stands at the end of the text.

    ``foreign``: the text holds names and strings of a foreign schema. Those may be empty or contain NUL and halves of
    surrogate pairs, all of which are errors in what a person writes.
    """
    if not foreign:
        _refuse_what_is_no_text(text)
    tokens: list[Token] = []
    position = 0
    while True:
        found = _TOKEN.match(text, position)
        if found is None:
            raise _unexpected_character(text, position)
        kind = found.lastgroup
        start, position = found.span(kind or 0)
        if kind == "word":
            value = text[start:position]
            # Only ASCII is folded: "ı" and "ß" would turn into letters of keywords.
            word = value.upper() if value.isascii() else value
            tokens.append(Token(TokenKind.WORD, value, word, start, position))
        elif kind == "mark" or kind == "symbol":
            value = text[start:position]
            tokens.append(Token(TokenKind.SYMBOL, value, value, start, position))
        elif kind == "comment":
            position = _end_of_comment(text, start)
        elif kind == "end":
            tokens.append(Token(TokenKind.END, "", "", start, start))
            return tokens
        else:
            token = _literal(text, kind or "", start, position)
            if not token.value and token.kind is TokenKind.QUOTED and not foreign:
                raise errors.EmptyIdentifier().at(token.span)
            tokens.append(token)
            position = token.end


def _unexpected_character(text: str, position: int) -> HeadgateError:
    """The error for the first character that begins no token. The blanks before it are skipped."""
    blank = _BLANK.match(text, position)
    at = blank.end() if blank else position
    return errors.UnexpectedCharacter(text[at]).at(Span(at, at + 1))


def _refuse_what_is_no_text(text: str) -> None:
    """Refuse NUL characters and halves of surrogate pairs, which no target can store."""
    bad = _NOT_TEXT.search(text)
    if bad is not None:
        problem = errors.NulCharacter() if bad[0] == "\x00" else errors.UnexpectedCharacter(bad[0])
        raise problem.at(Span(bad.start(), bad.end()))


def _literal(text: str, kind: str, start: int, end: int) -> Token:
    """The token of a literal or a quoted name, without quotes and escapes. Raises for one that is not closed."""
    raw = text[start:end]
    match kind:
        case "string":
            return Token(TokenKind.STRING, raw[1:-1].replace("''", "'"), "", start, end)
        case "quoted":
            return _quoted_identifier(raw, start, end)
        case "number":
            return Token(TokenKind.NUMBER, raw, "", start, end)
        case "escaped":
            return Token(TokenKind.STRING, _unescape(raw[2:-1], start + 2), "", start, end)
        case "dollar":
            return _dollar_quoted(text, raw, start, end)
        case "open_escaped":
            raise errors.UnterminatedString().at(Span(start, end))
        case _:
            problem = errors.UnterminatedString() if raw == "'" else errors.UnterminatedIdentifier(raw)
            raise problem.at(Span(start, end))


def _quoted_identifier(raw: str, start: int, end: int) -> Token:
    quote = raw[0]
    name = raw[1:-1].replace(quote * 2, quote)
    return Token(TokenKind.QUOTED, name, "", start, end)


def _dollar_quoted(text: str, tag: str, start: int, after: int) -> Token:
    """The string between two equal tags. Nothing inside it is an escape."""
    close = text.find(tag, after)
    if close < 0:
        raise errors.UnterminatedDollarQuote(tag).at(Span(start, after))
    return Token(TokenKind.STRING, text[after:close], "", start, close + len(tag))


def _end_of_comment(text: str, start: int) -> int:
    """The offset behind a comment. Comments nest, as in PostgreSQL."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    raise errors.UnterminatedComment().at(Span(start, start + 2))


def _unescape(body: str, offset: int) -> str:
    """The value of an E'…' string. Two \\u escapes that form a surrogate pair are one character."""

    def value(found: re.Match[str]) -> str:
        short, long, hexadecimal, octal, other = found.groups()
        if other is not None:
            return _other_escape(found, other, offset)
        if short or long or hexadecimal:
            code = int(short or long or hexadecimal, 16)
        elif octal is not None:
            code = int(octal, 8)
        else:
            return "'"
        if code == 0 or code > 0x10FFFF:
            raise _bad_escape(found, offset)
        return chr(code)

    plain = _ESCAPE.sub(value, body)
    try:
        return plain.encode("utf-16", "surrogatepass").decode("utf-16") if _NOT_TEXT.search(plain) else plain
    except UnicodeDecodeError as problem:
        start = offset + body.lower().find("\\u")
        raise errors.InvalidEscape(body[start - offset : start - offset + 6]).at(Span(start, start + 6)) from problem


def _other_escape(found: re.Match[str], character: str, offset: int) -> str:
    """The character of an escape that is a letter. As in PostgreSQL, an unknown letter stands for itself."""
    if character in "uUx":
        raise _bad_escape(found, offset)
    return _NAMED_ESCAPES.get(character, character)


def _bad_escape(found: re.Match[str], offset: int) -> HeadgateError:
    return errors.InvalidEscape(found[0]).at(Span(offset + found.start(), offset + found.end()))
