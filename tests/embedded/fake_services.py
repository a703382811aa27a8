"""A small real service that starts, stops and dies within milliseconds."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from headgate.embedded.host import LOOPBACK, accepts_connections, private_folder
from headgate.embedded.process import Command
from headgate.embedded.service import Commands, Placement, Requirements, ServiceName

SERVE = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    server.accept()[0].close()
"""


REQUIREMENTS = Requirements(("fake",), memory=1, disk=1, start_timeout=30, stop_timeout=5)


@dataclass
class FakeService:
    """A service that accepts connections, or runs any other Python program."""

    program: str = SERVE
    setup: str | None = None
    name: ServiceName = "registry"
    requirements: Requirements = REQUIREMENTS

    def prepare(self, placement: Placement) -> Commands:
        private_folder(placement.data, None)
        setup = self._run(self.setup, placement) if self.setup else None
        return Commands(self._run(self.program, placement), setup)

    def is_ready(self, placement: Placement) -> bool:
        return accepts_connections(placement.port)

    def after_start(self, placement: Placement) -> None:
        pass

    def address(self, placement: Placement) -> str:
        return f"{LOOPBACK}:{placement.port}"

    public_address = address

    def _run(self, program: str, placement: Placement) -> Command:
        return Command((sys.executable, "-I", "-S", "-c", program, str(placement.port)), placement.data)
