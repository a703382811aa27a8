"""The engine process of `headgate test`: it leaves one project for the next, so that Spark starts once for a run.

The runner starts it (`headgate.testing.engine`) with a socket, the home folder and the first project. Each line that
comes over the socket is the next project; the answer is a line that is empty, or says why the project could not be
opened. When the runner closes its end, the engine stops in order.
"""

from __future__ import annotations

import logging
import socket
import sys
import threading
from pathlib import Path

from headgate.cli.serve import EngineServer, Worlds, listen, replace_process, set_up_logging
from headgate.cli.settings import read_settings
from headgate.control.engine import Project
from headgate.testing.engine import MODULE, SpecProject

log = logging.getLogger(__name__)


def main(descriptor: str, home: str, first: str) -> None:
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
