"""`headgate sql`: statements from the command line, a file or standard input, or a shell for them."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import click

from headgate.cli.answers import Output, print_answer
from headgate.cli.engines import Connected, engine_of, url_option
from headgate.cli.scripts import check_script, read_script
from headgate.cli.settings import project_option
from headgate.cli.tables import output_option

INTERRUPTED = 130
ONLY_NOW = (
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
    with engine_of(project, url) as connected:
        status = _send(connected, text, output)
    sys.exit(status)


def _send(connected: Connected, text: str, output: Output) -> int:
    try:
        with closing(connected.client.run(text)) as events:
            answered = print_answer(events, output)
    except KeyboardInterrupt:
        click.echo("cancelled", err=True)
        return INTERRUPTED
    if connected.started and answered.changed:
        click.secho(f"notice: {ONLY_NOW}", err=True, fg="yellow")
    return answered.status


def _open_shell(project: Path, url: str | None) -> None:
    from headgate.cli.shell.history import history_file
    from headgate.cli.shell.shell import Shell  # prompt_toolkit takes 0.2 s to import

    with engine_of(project, url) as connected:
        changed = Shell(connected.client, history_file(project.absolute(), url)).run()
    if connected.started and changed:
        click.secho(f"notice: {ONLY_NOW}", err=True, fg="yellow")
