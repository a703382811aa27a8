"""The short commands: apply, plan, sql, catalog, doctor and world. Before them: the engine that they talk to, and their script."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click
from rich.console import Console
from rich.status import Status
from rich.text import Text

from headgate.cli.errors import ScriptUnreadable
from headgate.cli.main import exit_status
from headgate.cli.output import (
    Output,
    folder_option,
    output_option,
    print_answer,
    print_diagnostic,
    print_json,
    print_table,
)
from headgate.cli.settings import project_option, read_settings
from headgate.embedded.process import lifeline_command
from headgate.embedded.service import SERVICES, service_name
from headgate.embedded.supervisor import WorldStatus
from headgate.embedded.world import Progress, World
from headgate.errors import HeadgateError
from headgate.serve.client import EngineClient, start_engine, token_file
from headgate.serve.errors import EngineNotRunning, EngineUnreachable
from headgate.serve.protocol import Done, Event, Failed, read_event
from headgate.sql.redact import redacted_diagnostic
from headgate.sql.script import decode_source, parse_script

TOKEN_VARIABLE = "HEADGATE_TOKEN"
LAZY_SPARK = {"HEADGATE_SPARK_EAGER": "false"}  # most commands need no Spark, which takes 10 s to start
ENGINE_WAS_TEMPORARY = (
    "the engine ran only for this command, and tasks run only while an engine does: start one with `headgate serve`"
)
SCRIPT_TIMEOUT = 600.0  # seconds to plan and do a whole script, which may create topics and schemas


def _checked_url(_: click.Context, __: click.Parameter, url: str | None) -> str | None:
    """The value of `--url`, refused with an example if it is no address."""
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

    def warn_if_temporary(self, changed: bool) -> None:
        """Warn that what the command ``changed`` does not run on, if the engine ends with the command."""
        if self.started and changed:
            click.secho(f"notice: {ENGINE_WAS_TEMPORARY}", err=True, fg="yellow")


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
            prefix = lifeline_command(signal.SIGTERM)
            engine = stack.enter_context(start_engine(folder, environment=LAZY_SPARK, prefix=prefix))
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
    """The token of an engine with a URL: from the environment, otherwise from the project folder."""
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


def read_checked_script(file: Path, url: str | None, output: Output) -> str:
    """The text of a file. Without a URL it is parsed first, because an engine may have to be started for it."""
    text = read_script(file)
    if url is None:
        check_script(text, output)
    return text


def check_script(text: str, output: Output) -> int:
    """Parse a script before an engine is started for it. Returns the number of statements.

    A syntax error is printed and ends the command.
    """
    try:
        return len(parse_script(text))
    except HeadgateError as error:
        print_diagnostic(redacted_diagnostic(error, text), output)
        sys.exit(exit_status(error))


if TYPE_CHECKING:
    from headgate.embedded.doctor import Finding


script_argument = click.argument("file", type=click.Path(path_type=Path, allow_dash=True))


@click.command()
@script_argument
@project_option
@url_option
@output_option
def apply(file: Path, project: Path, url: str | None, output: Output) -> None:
    """Create and change objects so that the catalog has what the script FILE describes. A second run does nothing.

    Views, comments, secrets and the state of tasks are changed if they differ. If anything else differs, the error
    says which statement to write. Objects that the script does not name are left alone. The whole script is planned
    before any of it is done.
    """
    text = read_checked_script(file, url, output)
    with connect_engine(project, url) as connected:
        status = apply_script(connected, text, output)
    sys.exit(status)


def apply_script(connected: ConnectedEngine, text: str, output: Output, *, runs_on: bool = False) -> int:
    """Apply a script and return the exit status. ``runs_on`` means that the engine is not stopped afterwards."""
    result = print_answer(send_script(connected.client, "/api/apply", text), output)
    if not runs_on:
        connected.warn_if_temporary(result.changed)
    return result.status


@click.command()
@script_argument
@project_option
@url_option
@output_option
def plan(file: Path, project: Path, url: str | None, output: Output) -> None:
    """Show what `headgate apply FILE` would do, without doing it.

    One row per statement: the object, whether it would be created, changed or kept, its columns, and the topics and
    schemas that would be created.
    """
    text = read_checked_script(file, url, output)
    with connect_engine(project, url) as connected:
        status = print_answer(send_script(connected.client, "/api/plan", text), output).status
    sys.exit(status)


INTERRUPTED = 130  # the exit status that shells use after Ctrl-C


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True))
@click.option("-c", "--command", help="The statements themselves, instead of a file.")
@project_option
@url_option
@output_option
def sql(file: Path | None, command: str | None, project: Path, url: str | None, output: Output) -> None:
    """Send the statements of FILE (- is standard input) to the project's engine. Without FILE and -c, open a shell.

    The whole script is planned before any of it is done. If no engine runs, one is started for this command. The exit
    status tells the family of an error.
    """
    if file is not None and command is not None:
        raise click.UsageError("give a file or -c, not both")
    if file is None and command is None and sys.stdin.isatty():
        _open_shell(project, url)
        return
    text = read_script(file or Path("-")) if command is None else command
    if url is None and check_script(text, output) == 0:
        return
    with connect_engine(project, url) as connected:
        status = _send(connected, text, output)
    sys.exit(status)


def _send(connected: ConnectedEngine, text: str, output: Output) -> int:
    """Send statements and print their answer. Ctrl-C cancels them in the engine."""
    try:
        with closing(connected.client.run(text)) as events:
            result = print_answer(events, output)
    except KeyboardInterrupt:
        click.echo("cancelled", err=True)
        return INTERRUPTED
    connected.warn_if_temporary(result.changed)
    return result.status


def _open_shell(project: Path, url: str | None) -> None:
    from headgate.cli.shell import Shell, history_file

    with connect_engine(project, url) as connected:
        changed = Shell(connected.client, history_file(project.absolute(), url)).run()
    connected.warn_if_temporary(changed)


@click.group()
def catalog() -> None:
    """Work on a project's catalog while no engine runs."""


