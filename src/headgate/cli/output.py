"""What commands print: the answers of the engine, and tables. For people as text, for programs as JSON."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol, Self, assert_never

import click
from rich.console import Console
from rich.progress import Progress as Bar, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from headgate.cli.main import exit_status_of
from headgate.errors import Diagnostic
from headgate.serve.protocol import Column, Columns, Done, Event, Failed, Notice, Progress, Row, Rows, table_lines

Output = Literal["table", "json"]

PAGE_ROWS = 1000  # a longer result is printed in pages of so many rows, each with column widths of its own
SPINNER_DELAY = 0.3  # seconds until a running statement gets a spinner
CHANGES = ("CREATE", "ALTER", "APPLY")

# Control characters in data must not reach the terminal, which would obey them. Line feeds belong to the table.
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code != 10}


class Printer(Protocol):
    """Prints the events of a script in one of the forms of ``Output``."""

    def take(self, event: Event) -> None: ...


class ScriptResult:
    """The exit status of a script, and whether it created or changed an object."""

    def __init__(self) -> None:
        self.status = 0
        self.changed = False

    def take(self, event: Event) -> None:
        match event:
            case Failed(diagnostic):
                self.status = exit_status_of(diagnostic.code)
            case Done(tag):
                self.changed = self.changed or tag.startswith(CHANGES)
            case _:
                pass


def print_answer(events: Iterator[Event], output: Output) -> ScriptResult:
    """Print all events as they arrive. The caller closes ``events`` after Ctrl-C, which cancels the statement."""
    result = ScriptResult()
    printer: Printer = JsonPrinter() if output == "json" else TablePrinter()
    with Spinner() as spinner:
        for event in events:
            result.take(event)
            if isinstance(event, Progress):
                spinner.update(event.message)
            else:
                with spinner.hidden():
                    printer.take(event)
    return result


class TablePrinter:
    """Tables and tags go to standard output, notices and errors to standard error."""

    def __init__(self) -> None:
        self._columns: tuple[Column, ...] | None = None
        self._rows: list[Row] = []
        self._printed = 0

    def take(self, event: Event) -> None:
        match event:
            case Notice(message):
                click.secho(f"notice: {message}", err=True, fg="yellow")
            case Columns(columns):
                self._columns, self._printed = columns, 0
            case Rows(rows):
                self._rows += rows
                if len(self._rows) >= PAGE_ROWS:
                    self._print_page()
            case Done(tag):
                self._end(tag)
            case Failed(diagnostic):
                self._columns = None
                print_diagnostic(diagnostic)
            case Progress():
                pass
            case _:
                assert_never(event)

    def _end(self, tag: str) -> None:
        """End a statement: with its tag, or with the number of rows of its result."""
        if self._columns is None:
            click.echo(tag)
            return
        if self._rows or not self._printed:
            self._print_page()
        click.echo(f"({self._printed} {'row' if self._printed == 1 else 'rows'})\n")
        self._columns = None

    def _print_page(self) -> None:
        """Print the rows collected so far. Only the first page has a header."""
        within = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        lines = table_lines(self._columns or (), self._rows, within)
        for line in lines[2:] if self._printed else lines:
            click.echo(escape_control(line))
        self._printed += len(self._rows)
        self._rows = []


class JsonPrinter:
    """One JSON document per statement and line: `columns` and `rows` of a result, `notices`, and `tag` or `error`.

    Rows are printed as they arrive, so that a long result needs no memory.
    """

    def __init__(self) -> None:
        self._notices: list[str] = []
        self._open = False
        self._first = True

    def take(self, event: Event) -> None:
        match event:
            case Notice(message):
                self._notices.append(message)
            case Columns(columns):
                described = [{"name": one.name, "type": one.type} for one in columns]
                click.echo(f'{{"columns": {_json(described)}, "rows": [', nl=False)
                self._open, self._first = True, True
            case Rows(rows):
                for row in rows:
                    click.echo(("" if self._first else ", ") + _json(row), nl=False)
                    self._first = False
            case Done(tag):
                self._end({"tag": tag})
            case Failed(diagnostic):
                self._end({"error": diagnostic.as_json()})
            case Progress():
                pass
            case _:
                assert_never(event)

    def _end(self, last: dict[str, object]) -> None:
        rest = _json({"notices": self._notices, **last})
        click.echo(f"], {rest[1:]}" if self._open else rest)
        self._open, self._notices = False, []


def print_diagnostic(diagnostic: Diagnostic, output: Output = "table") -> None:
    """Print an error: as text on standard error, as JSON on standard output."""
    if output == "json":
        JsonPrinter().take(Failed(diagnostic))
        return
    first, *rest = diagnostic.render().split("\n")
    click.secho(escape_control(first), err=True, fg="red")
    for line in rest:
        click.echo(escape_control(line), err=True)


def escape_control(text: str) -> str:
    """The text with control characters replaced by escapes such as ``\\x1b``."""
    return text.translate(_CONTROL)


class Spinner:
    """Shows on a terminal that a statement runs and for how long. Appears after SPINNER_DELAY seconds."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._bar = Bar(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("running")
        self._guard = threading.RLock()
        self._timer: threading.Timer | None = None

    def update(self, message: str) -> None:
        self._bar.update(self._task, description=escape_control(message) or "running")

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the spinner while something else is printed."""
        self._stop()
        yield
        self._start_soon()

    def _start_soon(self) -> None:
        self._timer = threading.Timer(SPINNER_DELAY, self._start)
        self._timer.daemon = True
        self._timer.start()

    def _start(self) -> None:
        with self._guard:
            if self._timer is not None:
                self._bar.start()

    def _stop(self) -> None:
        with self._guard:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            self._bar.stop()

    def __enter__(self) -> Self:
        self._start_soon()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


PIPED_WIDTH = 160  # without a terminal nothing needs to fit, and a folded address is hard to use


def console() -> Console:
    """The console of standard output."""
    return Console() if sys.stdout.isatty() else Console(width=PIPED_WIDTH)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> None:
    """Print a table. A text is printed as it is; for a colour, pass a ``Text``."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    console().print(table)


def print_json(value: Any) -> None:
    """Print a dataclass, or a list of them."""
    plain = [dataclasses.asdict(one) for one in value] if isinstance(value, list) else dataclasses.asdict(value)
    click.echo(json.dumps(plain, indent=2))


output_option = click.option(
    "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Form of the output."
)
folder_option = click.option(
    "--folder",
    type=click.Path(file_okay=False),
    default=".headgate/world",
    show_default=True,
    envvar="HEADGATE_WORLD",
    show_envvar=True,
    help="The world folder.",
)
