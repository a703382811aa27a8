"""`headgate world up | down | status`: an embedded world without an engine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console

from headgate.cli.output import folder_option, output_option, print_json, print_table
from headgate.embedded.service import SERVICES, service_name
from headgate.embedded.supervisor import WorldStatus
from headgate.embedded.world import Progress, World


@click.group()
def world() -> None:
    """Start, stop and show an embedded world: Kafka, a schema registry, PostgreSQL and OpenSearch in one folder."""


@world.command()
@click.argument("services", nargs=-1, metavar="[SERVICE]...")
@folder_option
@click.option(
    "--port", "ports", multiple=True, metavar="SERVICE=PORT", help="A fixed port. May be given more than once."
)
@output_option
def up(services: tuple[str, ...], folder: str, ports: tuple[str, ...], output: str) -> None:
    """Start services (kafka, registry, postgres, opensearch; all if none is named). They run until `down`."""
    fixed = dict(map(_read_port, ports))
    names = [service_name(one) for one in services] or list(SERVICES)
    with _progress() as progress, World.open(folder, progress) as opened:
        for name, port in fixed.items():
            opened.start(name, port=port)
        opened.start(*names)
        status = opened.pin()
    _show(status, output)


@world.command()
@folder_option
def down(folder: str) -> None:
    """Stop a world, even if other commands use it. Its data stays."""
    if World.running(folder) is None:
        click.echo(f"no world runs in {folder}")
        return
    with _progress() as progress, World.open(folder) as opened:
        progress("stopping")
        opened.shut_down()
    click.echo(f"stopped; the data stays in {folder}")


@world.command()
@folder_option
@output_option
def status(folder: str, output: str) -> None:
    """Show the services of a world. The exit status is 1 if no world runs in the folder."""
    found = World.running(folder)
    if found is None:
        click.echo("null" if output == "json" else f"no world runs in {folder}")
        sys.exit(1)
    _show(found, output)


def _read_port(written: str) -> tuple[str, int]:
    name, _, port = written.partition("=")
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise click.BadParameter(f'"{written}" is not SERVICE=PORT', param_hint="--port")
    return service_name(name), int(port)


def _show(status: WorldStatus, output: str) -> None:
    if output == "json":
        print_json(status)
        return
    print_table(
        ("service", "state", "address", "pid"),
        [(one.service, one.state, one.address or "", str(one.pid or "")) for one in status.services],
    )
    until = "until `headgate world down`" if status.pinned else f"while a command uses it ({status.leases} now)"
    click.echo(f"\n{status.folder} runs {until}\nlogs: {Path(status.folder) / 'logs'}")
    if any(one.service == "postgres" and one.pid for one in status.services):
        click.echo(f"PostgreSQL's password: {Path(status.folder) / 'secrets' / 'postgres'}")


@contextmanager
def _progress() -> Iterator[Progress]:
    """Shows progress: on a terminal in one line that disappears, otherwise line by line."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda line: click.echo(line, err=True)
        return
    with console.status("opening the world") as shown:
        yield lambda line: shown.update(line)
