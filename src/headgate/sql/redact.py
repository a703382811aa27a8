"""Hide secrets in the text of statements before it is logged, stored as history or shown in an error.

A statement that is wrong may hold a secret at any position: behind a misspelt SECRET or PASWORD, or without quotes. So
text is shown only where it is known to be harmless: in statements that hold no secrets, and in well-formed options that
are not sensitive. Everything else is replaced by stars.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import re
from collections.abc import Iterator, Sequence

from headgate.errors import Diagnostic, HeadgateError, similar_names
from headgate.sql.connections import CONNECTION_OPTIONS, ValidateOptions
from headgate.sql.options import rules
from headgate.sql.statement import Kind
from headgate.text.errors import SqlError
from headgate.text.lexer import Token, TokenKind, tokenize

REDACTED = "********"

Words = tuple[str, ...]

_RULES = [rule for cls in (*CONNECTION_OPTIONS.values(), ValidateOptions) for rule in rules(cls)]
_OPTIONS: dict[Words, bool] = {
    tuple(name.split(" ")): rule.sensitive for rule in _RULES for name in (rule.name, *rule.aliases)
}
# All beginnings of option names, to find the longest one that stands in a statement.
_PREFIXES = frozenset(name[:length] for name in _OPTIONS for length in range(len(name) + 1))
_OPTION_WORDS = sorted({word for name in _OPTIONS for word in name})
_KINDS = sorted((tuple(kind.words.split(" ")) for kind in Kind), key=len, reverse=True)
# Statements that begin with these hold no secret. EXPLAIN is looked through.
_HARMLESS = frozenset(
    {"(", "COMMENT", "DESCRIBE", "DROP", "INSERT", "REPLAY", "SELECT", "SET", "SHOW", "SUBSCRIBE", "VALIDATE"}
    | {"VALUES", "WITH"}
)
# Those of them that hold texts which may be shown.
_WITH_TEXTS = frozenset({"(", "COMMENT", "INSERT", "SELECT", "SET", "VALUES", "WITH"})
# Words that begin statements. A misspelt one is compared with all of them.
_VERBS = sorted(_HARMLESS | {"CREATE", "ALTER", "EXPLAIN", "REPLACE"})
# Words that may stand between EXPLAIN and the statement.
_EXPLAINED = (["CHANGE"], ["KEY"], ["VALUE"])
# Words that may be shown in CREATE SECRET. Everything else behind the name may be the secret.
_SECRET_KEYWORDS = frozenset({"IF", "NOT", "EXISTS", "AS", "FROM", "ENV", "FILE", "RENAME", "TO"})
# user:password@host in an address, with or without a scheme, and a password among the parameters of an address.
_PARAMETERS = re.compile(r"(?<=password=)[^&\s'\"]+|(?<=secret=)[^&\s'\"]+", re.IGNORECASE)
_CREDENTIALS = re.compile(
    r"(?<=://)[^/?\s'\"]*(?=@)|(?<![^\s'\",;/])[^\s'\",;/@:]*:(?!//)[^\s'\"]*(?=@)|" + _PARAMETERS.pattern,
    re.IGNORECASE,
)
# In a literal a password may hold blanks and quotes.
_CREDENTIALS_OF_LITERAL = re.compile(
    r"(?<=://)[^/?]*(?=@)|(?<![^\s'\",;/])[^\s'\",;/@:]*:(?!//).*(?=@)|" + _PARAMETERS.pattern,
    re.IGNORECASE | re.DOTALL,
)
_SECRET_WORDS = ("SECRET", "PASSWORD")
_MAY_HOLD_SECRETS = re.compile(r"@|\b(?:create|alter)\s+connection\b", re.IGNORECASE)
# Line breaks stay, so that an excerpt shows the right line.
_HIDDEN = re.compile(r"[^\n]")
_WORD = re.compile(r"\w{4,}")


def redacted_text(text: str) -> str:
    """The text of a script with every character of a secret replaced by a star, so that all offsets still hold."""
    parts: list[str] = []
    end = 0
    for start, stop, shown in _replacements(text):
        parts += [text[end:start], shown]
        end = stop
    return "".join([*parts, text[end:]])


def redacted_diagnostic(error: HeadgateError, text: str) -> Diagnostic:
    """The error with its position in the script. Neither the excerpt nor the message shows a secret of the script."""
    hidden = sorted(_hidden_values(error, text), key=len, reverse=True)
    found = error.diagnostic(redacted_text(text))

    def shown(sentence: str | None) -> str | None:
        for value in hidden:
            sentence = sentence and re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", REDACTED, sentence)
        return sentence and _CREDENTIALS.sub(REDACTED, sentence)

    message = shown(found.message) or found.message
    return dataclasses.replace(found, message=message, detail=shown(found.detail), hint=shown(found.hint))


def _hidden_values(error: HeadgateError, text: str) -> Iterator[str]:
    """The contents of the hidden tokens that the error is about."""
    if error.span is None:
        return
    for token, is_hidden in _judged(_tokens(text)[0]):
        if is_hidden and token.value and error.span.start <= token.start < error.span.end:
            yield token.value


def _replacements(text: str) -> Iterator[tuple[int, int, str]]:
    """Spans to replace, in order, each with a text of the same length."""
    tokens, end = _tokens(text)
    if end is None or not _may_hold_secrets(text, tokens):
        yield from _replaced_tokens(text, tokens)
        return
    # A missing quote makes words of strings, so nothing behind the first quote is certain.
    end = min((at for at in map(text.find, "'\"`$") if 0 <= at < end), default=end)
    yield from _replaced_tokens(text, [token for token in tokens if token.start < end])
    yield end, len(text), _HIDDEN.sub("*", text[end:])


def _replaced_tokens(text: str, tokens: list[Token]) -> Iterator[tuple[int, int, str]]:
    """The tokens that are shown in another form, each with its offsets."""
    for token, is_hidden in _judged(tokens):
        written = text[token.start : token.end]
        shown = _masked(written) if is_hidden else _without_credentials(token, written)
        if shown != written:
            yield token.start, token.end, shown


def _tokens(text: str) -> tuple[list[Token], int | None]:
    """The tokens of the text, and the offset from which on it cannot be split into tokens."""
    end: int | None = None
    while True:
        try:
            return tokenize(text[:end]), end
        except SqlError as error:
            end = error.span.start if error.span is not None else 0


def _may_hold_secrets(text: str, tokens: list[Token]) -> bool:
    """Whether a text in which a quote is missing may hold a secret. A missing quote turns strings into words.

    A string is put where the tokens break off: if it would be hidden there, so is the rest of the text. The quote may
    stand inside a word, as in ``CREATE SEC'RET``, and then no word of it resembles SECRET.
    """
    broken_off = Token(TokenKind.STRING, "", "", len(text), len(text))
    known = [token for token in tokens if token.kind is not TokenKind.END]
    if _MAY_HOLD_SECRETS.search(text) or any(is_hidden for _, is_hidden in _judged([*known, broken_off])):
        return True
    return any(map(_resembles_a_secret, {word.upper() for word in _WORD.findall(text)}))


@functools.lru_cache(10_000)
def _resembles_a_secret(word: str) -> bool:
    """Whether a word may be a misspelt SECRET or PASSWORD."""
    return 4 <= len(word) <= 12 and bool(difflib.get_close_matches(word.upper(), _SECRET_WORDS, 1, 0.7))


def _judged(tokens: list[Token]) -> Iterator[tuple[Token, bool]]:
    """Every token with whether it is hidden. Symbols never are."""
    for statement in _statements(tokens):
        hidden = _hidden(statement, 0)
        for index, token in enumerate(statement):
            yield token, index in hidden and token.kind is not TokenKind.SYMBOL


def _statements(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each statement, without the semicolons."""
    found: list[Token] = []
    for token in tokens:
        if token.word == ";" or token.kind is TokenKind.END:
            yield found
            found = []
        else:
            found.append(token)
    yield found


