"""The interactive shell of `headgate sql`.

``Shell`` is the loop: read, send, print. Below it are the keys and colours of the input, the commands that begin with a
backslash, the completion of keywords and names, and the history, which never contains secrets.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer

from headgate.catalog.catalog import DEFAULT_SCHEMA
from headgate.cli.output import print_answer, print_diagnostic
from headgate.errors import HeadgateError
from headgate.schema.names import print_name
from headgate.serve.client import EngineClient
from headgate.serve.protocol import Done, Event, Rows, Value
from headgate.sql.grammar import OPTION_LISTS, all_rules, all_synopses
from headgate.sql.options import rules
from headgate.sql.redact import redacted_text
from headgate.sql.statement import RELATIONS
from headgate.text.errors import SqlError
from headgate.text.lexer import tokenize

PROMPT = "headgate> "
MORE = "     ...> "


class Shell:
    """Reads statements from a terminal and sends them to an engine. An error does not end it."""

    def __init__(self, client: EngineClient, history: Path) -> None:
        self._client = client
        self._completer = SqlCompleter()
        self._changed = False
        self._session: PromptSession[str] = PromptSession(
            PROMPT,
            multiline=True,
            prompt_continuation=MORE,
            history=RedactedHistory(str(history)),
            completer=self._completer,
            complete_while_typing=False,
            lexer=SqlLexer(),
            key_bindings=key_bindings(),
            enable_open_in_editor=True,
        )

    def run(self) -> bool:
        """Run until the user quits. Returns whether a statement created or changed an object."""
        click.echo(f"connected to {self._client.url}; \\? for help, \\q to quit")
        self._refresh_names()
        while True:
            try:
                if not self._handle(self._session.prompt()):
                    return self._changed
            except KeyboardInterrupt:
                continue
            except EOFError:
                return self._changed

    def _handle(self, text: str) -> bool:
        """Handle one input. Returns False to quit."""
        line = text.strip().rstrip(";").rstrip()
        command = line.partition(" ")[0] if line.startswith("\\") else ""
        if command == QUIT:
            return False
        if not command:
            if line.strip(";").strip():
                self._send(text)
        elif (statement := statement_of(line)) is not None:
            self._send(statement)
        else:
            click.echo(HELP if command in ("\\?", "\\h") else f'unknown command "{command}"; \\? lists all commands')
        return True

    def _send(self, sql: str) -> None:
        """Send statements and print their answer. Ctrl-C cancels them and does not end the shell."""
        try:
            with closing(self._client.run(sql)) as events:
                result = print_answer(events, "table")
        except KeyboardInterrupt:
            click.echo("cancelled", err=True)
            return
        except HeadgateError as error:
            print_diagnostic(error.diagnostic())
            return
        if result.changed:
            self._changed = True
            self._refresh_names()

    def _refresh_names(self) -> None:
        """Read the names for completion in the background, so that the prompt appears at once."""
        threading.Thread(target=self._read_names, daemon=True).start()

    def _read_names(self) -> None:
        try:
            self._completer.names = read_names(self._client)
        except HeadgateError:
            return  # the next statement reports the same problem


STYLE = {"keyword": "bold ansiblue", "string": "ansigreen", "number": "ansicyan", "comment": "ansibrightblack"}
_TOKENS = re.compile(
    r"(?P<comment>--.*$|/\*.*?(?:\*/|$))|(?P<string>'(?:[^']|'')*'?)|(?P<quoted>\"[^\"]*\"?|`[^`]*`?)"
    r"|(?P<number>\b\d+(?:\.\d+)?\b)|(?P<word>[^\W\d]\w*)"
)


def is_complete(text: str) -> bool:
    """Whether Enter sends the text: it is blank, a backslash command, or its last token is a semicolon."""
    if not text.strip() or text.lstrip().startswith("\\"):
        return True
    try:
        tokens = tokenize(text)
    except SqlError:
        return False  # a string or comment is not closed
    return (len(tokens) > 1 and tokens[-2].word == ";") or len(tokens) == 1


def key_bindings() -> KeyBindings:
    """Enter sends a complete input and otherwise starts a new line. Escape, then Enter, sends any input."""
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings


class SqlLexer(Lexer):
    """Colours each line by itself. A string of several lines has its colour on the first line only, but typing stays
    quick in a long script."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        return lambda line: highlight(document.lines[line]) if line < len(document.lines) else []


def highlight(line: str) -> StyleAndTextTuples:
    """The parts of a line with their styles."""
    parts: StyleAndTextTuples = []
    end = 0
    for found in _TOKENS.finditer(line):
        kind = found.lastgroup or ""
        if kind == "word":
            kind = "keyword" if found[0].upper() in KEYWORDS else ""
        parts += [("", line[end : found.start()]), (STYLE.get(kind, ""), found[0])]
        end = found.end()
    return [*parts, ("", line[end:])]


# Keywords of queries. Those of statements are taken from their synopses.
_QUERY_WORDS = """AND AS ASC BETWEEN BY CASE CAST CROSS DESC DISTINCT ELSE END EXISTS FALSE FROM FULL GROUP HAVING IN INNER
INTERVAL IS JOIN LEFT LIKE LIMIT NOT NULL OFFSET ON OR ORDER OUTER RIGHT SELECT THEN TRUE UNION USING VALUES WHEN WHERE
WITH"""
_WORD = re.compile(r"[\w\"`]*$")
_OWNER = re.compile(r"([\w.\"`]+)\.[\w\"`]*$")
MAX_DESCRIBED = 500  # columns are completed for so many relations


