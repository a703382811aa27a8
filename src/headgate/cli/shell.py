"""The shell of `headgate sql`: lines typed by a person in, statements to an engine out.

``shell`` is the loop; ``input`` knows when what was typed is whole, and colours it; ``completion`` knows keywords and
the names of the catalog; ``history`` keeps what was typed, without secrets; ``shortcuts`` are the commands that begin
with a backslash. Imports what ``cli`` imports.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer

from headgate.catalog.objects import RELATIONS
from headgate.catalog.snapshot import DEFAULT_SCHEMA
from headgate.cli.output import print_answer, print_diagnostic
from headgate.errors import HeadgateError
from headgate.schema.names import print_name
from headgate.serve.client import EngineClient
from headgate.serve.protocol import Columns, Done, Event, Failed, Rows, Value
from headgate.sql.grammar import all_option_tables, all_rules, all_synopses
from headgate.sql.redact import redacted_text
from headgate.text.errors import SqlError
from headgate.text.lexer import tokenize

PROMPT = "headgate> "
MORE = "     ...> "


class Shell:
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
        """Until the person leaves. Whether something was made or changed meanwhile."""
        click.echo(f"connected to {self._client.url}; \\? for help, \\q to leave")
        self._refresh_names()
        while True:
            try:
                if not self._take(self._session.prompt()):
                    return self._changed
            except KeyboardInterrupt:
                continue
            except EOFError:
                return self._changed

    def _take(self, text: str) -> bool:
        """False to leave."""
        match shortcut(text):
            case Quit():
                return False
            case Print(told):
                click.echo(told)
            case Send(sql):
                self._send(sql)
            case None:
                if text.strip().strip(";").strip():
                    self._send(text)
        return True

    def _send(self, sql: str) -> None:
        try:
            with closing(self._client.run(sql)) as events:
                answered = print_answer(events, "table")
        except KeyboardInterrupt:
            click.echo("cancelled", err=True)
            return
        except HeadgateError as error:
            print_diagnostic(error.diagnostic())
            return
        if answered.changed:
            self._changed = True
            self._refresh_names()

    def _refresh_names(self) -> None:
        """In the background: completion is for people, and may be a moment late."""
        threading.Thread(target=self._read_names, daemon=True).start()

    def _read_names(self) -> None:
        try:
            self._completer.names = read_names(self._client)
        except HeadgateError:
            return  # whatever is wrong is told when the next statement is sent


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


def is_complete(text: str) -> bool:
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
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings


class SqlLexer(Lexer):
    """Line by line: a string over several lines is coloured on its first only, which costs nothing to compute."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        return lambda line: highlight(document.lines[line]) if line < len(document.lines) else []


def highlight(line: str) -> StyleAndTextTuples:
    parts: StyleAndTextTuples = []
    end = 0
    for found in _TOKENS.finditer(line):
        kind = found.lastgroup or ""
        if kind == "word":
            kind = "keyword" if found[0].upper() in KEYWORDS else ""
        parts += [("", line[end : found.start()]), (STYLE.get(kind, ""), found[0])]
        end = found.end()
    return [*parts, ("", line[end:])]


# Words of queries; those of statements are in their synopses.
_QUERY_WORDS = """AND AS ASC BETWEEN BY CASE CAST CROSS DESC DISTINCT ELSE END EXISTS FALSE FROM FULL GROUP HAVING IN INNER
INTERVAL IS JOIN LEFT LIKE LIMIT NOT NULL OFFSET ON OR ORDER OUTER RIGHT SELECT THEN TRUE UNION USING VALUES WHEN WHERE
WITH"""
_WORD = re.compile(r"[\w\"`]*$")
_OWNER = re.compile(r"([\w.\"`]+)\.[\w\"`]*$")
MAX_DESCRIBED = 500  # relations whose columns are completed


