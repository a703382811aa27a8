"""`headgate doctor`: is all there that Headgate needs, and if not, how to repair it."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.text import Text

from headgate.cli.tables import folder_option, output_option, print_json, print_table
from headgate.embedded.doctor import Finding, examine

COLOURS = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@click.command()
@folder_option
@output_option
def doctor(folder: str, output: str) -> None:
    """Check Python, Java, jars, ports, memory, disk and a world, and say how to repair what is wrong.

    The exit status is 1 if a check fails; a warning does not count.
    """
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