def _keywords() -> frozenset[str]:
    texts = [*all_synopses().values(), *all_rules().values()]
    found = {word for text in texts for word in re.findall(r"(?<![<\w])[A-Z][A-Z]+\b", re.sub(r"<[^>]*>", " ", text))}
    options = (rule.name for cls in OPTION_LISTS.values() for rule in rules(cls))
    of_options = (word.upper() for name in options for word in name.split())
    return frozenset({*found, *of_options, *_QUERY_WORDS.split()})


KEYWORDS = _keywords()


@dataclass(frozen=True, slots=True)
class Names:
    """Names of objects, quoted where SQL needs it, and the columns of relations."""

    objects: Mapping[str, str] = field(default_factory=dict)  # name -> kind
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class SqlCompleter(Completer):
    """Completes keywords, names and columns. ``names`` may be replaced by any thread."""

    def __init__(self, names: Names | None = None) -> None:
        self.names = names or Names()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        found = _WORD.search(before)
        word = found[0] if found else ""
        owner = _OWNER.search(before)
        if owner is not None:
            yield from _matching(word, self._columns_of(owner[1]), "column")
            yield from _matching(word, self._objects_in(owner[1]), "object")
        elif word:
            yield from self._anything(word)

    def _anything(self, word: str) -> Iterator[Completion]:
        """Names of objects first, then columns, then keywords in the case in which the user types."""
        for name, kind in sorted(self.names.objects.items()):
            yield from _matching(word, [name], kind)
        columns = {column for columns in self.names.columns.values() for column in columns}
        yield from _matching(word, sorted(columns), "column")
        if not word.startswith(('"', "`")):
            written = str.lower if word.islower() else str.upper
            yield from _matching(word, (written(keyword) for keyword in sorted(KEYWORDS)), "")

    def _columns_of(self, owner: str) -> tuple[str, ...]:
        folded = {name.lower(): columns for name, columns in self.names.columns.items()}
        return folded.get(owner.lower(), ())

    def _objects_in(self, schema: str) -> list[str]:
        start = f"{schema.lower()}."
        return [name[len(start) :] for name in self.names.objects if name.lower().startswith(start)]


def _matching(word: str, candidates: Iterable[str], what: str) -> Iterator[Completion]:
    for candidate in candidates:
        if candidate.lower().startswith(word.lower()) and candidate != word:
            yield Completion(candidate, -len(word), display_meta=what)


def read_names(client: EngineClient) -> Names:
    """The names of an engine's catalog. Needs no Spark: one SHOW, and one script that describes all relations."""
    objects = dict(map(_object, client.rows("SHOW OBJECTS;")))
    relations = [name for name, kind in objects.items() if kind in RELATIONS][:MAX_DESCRIBED]
    if not relations:
        return Names(objects)
    script = "".join(f"DESCRIBE {name};\n" for name in relations)
    return Names(objects, dict(zip(relations, _columns(client.run(script)), strict=False)))


def _object(row: Mapping[str, Value]) -> tuple[str, str]:
    schema, name = str(row["schema"] or ""), str(row["name"])
    return print_name((name,) if schema in ("", DEFAULT_SCHEMA) else (schema, name)), str(row["kind"])


def _columns(events: Iterable[Event]) -> Iterator[tuple[str, ...]]:
    """The columns of each relation of a script of DESCRIBE statements."""
    found: list[str] = []
    for event in events:
        match event:
            case Rows(rows):
                found += [print_name((str(row[0]),)) for row in rows]
            case Done():
                yield tuple(found)
                found = []
            case _:
                pass


class RedactedHistory(FileHistory):
    """A history file that only its owner can read, without secrets. The file is created at the first entry."""

    def append_string(self, string: str) -> None:
        """Hide secrets in memory too: an entry that is called back appears on the screen."""
        super().append_string(redacted_text(string))

    def store_string(self, string: str) -> None:
        path = Path(os.fsdecode(self.filename))
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        super().store_string(string)


def history_file(project: Path, url: str | None) -> Path:
    """The history file: in the project folder, or in the user's state folder for an engine with a URL."""
    if url is None:
        return project / ".headgate" / "history"
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "headgate" / "history"


HELP = r"""statements end with a semicolon and may span several lines
  \d            list all objects             \d name   describe one
  \t            list tasks with their state
  \q, Ctrl-D    quit                         \?        this help
  Ctrl-C        cancel the running statement, or clear the input
  Tab           complete keywords, names and columns
  Esc, Enter    send without a semicolon"""


QUIT = "\\q"
SHORTCUTS = {"\\d": "SHOW OBJECTS;", "\\t": "SHOW TASKS;"}  # the statement that each stands for


def statement_of(line: str) -> str | None:
    """The statement that a line with a backslash stands for. None if it is no such line."""
    command, _, argument = line.strip().rstrip(";").rstrip().partition(" ")
    if command == "\\d" and argument.strip():
        return f"DESCRIBE {argument.strip()};"
    return SHORTCUTS.get(command) if not argument.strip() else None
