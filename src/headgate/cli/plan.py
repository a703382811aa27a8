"""`headgate plan FILE`: what `apply` would do."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headgate.cli.answers import Output, print_answer
from headgate.cli.engines import ask, engine_of, url_option
from headgate.cli.scripts import check_script, read_script
from headgate.cli.settings import project_option
from headgate.cli.tables import output_option


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
    with engine_of(project, url) as connected:
        status = print_answer(ask(connected.client, "/api/plan", text), output).status
    sys.exit(status)
