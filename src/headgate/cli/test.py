"""`headgate test`: run executable specs."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path

import click

from headgate.testing.environment import SpecEnvironment, open_environment
from headgate.testing.parse import read_duration
from headgate.testing.report import Outcome, junit, summary
from headgate.testing.run import Settings, find_specs, read_spec, run_files


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
@click.option("--timeout", default="60s", show_default=True, help="How long a step may take to hold.")
@click.option(
    "--jobs",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="How many files run side by side, each with services and an engine of its own.",
)
@click.option("--filter", "word", metavar="WORD", help="Only files whose path has this word.")
@click.option("--rewrite", is_flag=True, help="Write the actual results into the files.")
@click.option("--junit", "report", metavar="FILE", type=click.Path(path_type=Path), help="Write a JUnit file, too.")
@click.option(
    "--keep",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep all folders and logs there.",
)
def test(
    paths: tuple[Path, ...],
    timeout: str,
    jobs: int,
    word: str | None,
    rewrite: bool,
    report: Path | None,
    keep: Path | None,
) -> None:
    """Run executable specs: files, or folders with files whose names end in .spec.

    The run starts a world and an engine of its own. The exit status is 0 only if there was a file and all passed.
    """
    settings = Settings(read_duration(timeout), rewrite, jobs)
    files = [read_spec(path) for path in find_specs(paths, word)]
    outcomes: dict[str, Outcome] = {}
    if files:
        for outcome in run_files(files, settings, lambda job: _open_job(job, jobs, keep)):
            outcomes[outcome.path] = outcome
            _show(outcome)
    in_order = [outcomes[str(file.path)] for file in files]
    if report is not None:
        report.write_bytes(junit(in_order))
    click.echo(summary(in_order))
    sys.exit(0 if in_order and all(one.passed for one in in_order) else 1)


def _open_job(job: int, jobs: int, keep: Path | None) -> AbstractContextManager[SpecEnvironment]:
    """The environment of one job. With several jobs, each has a folder of its own, and its progress lines are labelled."""
    if jobs == 1:
        return open_environment(keep, lambda line: click.echo(line, err=True))
    folder = None if keep is None else keep / f"job-{job}"
    return open_environment(folder, lambda line: click.echo(f"job {job}: {line}", err=True))


def _show(outcome: Outcome) -> None:
    verdict = click.style("ok", fg="green") if outcome.passed else click.style("FAILED", fg="red", bold=True)
    changed = f", {outcome.rewritten} rewritten" if outcome.rewritten else ""
    click.echo(f"{verdict} {outcome.path} ({outcome.seconds:.1f} s{changed})")
    for failure in outcome.failures:
        click.echo(failure.render())
