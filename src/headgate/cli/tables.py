"""Tables for people, and the same rows as JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPED_WIDTH = 160  # without a terminal there is no width to keep to, and a cut address is of no use


def console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=PIPED_WIDTH)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> None:
    """Cells are printed as they are; one with a colour is a Text."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    console().print(table)


def print_json(value: Any) -> None:
    """A dataclass, or a list of them."""
    plain = (
        [dataclasses.asdict(one) for one in value] if isinstance(value, list) else dataclasses.asdict(value)
    )
    click.echo(json.dumps(plain, indent=2))


output_option = click.option(
    "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="How to print."
)
folder_option = click.option(
    "--folder",
    type=click.Path(file_okay=False),
    default=".headgate/world",
    show_default=True,
    envvar="HEADGATE_WORLD",
    show_envvar=True,
    help="The world's folder.",
)