@catalog.command("change-key")
@project_option
def change_key(project: Path) -> None:
    """Encrypt every secret anew, with a new key.

    The new key replaces the one in the key file. If HEADGATE_SECRET_KEY is set, put the new key before the old one there
    first: secrets are then encrypted with the first key, and afterwards the old one can be removed.
    """
    # Imported here, because other commands do not open a catalog.
    from headgate.catalog.errors import CatalogUnreachable
    from headgate.catalog.secrets import EncryptedSecret
    from headgate.catalog.store.sqlite import SqliteStore

    path = project / ".headgate" / "catalog.db"
    if not path.exists():
        raise CatalogUnreachable(str(path), "there is no such file")
    with SqliteStore(path) as store:
        secrets = [s for s in store.load().secrets.values() if isinstance(s, EncryptedSecret)]
        if secrets:
            store.change_key()
    click.echo(f"{len(secrets)} secrets encrypted with the new key" if secrets else "there are no secrets")


COLOURS = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@click.command()
@project_option
@folder_option
@output_option
def doctor(project: Path, folder: str, output: str) -> None:
    """Check Python, Java, jars, ports, memory, disk and the world, and say how to repair what is wrong.

    The exit status is 1 if a check fails. Warnings do not count.
    """
    # Imported here, because it imports the clients of all services, which other commands do not need.
    from headgate.embedded.doctor import examine

    findings = list(examine(Path(folder), read_settings(project).spark.memory))
    if output == "json":
        print_json(findings)
    else:
        _print_findings(findings)
    sys.exit(1 if any(one.verdict == "fail" for one in findings) else 0)


def _print_findings(findings: list[Finding]) -> None:
    """Print the findings. The repair is a line of its own below its finding, because it is long."""
    rows: list[tuple[str | Text, str, str | Text]] = []
    for one in findings:
        rows.append((Text(one.verdict, COLOURS[one.verdict]), one.check, one.found))
        if one.repair:
            rows.append(("", "", Text(one.repair, "dim")))
    print_table(("", "check", "found"), rows)
    failed, warnings = (sum(one.verdict == verdict for one in findings) for verdict in ("fail", "warn"))
    click.echo(f"\n{len(findings)} checks, {failed} failed, {warnings} warnings")


@click.group()
def world() -> None:
    """Start, stop and show an embedded world: Kafka, a schema registry, PostgreSQL and OpenSearch in one folder."""


@world.command()
@click.argument("services", nargs=-1, metavar="[SERVICE]...")
@folder_option
@click.option(
    "--port", "ports", multiple=True, metavar="SERVICE=PORT", help="A fixed port. May be given more than once."
)
@output_option
def up(services: tuple[str, ...], folder: str, ports: tuple[str, ...], output: str) -> None:
    """Start services (kafka, registry, postgres, opensearch; all if none is named). They run until `down`."""
    fixed = dict(map(_read_port, ports))
    names = [service_name(one) for one in services] or list(SERVICES)
    with _progress() as progress, World.open(folder, progress) as opened:
        for name, port in fixed.items():
            opened.start(name, port=port)
        opened.start(*names)
        status = opened.pin()
    _print_status(status, output)


@world.command()
@folder_option
def down(folder: str) -> None:
    """Stop a world, even if other commands use it. Its data stays."""
    if World.running(folder) is None:
        click.echo(f"no world runs in {folder}")
        return
    with _progress() as progress, World.open(folder) as opened:
        progress("stopping")
        opened.shut_down()
    click.echo(f"stopped; the data stays in {folder}")


@world.command()
@folder_option
@output_option
def status(folder: str, output: str) -> None:
    """Show the services of a world. The exit status is 1 if no world runs in the folder."""
    found = World.running(folder)
    if found is None:
        click.echo("null" if output == "json" else f"no world runs in {folder}")
        sys.exit(1)
    _print_status(found, output)


def _read_port(written: str) -> tuple[str, int]:
    name, _, port = written.partition("=")
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise click.BadParameter(f'"{written}" is not SERVICE=PORT', param_hint="--port")
    return service_name(name), int(port)


def _print_status(status: WorldStatus, output: str) -> None:
    if output == "json":
        print_json(status)
        return
    print_table(
        ("service", "state", "address", "pid"),
        [(one.service, one.state, one.address or "", str(one.pid or "")) for one in status.services],
    )
    until = "until `headgate world down`" if status.pinned else f"while a command uses it ({status.leases} now)"
    click.echo(f"\n{status.folder} runs {until}\nlogs: {Path(status.folder) / 'logs'}")
    if any(one.service == "postgres" and one.pid for one in status.services):
        click.echo(f"PostgreSQL's password: {Path(status.folder) / 'secrets' / 'postgres'}")


@contextmanager
def _progress() -> Iterator[Progress]:
    """Shows progress: on a terminal in one line that disappears, otherwise line by line."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda line: click.echo(line, err=True)
        return
    with console.status("opening the world") as shown:
        yield lambda line: shown.update(line)
