"""The command line of a set of benchmarks: `--only NAME`, `--small`, and reports as tables on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bench.figures import Benchmark, Report, Row, Size

WIDTH = 140


def command(benchmarks: Mapping[str, Benchmark], about: str) -> click.Command:
    @click.command(help=about)
    @click.option("--only", multiple=True, type=click.Choice(list(benchmarks)), help="Run this one; may be repeated.")
    @click.option("--small", is_flag=True, help="Few rounds and small inputs, to see that it runs.")
    def main(only: tuple[str, ...], small: bool) -> None:
        # Where there is no terminal to ask for its width, tables would be cut to 80 columns.
        console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
        size: Size = "small" if small else "full"
        for name in only or benchmarks:
            with console.status(f"measuring {name}"):
                report = benchmarks[name](size)
            show(report, console)

    return main


def show(report: Report, console: Console) -> None:
    table = Table("what", title=report.title, title_justify="left")
    for heading in ("ours", "peer", "ours / peer", "promised"):
        table.add_column(heading, justify="right")
    for row in report.rows:
        ratio = "–" if row.ratio is None else f"{row.ratio:.3g}"
        table.add_row(row.what, row.ours, row.peer, ratio, _promise(row))
    console.print(table)
    for note in report.notes:
        console.print(Padding(Text(note), (0, 0, 0, 2)))
    console.print()


def _promise(row: Row) -> str:
    match row.kept:
        case None:
            return row.promised
        case True:
            return f"[green]{row.promised}[/green]"
        case False:
            return f"[bold red]{row.promised}: MISSED[/bold red]"
