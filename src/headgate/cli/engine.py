"""The engine that a command talks to, and the script that it sends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import click
from rich.console import Console
from rich.status import Status

from headgate.cli.errors import ScriptUnreadable
from headgate.cli.main import exit_status
from headgate.cli.output import Output, print_diagnostic
from headgate.embedded.process import lifeline_command
from headgate.errors import HeadgateError
from headgate.serve.client import EngineClient, token_file
from headgate.serve.errors import EngineNotRunning, EngineUnreachable
from headgate.serve.process import started_engine
from headgate.serve.protocol import Done, Event, Failed, read_event
from headgate.sql.redact import redacted_diagnostic
from headgate.sql.script import decode_source, parse_script

TOKEN_VARIABLE = "HEADGATE_TOKEN"
LAZY_SPARK = {"HEADGATE_SPARK_EAGER": "false"}  # most commands need no Spark, which takes 10 s to start
SCRIPT_TIMEOUT = 600.0  # seconds to plan and do a whole script, which may create topics and schemas


def _checked_url(_: click.Context, __: click.Parameter, url: str | None) -> str | None:
    try:
        parts = urlsplit(url or "http://engine")
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise click.BadParameter("an address looks like http://127.0.0.1:8080")
    return url


url_option = click.option(
    "--url",
    metavar="URL",
    callback=_checked_url,
    help=f"Address of another engine. Its token is read from {TOKEN_VARIABLE}, or from the project folder.",
)


@dataclass(frozen=True, slots=True)
class ConnectedEngine:
    """An engine to send statements to. ``started``: it was started for this command and ends with it."""

    client: EngineClient
    started: bool = False


@contextmanager
def connect_engine(project: Path, url: str | None) -> Iterator[ConnectedEngine]:
    """Connect to the engine of a URL, or to that of the project. If the project has none, start one for the block."""
    folder = project.absolute()
    if url is not None:
        yield ConnectedEngine(EngineClient(url, _read_token(folder)))
        return
    if (client := _running_engine(folder)) is not None:
        yield ConnectedEngine(client)
        return
    with _close_uninterrupted() as stack:
        with _status("starting an engine"):
            engine = stack.enter_context(
                started_engine(folder, environment=LAZY_SPARK, prefix=lifeline_command(signal.SIGTERM))
            )
        yield ConnectedEngine(engine.client, started=True)


def _running_engine(folder: Path) -> EngineClient | None:
    try:
        return EngineClient.of_project(folder)
    except EngineNotRunning:
        return None


@contextmanager
def _close_uninterrupted() -> Iterator[ExitStack]:
    """A stack that Ctrl-C does not interrupt while it is closed. Otherwise the engine that it stops would be left behind."""
    stack = ExitStack()
    try:
        yield stack
    finally:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            with _status("stopping the engine"):
                stack.close()
        finally:
            signal.signal(signal.SIGINT, before)


def _status(message: str) -> Status:
    """A message with a spinner, on a terminal only. It disappears at the end of the block."""
    return Console(stderr=True).status(message)


def send_script(client: EngineClient, path: str, sql: str) -> Iterator[Event]:
    """Send a script to `/api/plan` or `/api/apply`, and yield its events. Raises EngineUnreachable and others."""
    response = client.send("POST", path, timeout=SCRIPT_TIMEOUT, json={"sql": sql})
    client.raise_for_status(response)
    last: Event | None = None
    for line in response.content.split(b"\n"):
        if line.strip():
            yield (last := read_event(line))
    if not isinstance(last, Done | Failed):
        raise EngineUnreachable(client.url, "its answer ended too early")


def _read_token(folder: Path) -> str:
    if TOKEN_VARIABLE in os.environ:
        return os.environ[TOKEN_VARIABLE]
    try:
        return token_file(folder).read_text("utf-8").strip()
    except OSError:
        return ""


def read_script(file: Path) -> str:
    """The text of a file, or of standard input for `-`. Raises ScriptUnreadable."""
    try:
        source = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise ScriptUnreadable(str(file), (error.strerror or type(error).__name__).lower()) from error
    return decode_source(source)


def check_script(text: str, output: Output) -> int:
    """Parse a script before an engine is started for it. Returns the number of statements.

    A syntax error is printed and ends the command.
    """
    try:
        return len(parse_script(text))
    except HeadgateError as error:
        exit_with(error, text, output)


def exit_with(error: HeadgateError, text: str, output: Output) -> NoReturn:
    """Print an error with its place in the script, secrets hidden, and exit."""
    print_diagnostic(redacted_diagnostic(error, text), output)
    sys.exit(exit_status(error))
