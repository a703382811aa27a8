"""`python -m headgate.registry.server --data DIR --port N [--host H] [--user-file F]`

Prints its address on standard output and listens until SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import logging
import socket
import sys
from contextlib import closing
from pathlib import Path

import uvicorn

from headgate.errors import HeadgateError
from headgate.registry.server.errors import OpenToTheNetwork, PortTaken
from headgate.registry.server.requests import Users, read_users
from headgate.registry.server.routes import create_app
from headgate.registry.server.store import Store
from headgate.registry.transport import is_loopback


def main(arguments: list[str] | None = None) -> int:
    """Run the registry until a signal. Returns the exit status."""
    asked = _parser().parse_args(arguments)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s", level=logging.INFO)
    try:
        known = read_users(asked.user_file) if asked.user_file is not None else Users()
        if not known.by_name and not is_loopback(asked.host):
            raise OpenToTheNetwork(asked.host)
        with listen(asked.host, asked.port) as listening, closing(Store(asked.data)) as store:
            serve(store, known, listening)
    except HeadgateError as failure:
        sys.stderr.write(failure.diagnostic().render() + "\n")
        return 1
    return 0


def serve(store: Store, known: Users, listening: socket.socket) -> None:
    host, port = listening.getsockname()[:2]
    sys.stdout.write(f"registry listens on http://{host}:{port}\n")
    sys.stdout.flush()
    config = uvicorn.Config(create_app(store, users=known), log_level="warning", access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Port 0 takes any free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's delay off only if the protocol is named. With the delay every answer takes 40 ms more.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)
    except OSError as failure:
        listening.close()
        raise PortTaken(host, port) from failure
    return listening


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="headgate.registry.server", description="Headgate's schema registry.")
    parser.add_argument("--data", type=Path, required=True, help="folder of the registry's data")
    parser.add_argument("--port", type=int, required=True, help="0 takes any free port")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--user-file", type=Path, help="users and passwords; without it the registry is open")
    return parser


if __name__ == "__main__":
    sys.exit(main())
