"""When what was typed is whole, and how it is coloured."""

from __future__ import annotations

import re
from collections.abc import Callable

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer

from headgate.cli.shell.completion import KEYWORDS
from headgate.text.errors import SqlError
from headgate.text.lexer import tokenize

STYLE = {
    "keyword": "bold ansiblue",
    "string": "ansigreen",
    "number": "ansicyan",
    "comment": "ansibrightblack",
}
_TOKENS = re.compile(
    r"(?P<comment>--.*$|/\*.*?(?:\*/|$))|(?P<string>'(?:[^']|'')*'?)|(?P<quoted>\"[^\"]*\"?|`[^`]*`?)"
    r"|(?P<number>\b\d+(?:\.\d+)?\b)|(?P<word>[^\W\d]\w*)"
)


def is_whole(text: str) -> bool:
    """Whether Enter sends the text: it is blank, a shortcut, or its last token is a semicolon."""
    if not text.strip() or text.lstrip().startswith("\\"):
        return True
    try:
        tokens = tokenize(text)
    except SqlError:
        return False  # a string or a comment is open still
    return (len(tokens) > 1 and tokens[-2].word == ";") or len(tokens) == 1


def key_bindings() -> KeyBindings:
    """Enter sends what is whole and otherwise begins a new line; Escape, then Enter, sends whatever there is."""
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings


class SqlLexer(Lexer):
    """Line by line: a string over several lines is coloured on its first only, which costs nothing to compute."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        return lambda line: coloured(document.lines[line]) if line < len(document.lines) else []


def coloured(line: str) -> StyleAndTextTuples:
    parts: StyleAndTextTuples = []
    end = 0
    for found in _TOKENS.finditer(line):
        kind = found.lastgroup or ""
        if kind == "word":
            kind = "keyword" if found[0].upper() in KEYWORDS else ""
        parts += [("", line[end : found.start()]), (STYLE.get(kind, ""), found[0])]
        end = found.end()
    return [*parts, ("", line[end:])]
