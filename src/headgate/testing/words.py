"""The arguments of an action: `name=value`, `"a b"`, `'{"h": "v"}'`, and values that are JSON without quotes."""

from __future__ import annotations

import re

from headgate.testing.errors import MalformedSpec
from headgate.testing.steps import Word

_NAME = re.compile(r"([A-Za-z_][\w.-]*)=")
_ESCAPES = {"n": "\n", "t": "\t"}


def read_words(text: str) -> tuple[Word, ...]:
    words: list[Word] = []
    position = _skip_blanks(text, 0)
    while position < len(text):
        named = _NAME.match(text, position)
        value, position = _value(text, named.end() if named else position)
        words.append(Word(value, named[1] if named else None))
        position = _skip_blanks(text, position)
    return tuple(words)


def end_of_brackets(text: str, start: int) -> int | None:
    """Where the JSON object or array that begins at ``start`` ends; None if it does not."""
    depth, position, in_string = 0, start, False
    while position < len(text):
        character = text[position]
        if in_string:
            position += character == "\\"
            in_string = character != '"'
        elif character == '"':
            in_string = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    return None


def read_quoted(text: str, start: int) -> tuple[str, int]:
    """The value of a double-quoted text, with its escapes undone, and the place behind it."""
    value: list[str] = []
    position = start + 1
    while position < len(text):
        character = text[position]
        if character == '"':
            return "".join(value), position + 1
        if character == "\\" and position + 1 < len(text):
            position += 1
            character = _ESCAPES.get(text[position], text[position])
        value.append(character)
        position += 1
    raise MalformedSpec("a quote is not closed", 'End the value with ", and write \\" for a quote within it.')


def _value(text: str, start: int) -> tuple[str, int]:
    opening = text[start : start + 1]
    if opening == '"':
        return read_quoted(text, start)
    if opening == "'":
        end = text.find("'", start + 1)
        if end < 0:
            raise MalformedSpec("a quote is not closed", "End the value with '.")
        return text[start + 1 : end], end + 1
    if opening in ("{", "[") and (end_ := end_of_brackets(text, start)) is not None:
        return text[start:end_], end_
    return _bare(text, start)


def _bare(text: str, start: int) -> tuple[str, int]:
    """Up to a blank; a quoted part after `=`, as in `--set=x="a b"`, belongs to it."""
    value: list[str] = []
    position = start
    while position < len(text) and not text[position].isspace():
        if text[position] == '"' and value and value[-1].endswith("="):
            part, position = read_quoted(text, position)
            value.append(part)
        else:
            value.append(text[position])
            position += 1
    return "".join(value), position


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position
