"""`headgate test`: run executable specs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headgate.testing.environment import open_environment
from headgate.testing.parse import read_duration
from headgate.testing.report import Outcome, junit, summary
from headgate.testing.run import Settings, find_specs, run_specs


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
@click.option("--timeout", default="60s", show_default=True, help="How long a step may take to hold.")
@click.option("--filter", "word", metavar="WORD", help="Only files whose path has this word.")
@click.option("--rewrite", is_flag=True, help="Write the actual results into the files.")
@click.option(
    "--junit", "report", metavar="FILE", type=click.Path(path_type=Path), help="Write a JUnit file, too."
)
@click.option(
    "--keep",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep all folders and logs there.",
)
def test(
    paths: tuple[Path, ...],
    timeout: str,
    word: str | None,
    rewrite: bool,
    report: Path | None,
    keep: Path | None,
) -> None:
    """Run executable specs: files, or folders with files whose names end in .spec.

    A world of its own and an engine are started for the run. The exit status is 0 only if there was a file and all passed.
    """
    settings = Settings(read_duration(timeout), rewrite)
    specs = find_specs(paths, word)
    outcomes: list[Outcome] = []
    if specs:
        with open_environment(keep, lambda line: click.echo(line, err=True)) as house:
            for outcome in run_specs(specs, house, settings):
                outcomes.append(outcome)
                _show(outcome)
    if report is not None:
        report.write_bytes(junit(outcomes))
    click.echo(summary(outcomes))
    sys.exit(0 if outcomes and all(one.passed for one in outcomes) else 1)


def _show(outcome: Outcome) -> None:
    verdict = click.style("ok", fg="green") if outcome.passed else click.style("FAILED", fg="red", bold=True)
    changed = f", {outcome.rewritten} rewritten" if outcome.rewritten else ""
    click.echo(f"{verdict} {outcome.path} ({outcome.seconds:.1f} s{changed})")
    for failure in outcome.failures:
        click.echo(failure.render())
