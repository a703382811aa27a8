"""The world folder: its files, its lock, and the places outside of it that belong to it.

    world.json        layout version, id, and the port of each service
    lock              locked by the supervisor; contains its process id
    supervisor.json   process and socket of the supervisor while it runs
    processes.json    processes of the services, so that they can be killed after a crash
    secrets/          PostgreSQL's password
    logs/             one log per service, and the supervisor's
    kafka/ registry/ postgres/ opensearch/    data of the services

Under root, the data of services that run as another user is in ROOT_DATA/<id of the world>, because another user often
cannot enter the folders of root. A file `owner` there names the world folder. So the data of a world folder that was
deleted can be found and removed, and a copy of a world folder does not share the data of the original.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import socket
import stat
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headgate.embedded.errors import WorldFolderUnusable, WorldOfOtherVersion
from headgate.embedded.host import private_file, private_folder
from headgate.embedded.process import ProcessId

LAYOUT = 1  # version of the files in a world folder
ROOT_DATA = Path("/var/lib/headgate/worlds")


@dataclass(frozen=True, slots=True)
class WorldFolder:
    """A folder that holds a world. Create one with ``open_folder``.

    ``state`` is the folder for the data that all worlds of root have outside of their folders.
    """

    path: Path
    state: Path = ROOT_DATA

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def secrets(self) -> Path:
        return self.path / "secrets"

    def log(self, service: str) -> Path:
        return self.logs / f"{service}.log"

    @property
    def id(self) -> str:
        """The id of the world. Empty if the folder was removed."""
        return str(self._read("world.json").get("id", ""))

    def ports(self) -> dict[str, int]:
        """The last port of each service, by the names of ``Requirements.ports``."""
        found = self._read("world.json").get("ports", {})
        return {str(name): int(port) for name, port in found.items()} if isinstance(found, dict) else {}

    def remember_port(self, name: str, port: int) -> None:
        self._write("world.json", {**self._read("world.json"), "ports": {**self.ports(), name: port}})

    def processes(self) -> dict[str, ProcessId]:
        """The processes that the last supervisor recorded. They may have ended."""
        return {
            name: ProcessId(int(found["pid"]), float(found["started"]))
            for name, found in self._read_own("processes.json").items()
            if isinstance(found, dict)
        }

    def remember_processes(self, processes: dict[str, ProcessId]) -> None:
        values = {name: {"pid": one.pid, "started": one.started} for name, one in processes.items()}
        self._write_own("processes.json", dict(values))

    def supervisor(self) -> tuple[ProcessId, Path] | None:
        """The recorded process and socket of the supervisor. It may have ended."""
        found = self._read_own("supervisor.json")
        try:
            return ProcessId(int(str(found["pid"])), float(str(found["started"]))), Path(str(found["socket"]))
        except (KeyError, ValueError):
            return None

    def remember_supervisor(self, process: ProcessId, socket: Path) -> None:
        value = {"pid": process.pid, "started": process.started, "socket": str(socket)}
        self._write_own("supervisor.json", value)

    def forget_supervisor(self) -> None:
        (self.path / "supervisor.json").unlink(missing_ok=True)

    def data(self, service: str, as_other_user: bool) -> Path:
        """The data folder of a service."""
        return self.root_data_folder / service if as_other_user else self.path / service

    @property
    def root_data_folder(self) -> Path:
        """The folder outside of the world folder with the data of services that run as another user."""
        return self.state / self.id

    def create_world_file(self) -> None:
        """Write the first world.json. If two processes do so at once, one wins and both use its file."""
        fresh = self.path / f"world.json.{os.getpid()}.{threading.get_ident()}"
        private_file(fresh, json.dumps({"layout": LAYOUT, "id": str(uuid.uuid4()), "ports": {}}, indent=2) + "\n", None)
        with suppress(FileExistsError):
            os.link(fresh, self.path / "world.json")
        fresh.unlink()

    def renew_id(self) -> None:
        self._write("world.json", {**self._read("world.json"), "id": str(uuid.uuid4())})

    def _read(self, name: str) -> dict[str, object]:
        try:
            found = json.loads((self.path / name).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _read_own(self, name: str) -> dict[str, object]:
        """Read a file that ``_write_own`` wrote in this very folder; empty otherwise.

        The copy of a running world has files that name the processes of the original. They must not be used or killed.
        """
        found = self._read(name)
        return found if found.get("folder", str(self.path)) == str(self.path) else {}

    def _write_own(self, name: str, value: dict[str, object]) -> None:
        self._write(name, {**value, "folder": str(self.path)})

    def _write(self, name: str, value: dict[str, object]) -> None:
        """Replace the file atomically: after a kill in between, the old file is still whole."""
        fresh = private_file(self.path / f"{name}.{os.getpid()}", json.dumps(value, indent=2) + "\n", None)
        fresh.replace(self.path / name)


def open_folder(path: Path, state: Path = ROOT_DATA) -> WorldFolder:
    """Open the world folder, and create the world if there is none. A new world needs an empty folder.

    Raises WorldFolderUnusable and WorldOfOtherVersion.
    """
    path = path.absolute()
    folder = WorldFolder(path.resolve(), state)
    try:
        _make(folder)
    except OSError as error:
        raise WorldFolderUnusable(str(path), (error.strerror or str(error)).lower()) from error
    found = folder._read("world.json").get("layout")
    if found != LAYOUT:
        raise WorldOfOtherVersion(str(path), found if isinstance(found, int) else 0, LAYOUT)
    return folder


def _make(folder: WorldFolder) -> None:
    """Create the files of a new world, and the folders that every world needs."""
    if not (folder.path / "world.json").exists():
        folder.path.mkdir(parents=True, exist_ok=True)
        _check_no_other_files(folder.path)
        folder.path.chmod(0o700)
        (folder.path / ".gitignore").write_text("*\n")
        folder.create_world_file()
    private_folder(folder.logs, None)
    private_folder(folder.secrets, None)


def _check_no_other_files(path: Path) -> None:
    ours = ("lock", "logs", "secrets", ".gitignore")
    others = sorted(one.name for one in path.iterdir() if one.name not in ours and "world.json" not in one.name)
    if others:
        raise WorldFolderUnusable(str(path), f'it is no world and has other files, such as "{others[0]}"')


def lock_folder(folder: WorldFolder) -> int | None:
    """Lock the folder. Returns the descriptor of the lock, or None if another process has the lock.

    The supervisor never closes the descriptor, so the lock lives as long as its process. Waiting for the lock means
    waiting for the old supervisor to exit.
    """
    held = os.open(folder.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        return None
    os.ftruncate(held, 0)
    os.write(held, str(os.getpid()).encode())
    return held


def lock_holder(folder: WorldFolder) -> int | None:
    """The pid that the holder of the lock wrote into the file."""
    try:
        return int((folder.path / "lock").read_text())
    except (OSError, ValueError):
        return None


def is_locked(folder: WorldFolder) -> bool:
    """Whether a supervisor holds the lock."""
    try:
        with (folder.path / "lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def register_root_data(folder: WorldFolder, supervisor: ProcessId) -> None:
    """Create the world's data folder outside of its folder, and write who owns it.

    A world folder that is a copy gets a new id, and so starts without that data. One that was moved keeps it.
    """
    owner = _owner(folder.root_data_folder)
    if owner is not None and owner != folder.path and WorldFolder(owner, folder.state).id == folder.id:
        folder.renew_id()
    try:
        folder.root_data_folder.mkdir(parents=True, exist_ok=True)
        owner_ = {"folder": str(folder.path), "pid": supervisor.pid, "started": supervisor.started}
        private_file(folder.root_data_folder / "owner", json.dumps(owner_), None)
    except OSError as error:
        raise WorldFolderUnusable(str(folder.root_data_folder), (error.strerror or str(error)).lower()) from error
    # The user of a service can pass to the folders that it owns, but cannot list what else is there.
    folder.root_data_folder.chmod(0o711)


def remove_orphans(state: Path) -> tuple[Path, ...]:
    """Remove the data of worlds whose folder was deleted and whose supervisor has ended. Returns what was removed."""
    if not state.exists():
        return ()
    gone = tuple(one for one in state.iterdir() if _is_orphan(one, state))
    for one in gone:
        shutil.rmtree(one, ignore_errors=True)
    return gone


def _is_orphan(data: Path, state: Path) -> bool:
    owner = _owner(data)
    if owner is None or WorldFolder(owner, state).id == data.name:
        return False
    recorded = json.loads((data / "owner").read_text())
    return not ProcessId(int(recorded["pid"]), float(recorded["started"])).alive()


def _owner(data: Path) -> Path | None:
    try:
        return Path(str(json.loads((data / "owner").read_text())["folder"]))
    except (OSError, ValueError, KeyError):
        return None


MAX_SOCKET_PATH = 100  # bytes; the system allows a few more for the path of a Unix socket


def make_socket_path(folder: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The socket path of a world folder, in a folder that only the user can enter. Removes an old socket.

    It is not in the world folder, whose path may be too long for a socket.
    """
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:20] + ".sock"
    path = _runtime_folder(environ, len(name)) / name
    path.unlink(missing_ok=True)
    return path


def reservations_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The file in which all worlds of the user reserve ports (see ``host.Reservations``)."""
    return _runtime_folder(environ, len("ports")) / "ports"


def is_listening(path: Path) -> bool:
    """Whether a process accepts connections on the socket."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(2)
            probe.connect(str(path))
    except OSError:
        return False
    return True


def _runtime_folder(environ: Mapping[str, str], name_length: int) -> Path:
    """A short private folder of the user: sockets have paths of at most MAX_SOCKET_PATH bytes."""
    if named := environ.get("XDG_RUNTIME_DIR"):
        path = Path(named) / "headgate"
        if len(os.fsencode(path)) + 1 + name_length <= MAX_SOCKET_PATH and _is_private(path):
            return path
    # Any user may write to /tmp, so the folder is checked before it is trusted.
    path = Path("/tmp") / f"headgate-{os.geteuid()}"
    if not _is_private(path):
        raise WorldFolderUnusable(str(path), "it is not a folder of this user alone")
    return path


def _is_private(path: Path) -> bool:
    """Whether the folder exists or can be created, and no other user can put a socket into it."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
