"""The short commands: apply, plan, sql and doctor."""

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
from headgate.cli.settings import project_option

if TYPE_CHECKING:
    from headgate.embedded.doctor import Finding


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@project_option
@url_option
@output_option
def apply(file: Path, project: Path, url: str | None, output: Output) -> None:
    """Make what the script FILE describes. What is there as it says is left alone; a second run does nothing.

    Views, comments, secrets and the state of tasks are changed where they differ; for anything else that differs,
    the error says which statement to write. Objects that the script does not name are left alone. The script is
    planned as a whole before anything of it is done.
    """
    text = read_script(file)
    if url is None:
        check_script(text, output)
    with connect_engine(project, url) as connected:
        status = apply_script(connected, text, output)
    sys.exit(status)


def apply_script(connected: ConnectedEngine, text: str, output: Output, *, runs_on: bool = False) -> int:
    """The exit status. ``runs_on`` if the engine runs on after this."""
    answered = print_answer(send_script(connected.client, "/api/apply", text), output)
    if connected.started and answered.changed and not runs_on:
        click.secho(f"notice: {ENGINE_WAS_TEMPORARY}", err=True, fg="yellow")
    return answered.status


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@project_option
@url_option
@output_option
def plan(file: Path, project: Path, url: str | None, output: Output) -> None:
    """Show what `headgate apply FILE` would do, and do nothing.

    One row per statement: the object, whether it is created, changed or kept as it is, its columns, and the topics
    and schemas that would be made.
    """
    text = read_script(file)
    if url is None:
        check_script(text, output)
    with connect_engine(project, url) as connected:
        status = print_answer(send_script(connected.client, "/api/plan", text), output).status
    sys.exit(status)


INTERRUPTED = 130
ENGINE_WAS_TEMPORARY = (
    "the engine ran for the time of this command only; what was created runs while an engine does: "
    "start one with `headgate serve`"
)


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True))
@click.option("-c", "--command", help="The statements themselves, instead of a file.")
@project_option
@url_option
@output_option
def sql(file: Path | None, command: str | None, project: Path, url: str | None, output: Output) -> None:
    """Send the statements of FILE (- is standard input) to the project's engine; without any, open a shell.

    A script is planned as a whole before anything of it is done. If no engine runs, one is started for the time of
    the command. The exit status tells the family of an error.
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
            answered = print_answer(events, output)
    except KeyboardInterrupt:
        click.echo("cancelled", err=True)
        return INTERRUPTED
    if connected.started and answered.changed:
        click.secho(f"notice: {ENGINE_WAS_TEMPORARY}", err=True, fg="yellow")
    return answered.status


def _open_shell(project: Path, url: str | None) -> None:
    from headgate.cli.shell import Shell, history_file

    with connect_engine(project, url) as connected:
        changed = Shell(connected.client, history_file(project.absolute(), url)).run()
    if connected.started and changed:
        click.secho(f"notice: {ENGINE_WAS_TEMPORARY}", err=True, fg="yellow")


COLOURS = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@click.command()
@folder_option
@output_option
def doctor(folder: str, output: str) -> None:
    """Check Python, Java, jars, ports, memory, disk and a world, and say how to repair what is wrong.

    The exit status is 1 if a check fails; a warning does not count.
    """
    # Imports the clients of every service, which the other commands do not need.
    from headgate.embedded.doctor import examine

    findings = list(examine(Path(folder)))
    if output == "json":
        print_json(findings)
    else:
        _show(findings)
    sys.exit(1 if any(one.verdict == "fail" for one in findings) else 0)


def _show(findings: list[Finding]) -> None:
    """A repair stands under its finding, where it has room."""
    rows: list[tuple[str | Text, str, str | Text]] = []
    for one in findings:
        rows.append((Text(one.verdict, COLOURS[one.verdict]), one.check, one.found))
        if one.repair:
            rows.append(("", "", Text(one.repair, "dim")))
    print_table(("", "check", "found"), rows)
    worst = [sum(one.verdict == verdict for one in findings) for verdict in ("fail", "warn")]
    click.echo(f"\n{len(findings)} checks, {worst[0]} failed, {worst[1]} warnings")