def _hidden(statement: Sequence[Token], start: int) -> set[int]:
    """The positions of the tokens that are hidden, of a statement that begins at ``start``.

    A word that is not known at the beginning, or behind CREATE and ALTER, may be misspelt: it is shown, and what
    follows it is not.
    """
    at, words = start, [token.word for token in statement]
    while words[at : at + 1] == ["EXPLAIN"]:
        at += 1 + (words[at + 1 : at + 2] in _EXPLAINED)
    if at == len(words):
        return set()
    if _verb(words[at]) in _HARMLESS or (at > start and words[at] == "SUBJECT"):
        return _hidden_of_harmless(statement, at + 1, texts=words[at] in _WITH_TEXTS)
    if at == start or words[at] in ("CREATE", "ALTER"):
        at += 3 if words[at + 1 : at + 3] == ["OR", "REPLACE"] else 1
    match _kind(words, at) or _kind(words, at + 1):
        case ():
            return _hidden_behind_unknown(statement, at if words[at - 1] in ("CREATE", "ALTER", "REPLACE") else start)
        case ("SECRET",):
            return _hidden_of_secret(statement, words.index("SECRET", at) + 1)
        case ("CONNECTION",):
            return _hidden_of_connection(statement, words.index("CONNECTION", at) + 1)
        case kind:
            return _hidden_of_harmless(statement, at + len(kind))


