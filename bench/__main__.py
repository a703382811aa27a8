"""`python -m bench`: every benchmark, or those named by `--only`, as tables on the terminal.

The exit status says whether they ran, never whether they were quick.
"""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bench import (
    by_id,
    catalog,
    changes,
    compatibility,
    decoding,
    delivery,
    given,
    language,
    mappers,
    pipeline,
    queries,
    realtime,
    sinks,
    statements,
    tasks,
    wide,
    world,
)
from bench.figures import Benchmark, Report, Row, Size

BENCHMARKS: dict[str, Benchmark] = {
    "language": language.run,
    "catalog": catalog.run,
    "mappers": mappers.run,
    "queries": queries.run,
    "statements": statements.run,
    "avro": compatibility.avro_library,
    "registry": compatibility.registry,
    "decoding": decoding.run,
    "by_id": by_id.run,
    "given": given.run,
    "wide": wide.run,
    "world": world.run,
    "pipeline": pipeline.run,
    "delivery": delivery.run,
    "sinks": sinks.run,
    "tasks": tasks.run,
    "realtime": realtime.run,
    "changes": changes.run,
}
WIDTH = 140


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(BENCHMARKS)), help="Run this one; may be repeated.")
@click.option("--small", is_flag=True, help="Few rounds and small inputs, to see that it runs.")
def main(only: tuple[str, ...], small: bool) -> None:
    """What Headgate promises, measured beside a peer in the same run."""
    # Where there is no terminal to ask for its width, tables would be cut to 80 columns.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    size: Size = "small" if small else "full"
    for name in only or BENCHMARKS:
        with console.status(f"measuring {name}"):
            report = BENCHMARKS[name](size)
        show(report, console)


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


if __name__ == "__main__":
    main()
