"""The short commands: apply, plan, sql, catalog and doctor."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from headgate.cli.engine import (
    ConnectedEngine,
    check_script,
    connect_engine,
    read_script,
    send_script,
    url_option,
)
from headgate.cli.output import Output, folder_option, output_option, print_answer, print_json, print_table
from headgate.cli.settings import project_option, read_settings

if TYPE_CHECKING:
    from headgate.embedded.doctor import Finding


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@project_option
@url_option
@output_option
def apply(file: Path, project: Path, url: str | None, output: Output) -> None:
    """Create and change objects so that the catalog has what the script FILE describes. A second run does nothing.

    Views, comments, secrets and the state of tasks are changed if they differ. If anything else differs, the error
    says which statement to write. Objects that the script does not name are left alone. The whole script is planned
    before any of it is done.
    """
    text = read_script(file)
    if url is None:
        check_script(text, output)
    with connect_engine(project, url) as connected:
        status = apply_script(connected, text, output)
    sys.exit(status)


def apply_script(connected: ConnectedEngine, text: str, output: Output, *, runs_on: bool = False) -> int:
    """Apply a script and return the exit status. ``runs_on`` means that the engine is not stopped afterwards."""
    result = print_answer(send_script(connected.client, "/api/apply", text), output)
    if connected.started and result.changed and not runs_on:
        click.secho(f"notice: {ENGINE_WAS_TEMPORARY}", err=True, fg="yellow")
    return result.status


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@project_option
@url_option
@output_option
def plan(file: Path, project: Path, url: str | None, output: Output) -> None:
    """Show what `headgate apply FILE` would do, without doing it.

    One row per statement: the object, whether it would be created, changed or kept, its columns, and the topics and
    schemas that would be created.
    """
    text = read_script(file)
    if url is None:
        check_script(text, output)
    with connect_engine(project, url) as connected:
        status = print_answer(send_script(connected.client, "/api/plan", text), output).status
    sys.exit(status)


INTERRUPTED = 130  # the exit status that shells use after Ctrl-C
ENGINE_WAS_TEMPORARY = (
    "the engine ran only for this command, and tasks run only while an engine does: start one with `headgate serve`"
)


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
    try:
        with closing(connected.client.run(text)) as events:
            result = print_answer(events, output)
    except KeyboardInterrupt:
        click.echo("cancelled", err=True)
        return INTERRUPTED
    if connected.started and result.changed:
        click.secho(f"notice: {ENGINE_WAS_TEMPORARY}", err=True, fg="yellow")
    return result.status


def _open_shell(project: Path, url: str | None) -> None:
    from headgate.cli.shell import Shell, history_file

    with connect_engine(project, url) as connected:
        changed = Shell(connected.client, history_file(project.absolute(), url)).run()
    if connected.started and changed:
        click.secho(f"notice: {ENGINE_WAS_TEMPORARY}", err=True, fg="yellow")


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
        _show(findings)
    sys.exit(1 if any(one.verdict == "fail" for one in findings) else 0)


def _show(findings: list[Finding]) -> None:
    """Print the findings. The repair is a line of its own below its finding, because it is long."""
    rows: list[tuple[str | Text, str, str | Text]] = []
    for one in findings:
        rows.append((Text(one.verdict, COLOURS[one.verdict]), one.check, one.found))
        if one.repair:
            rows.append(("", "", Text(one.repair, "dim")))
    print_table(("", "check", "found"), rows)
    failed, warnings = (sum(one.verdict == verdict for one in findings) for verdict in ("fail", "warn"))
    click.echo(f"\n{len(findings)} checks, {failed} failed, {warnings} warnings")