def _verb(word: str) -> str:
    """The word with which a statement begins. A misspelt one that can only mean a harmless statement counts as that."""
    near = similar_names(word, _VERBS) if word.isalpha() and word not in _VERBS else ()
    return near[0] if near and _HARMLESS.issuperset(near) else word


def _kind(words: list[str], at: int) -> Words:
    return next((kind for kind in _KINDS if tuple(words[at : at + len(kind)]) == kind), ())


def _hidden_behind_unknown(statement: Sequence[Token], at: int) -> set[int]:
    """All that follows a word that is not known."""
    is_word = at < len(statement) and statement[at].kind is TokenKind.WORD
    return set(range(at + is_word, len(statement)))


def _hidden_of_harmless(statement: Sequence[Token], start: int, *, texts: bool = True) -> set[int]:
    """What looks like a secret in a statement that should hold none: a semicolon may be missing before another one.

    A text behind AS is hidden, because CREATE and SECRET may both be misspelt before it. ``texts`` is false for
    statements that hold no texts, or whose first word is misspelt: then every text is hidden.
    """
    hidden: set[int] = set()
    for at in range(start - 1, len(statement) - 1):
        token, following = statement[at], statement[at + 1]
        if token.word in ("CREATE", "ALTER") and following.kind is TokenKind.WORD:
            return hidden | _hidden(statement, at)
        if _resembles_a_secret(token.word) and [one.word for one in statement[at + 2 : at + 3]] in (["AS"], ["="]):
            return hidden | _hidden_of_secret(statement, at + 1)
        if following.kind is TokenKind.STRING and (
            not texts
            or (token.word == "AS" and not _is_of_field(statement, start, at))
            or _stands_near_a_secret(statement, start, at + 1)
        ):
            hidden.add(at + 1)
    return hidden


def _is_of_field(statement: Sequence[Token], start: int, at: int) -> bool:
    """Whether AS stands in the fields of a materialization, inside brackets, where a type of the target follows it."""
    before = [token.word for token in statement[start - 1 : at]]
    return before[:1] == ["MATERIALIZATION"] and "FIELDS" in before and before.count("(") > before.count(")")


def _stands_near_a_secret(statement: Sequence[Token], start: int, at: int) -> bool:
    before = statement[max(start, at - 4) : at]
    return any(one.kind is TokenKind.WORD and _resembles_a_secret(one.word) for one in before)


def _hidden_of_secret(statement: Sequence[Token], start: int) -> set[int]:
    """All but keywords, and the name if it stands before the value."""
    value = next(
        (at for at in range(start, len(statement)) if statement[at].word in ("AS", "FROM", "=")), len(statement)
    )
    return {
        at
        for at in range(start, len(statement))
        if statement[at].word not in _SECRET_KEYWORDS and not (at < value and _is_of_first_name(statement, start, at))
    }


