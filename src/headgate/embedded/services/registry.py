"""Headgate's own schema registry, as a process of its own."""

from __future__ import annotations

import sys

from headgate.embedded.host import LOOPBACK, get, own_folder
from headgate.embedded.process import Launch
from headgate.embedded.service import Launches, Needs, ServiceName, Site


class Registry:
    name: ServiceName = "registry"
    needs = Needs(("registry",), memory=100, disk=50, patience=60, grace=5)

    def prepare(self, site: Site) -> Launches:
        own_folder(site.data, site.user)
        program = (sys.executable, "-m", "headgate.registry.server")
        options = ("--data", str(site.data), "--port", str(site.port))
        return Launches(Launch((*program, *options), site.data, site.user))

    def answers(self, site: Site) -> bool:
        found = get(site.port, "/subjects")
        return found is not None and found[0] == 200

    def settle(self, site: Site) -> None:
        """Nothing: it is ready as it is."""

    def address(self, site: Site) -> str:
        return f"http://{LOOPBACK}:{site.port}"

    public_address = address
