"""A small real service, so that starting, stopping and dying can be tested in milliseconds."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from headgate.embedded.host import LOOPBACK, answers, own_folder
from headgate.embedded.process import Launch
from headgate.embedded.service import Launches, Needs, ServiceName, Site

SERVE = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    server.accept()[0].close()
"""


NEEDS = Needs(("toy",), memory=1, disk=1, patience=30, grace=5)


@dataclass
class Toy:
    """Listens and accepts; with another program it does what that does."""

    program: str = SERVE
    first: str | None = None
    name: ServiceName = "registry"
    needs: Needs = NEEDS

    def prepare(self, site: Site) -> Launches:
        own_folder(site.data, None)
        return Launches(self._run(self.program, site), self._run(self.first, site) if self.first else None)

    def answers(self, site: Site) -> bool:
        return answers(site.port)

    def settle(self, site: Site) -> None:
        pass

    def address(self, site: Site) -> str:
        return f"{LOOPBACK}:{site.port}"

    public_address = address

    def _run(self, program: str, site: Site) -> Launch:
        return Launch((sys.executable, "-I", "-S", "-c", program, str(site.port)), site.data)
