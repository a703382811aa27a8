"""`headgate apply FILE`: a script as desired state."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headgate.cli.answers import Output, print_answer
from headgate.cli.engines import Connected, ask, engine_of, url_option
from headgate.cli.scripts import check_script, read_script
from headgate.cli.settings import project_option
from headgate.cli.sql import ONLY_NOW
from headgate.cli.tables import output_option


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
    with engine_of(project, url) as connected:
        status = apply_script(connected, text, output)
    sys.exit(status)


def apply_script(connected: Connected, text: str, output: Output, *, runs_on: bool = False) -> int:
    """The exit status. ``runs_on`` if the engine runs on after this."""
    answered = print_answer(ask(connected.client, "/api/apply", text), output)
    if connected.started and answered.changed and not runs_on:
        click.secho(f"notice: {ONLY_NOW}", err=True, fg="yellow")
    return answered.status