def _is_of_first_name(statement: Sequence[Token], start: int, at: int) -> bool:
    """Whether a token is a name, or its part behind a dot, and no other name stands before it."""
    before = [token.word for token in statement[start:at]]
    while len(before) > 1 and before[-1] == ".":
        before = before[:-2]
    is_name = statement[at].kind in (TokenKind.WORD, TokenKind.QUOTED)
    return is_name and all(word in _SECRET_KEYWORDS for word in before)


def _hidden_of_connection(statement: Sequence[Token], start: int) -> set[int]:
    """All options but those that are well-formed and not sensitive."""
    first = next((at for at in range(start, len(statement)) if _begins_options(statement[at])), len(statement))
    hidden: set[int] = set()
    for item in _items(statement, first):
        hidden.update(set(item).difference(_shown_of_option(statement, item)))
    return hidden


def _begins_options(token: Token) -> bool:
    return token.word in ("(", ",", "=") or token.kind in (TokenKind.STRING, TokenKind.NUMBER)


def _items(statement: Sequence[Token], start: int) -> Iterator[range]:
    """The options from ``start`` on: what stands between commas and outer brackets."""
    depth, begin = 0, start
    for at in range(start, len(statement)):
        word = statement[at].word
        depth += (word == "(") - (word == ")")
        if (word == "," and depth <= 1) or (word == "(" and depth == 1) or (word == ")" and depth == 0):
            yield range(begin, at)
            begin = at + 1
    yield range(begin, len(statement))


def _shown_of_option(statement: Sequence[Token], item: range) -> range:
    """The positions of an option that may be shown: all, its name, or the first word of a name that is not known."""
    name, at = _option_name(statement, item)
    while at < item.stop and statement[at].word in ("WITH", "="):
        at += 1
    if name not in _OPTIONS:
        is_name = at < item.stop and statement[at].kind is TokenKind.WORD
        is_name = is_name and (at + 1 < item.stop or bool(similar_names(statement[at].value, _OPTION_WORDS)))
        return range(item.start, at + is_name)
    value = statement[at : item.stop]
    if _is_reference(value) or (not _OPTIONS[name] and _is_value(value)):
        return item
    return range(item.start, at + (bool(value) and value[0].word == "SECRET"))


def _option_name(statement: Sequence[Token], item: range) -> tuple[Words, int]:
    """The longest beginning of an option's name, and the position behind it."""
    name: Words = ()
    for at in item:
        longer = (*name, *statement[at].word.replace("_", " ").split())
        if longer not in _PREFIXES or longer == name:
            return name, at
        name = longer
    return name, item.stop


def _is_reference(value: Sequence[Token]) -> bool:
    """``SECRET [schema.]name``."""
    names, dots = value[1::2], value[2::2]
    return (
        len(value) in (2, 4, 6)
        and value[0].word == "SECRET"
        and all(token.kind in (TokenKind.WORD, TokenKind.QUOTED) for token in names)
        and all(token.word == "." for token in dots)
    )


def _is_value(value: Sequence[Token]) -> bool:
    """One literal or word, or strings in brackets."""
    if len(value) == 1:
        return value[0].kind is not TokenKind.QUOTED
    inner = value[1:-1]
    return (
        len(value) >= 3
        and (value[0].word, value[-1].word) == ("(", ")")
        and all(token.kind is TokenKind.STRING for token in inner[::2])
        and all(token.word == "," for token in inner[1::2])
    )


def _without_credentials(token: Token, written: str) -> str:
    """The literal with stars instead of the passwords that addresses may hold."""
    if token.kind is not TokenKind.STRING:
        return written
    # Behind the last @ only parameters can match. The other patterns would try every colon there, in quadratic time.
    end = written.rfind("@") + 1
    before = _CREDENTIALS_OF_LITERAL.sub(_stars, written[:end])
    return before + _PARAMETERS.sub(_stars, written[end:])


def _stars(found: re.Match[str]) -> str:
    return _HIDDEN.sub("*", found[0])


def _masked(literal: str) -> str:
    """The literal with only its quotes left."""
    if literal[0] in "'\"`$":
        return literal[0] + _HIDDEN.sub("*", literal[1:-1]) + literal[-1]
    return _HIDDEN.sub("*", literal)
