"""`headgate test`: run executable specs. And the engine process of such a run: `python -m headgate.cli.test`.

The engine process leaves one project for the next, so that Spark starts once for a run. The runner
(`headgate.testing.environment`) starts it with a socket, the home folder and the first project. Each line that comes over
the socket is the next project; the answer is a line that is empty, or says why the project could not be opened. When the
runner closes its end, the engine stops in order.
"""

from __future__ import annotations

import logging
import socket
import sys
import threading
from contextlib import AbstractContextManager
from pathlib import Path

import click

from headgate.cli.serve import EngineServer, Worlds, listen, replace_process, set_up_logging
from headgate.cli.settings import read_settings
from headgate.control.engine import Project
from headgate.testing.environment import MODULE, SpecEnvironment, SpecProject, open_environment
from headgate.testing.parse import read_duration
from headgate.testing.run import Outcome, Settings, find_specs, junit, read_spec, run_files, summary


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
    "--keep", metavar="DIR", type=click.Path(path_type=Path, file_okay=False), help="Keep all folders and logs there."
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


log = logging.getLogger(__name__)


def main(descriptor: str, home: str, first: str) -> None:
    """The engine process. ``descriptor`` is the socket to the runner, ``home`` the folder of logs and warehouse."""
    folder, current = Path(home), [SpecProject.read(first)]
    settings = read_settings(folder)
    set_up_logging(settings, folder)
    with socket.socket(fileno=int(descriptor)) as commands, Worlds() as worlds, listen(0) as bound:
        served = EngineServer(folder, settings, _opened(worlds, current[0]), urgent_queries=True)
        following = threading.Thread(target=follow, args=(commands, served, worlds, current), daemon=True)
        following.start()
        spark_died = served.run(bound)
        if spark_died:  # the next process goes on with the same project and the same socket
            replace_process((sys.executable, "-m", MODULE, descriptor, home, current[0].write()))


def follow(commands: socket.socket, served: EngineServer, worlds: Worlds, current: list[SpecProject]) -> None:
    """Open the projects that the runner names. ``current`` holds the one that is open."""
    with commands.makefile("r", encoding="utf-8") as lines:
        for line in lines:
            project = SpecProject.read(line)
            try:
                served.open_project(_opened(worlds, project))
            except Exception as error:
                log.exception("could not open the project of a spec")
                reason = f"{type(error).__name__}: {error}"
            else:
                current[0], reason = project, ""
            commands.sendall(" ".join(reason.split()).encode() + b"\n")
    served.stop()


def _opened(worlds: Worlds, project: SpecProject) -> Project:
    return worlds.project(project.folder, project.world, project.postgres_database)


if __name__ == "__main__":
    main(*sys.argv[1:])