def _keywords() -> frozenset[str]:
    texts = [*all_synopses().values(), *all_rules().values()]
    found = {
        word
        for text in texts
        for word in re.findall(r"(?<![<\w])[A-Z][A-Z]+\b", re.sub(r"<[^>]*>", " ", text))
    }
    options = (rule.name for table in all_option_tables().values() for rule in table.rules)
    of_options = (word.upper() for name in options for word in name.split())
    return frozenset({*found, *of_options, *_QUERY_WORDS.split()})


KEYWORDS = _keywords()


@dataclass(frozen=True, slots=True)
class Names:
    """Objects as they can be written, with the columns of those that have some."""

    objects: Mapping[str, str] = field(default_factory=dict)  # name -> kind
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class SqlCompleter(Completer):
    """``names`` may be replaced at any time."""

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
    """The names of an engine's catalog, asked without Spark: SHOW, and DESCRIBE of all relations at once."""
    objects = dict(_objects(client.run("SHOW OBJECTS;")))
    relations = [name for name, kind in objects.items() if kind in RELATIONS][:MAX_DESCRIBED]
    if not relations:
        return Names(objects)
    script = "".join(f"DESCRIBE {name};\n" for name in relations)
    return Names(objects, dict(zip(relations, _columns(client.run(script)), strict=False)))


def _objects(events: Iterable[Event]) -> Iterator[tuple[str, str]]:
    for row in _rows(events):
        schema, name = str(row["schema"] or ""), str(row["name"])
        qualified = (name,) if schema in ("", DEFAULT_SCHEMA) else (schema, name)
        yield print_name(qualified), str(row["kind"])


def _columns(events: Iterable[Event]) -> Iterator[tuple[str, ...]]:
    """The columns of each relation that was described."""
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


def _rows(events: Iterable[Event]) -> Iterator[dict[str, Value]]:
    names: list[str] = []
    for event in events:
        match event:
            case Columns(columns):
                names = [column.name for column in columns]
            case Rows(rows):
                yield from (dict(zip(names, row, strict=True)) for row in rows)
            case Failed():
                return
            case _:
                pass


class RedactedHistory(FileHistory):
    """Makes its file, of mode 0600, when it is first written to."""

    def append_string(self, string: str) -> None:
        """Redacted in memory too: what is called back is shown on the screen."""
        super().append_string(redacted_text(string))

    def store_string(self, string: str) -> None:
        path = Path(os.fsdecode(self.filename))
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        super().store_string(string)


def history_file(project: Path, url: str | None) -> Path:
    """In the project's folder; for an engine elsewhere, in the user's state folder."""
    if url is None:
        return project / ".headgate" / "history"
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "headgate" / "history"


HELP = r"""statements end with a semicolon and may go over several lines
  \d            list all objects             \d name   describe one
  \t            list tasks, and how each does
  \q, Ctrl-D    leave                        \?        this help
  Ctrl-C        cancel the running statement, or what is typed
  Tab           complete keywords, names and columns
  Esc, Enter    send as it is"""


@dataclass(frozen=True, slots=True)
class Quit:
    pass


@dataclass(frozen=True, slots=True)
class Print:
    text: str


@dataclass(frozen=True, slots=True)
class Send:
    sql: str


Shortcut: TypeAlias = Quit | Print | Send


def shortcut(text: str) -> Shortcut | None:
    """What a line means that begins with a backslash; None for anything else."""
    line = text.strip().rstrip(";").rstrip()
    if not line.startswith("\\"):
        return None
    command, _, argument = line.partition(" ")
    match command, argument.strip():
        case ("\\q", _):
            return Quit()
        case ("\\?" | "\\h", _):
            return Print(HELP)
        case ("\\d", ""):
            return Send("SHOW OBJECTS;")
        case ("\\d", name):
            return Send(f"DESCRIBE {name};")
        case ("\\t", ""):
            return Send("SHOW TASKS;")
        case _:
            return Print(f'there is no command "{command}"; \\? lists them')
