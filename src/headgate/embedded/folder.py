"""The world folder: what lies where, who holds it, and what is remembered in it.

    world.json        id, layout, the ports in use
    lock              held by the supervisor; its process id
    supervisor.json   process and socket of the supervisor, while one runs
    processes.json    the services' processes, for whoever must end them after a crash
    secrets/          PostgreSQL's password
    logs/             one per service, and the supervisor's
    kafka/ registry/ postgres/ opensearch/    their data

As root, the data of the services that run as another user lies under STATE instead, by the world's id, since such
a user cannot reach into every folder of root's.
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
from headgate.embedded.host import own_file, own_folder
from headgate.embedded.process import Record

LAYOUT = 1
STATE = Path("/var/lib/headgate/worlds")


@dataclass(frozen=True, slots=True)
class WorldFolder:
    """A folder that is a world. Make one with ``open_folder``."""

    path: Path
    state: Path = STATE

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
        return str(self._read("world.json").get("id", ""))

    def ports(self) -> dict[str, int]:
        """The ports that services had last, by name."""
        found = self._read("world.json").get("ports", {})
        return {str(name): int(port) for name, port in found.items()} if isinstance(found, dict) else {}

    def remember_port(self, name: str, port: int) -> None:
        self._write("world.json", {**self._read("world.json"), "ports": {**self.ports(), name: port}})

    def processes(self) -> dict[str, Record]:
        return {
            name: Record(int(found["pid"]), float(found["started"]))
            for name, found in self._read_own("processes.json").items()
            if isinstance(found, dict)
        }

    def remember_processes(self, records: dict[str, Record]) -> None:
        told = {name: {"pid": record.pid, "started": record.started} for name, record in records.items()}
        self._write_own("processes.json", dict(told))

    def supervisor(self) -> tuple[Record, Path] | None:
        """The supervisor's process and socket, as it wrote them down; it may be gone."""
        found = self._read_own("supervisor.json")
        try:
            return Record(int(str(found["pid"])), float(str(found["started"]))), Path(str(found["socket"]))
        except (KeyError, ValueError):
            return None

    def remember_supervisor(self, record: Record, socket: Path) -> None:
        told = {"pid": record.pid, "started": record.started, "socket": str(socket)}
        self._write_own("supervisor.json", told)

    def forget_supervisor(self) -> None:
        (self.path / "supervisor.json").unlink(missing_ok=True)

    def data(self, service: str, as_other_user: bool) -> Path:
        return self.outside / service if as_other_user else self.path / service

    @property
    def outside(self) -> Path:
        """Where, as root, the data of services with another user is."""
        return self.state / self.id

    def begin(self) -> None:
        """Write the first world.json; of two that do so at once, one wins and both have that one."""
        fresh = self.path / f"world.json.{os.getpid()}.{threading.get_ident()}"
        own_file(
            fresh, json.dumps({"layout": LAYOUT, "id": str(uuid.uuid4()), "ports": {}}, indent=2) + "\n", None
        )
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
        """What was written by ``_write_own`` in this very folder: in the copy of a world that runs, the processes
        written down are the other's, neither to be joined nor to be ended."""
        found = self._read(name)
        return found if found.get("folder", str(self.path)) == str(self.path) else {}

    def _write_own(self, name: str, value: dict[str, object]) -> None:
        self._write(name, {**value, "folder": str(self.path)})

    def _write(self, name: str, value: dict[str, object]) -> None:
        """All or nothing, so that a kill in between leaves the old file."""
        fresh = own_file(self.path / f"{name}.{os.getpid()}", json.dumps(value, indent=2) + "\n", None)
        fresh.replace(self.path / name)


def open_folder(path: Path, state: Path = STATE) -> WorldFolder:
    """Make the folder a world if it is not one yet. It must be empty then, so that nothing of anybody's is mixed in."""
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
    if not (folder.path / "world.json").exists():
        folder.path.mkdir(parents=True, exist_ok=True)
        _refuse_strangers(folder.path)
        folder.path.chmod(0o700)
        (folder.path / ".gitignore").write_text("*\n")
        folder.begin()
    own_folder(folder.logs, None)
    own_folder(folder.secrets, None)


def _refuse_strangers(path: Path) -> None:
    ours = ("lock", "logs", "secrets", ".gitignore")
    strangers = sorted(
        one.name for one in path.iterdir() if one.name not in ours and "world.json" not in one.name
    )
    if strangers:
        raise WorldFolderUnusable(str(path), f'it is no world and has other files, such as "{strangers[0]}"')


def lock_folder(folder: WorldFolder) -> int | None:
    """Take the folder's lock; None if another process has it. It is a plain descriptor, so that it is held until the
    very end of the process that does not close it: whoever waits for the lock then waits for that end."""
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
    """The process that has the lock, as it wrote itself down."""
    try:
        return int((folder.path / "lock").read_text())
    except (OSError, ValueError):
        return None


def is_locked(folder: WorldFolder) -> bool:
    try:
        with (folder.path / "lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def claim(folder: WorldFolder, supervisor: Record) -> None:
    """Make this world's outside folder ours. A copied world folder gets an id of its own, and so begins without
    that data; a moved one keeps its data."""
    owner = _owner(folder.outside)
    if owner is not None and owner != folder.path and WorldFolder(owner, folder.state).id == folder.id:
        folder.renew_id()
    try:
        folder.outside.mkdir(parents=True, exist_ok=True)
        told = {"folder": str(folder.path), "pid": supervisor.pid, "started": supervisor.started}
        own_file(folder.outside / "owner", json.dumps(told), None)
    except OSError as error:
        raise WorldFolderUnusable(str(folder.outside), (error.strerror or str(error)).lower()) from error
    folder.outside.chmod(
        0o711
    )  # the services' user passes through to its own folders, and cannot look around


def prune(state: Path) -> tuple[Path, ...]:
    """Remove the data of worlds whose folder is gone and whose supervisor does not live; what was removed."""
    if not state.exists():
        return ()
    gone = tuple(one for one in state.iterdir() if _is_abandoned(one, state))
    for one in gone:
        shutil.rmtree(one, ignore_errors=True)
    return gone


def _is_abandoned(outside: Path, state: Path) -> bool:
    owner = _owner(outside)
    if owner is None or WorldFolder(owner, state).id == outside.name:
        return False
    told = json.loads((outside / "owner").read_text())
    return not Record(int(told["pid"]), float(told["started"])).alive()


def _owner(outside: Path) -> Path | None:
    try:
        return Path(str(json.loads((outside / "owner").read_text())["folder"]))
    except (OSError, ValueError, KeyError):
        return None


LONGEST = 100


def make_socket_path(folder: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """A path that no other world folder has, in a folder that is the user's alone; what was there is removed."""
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:20] + ".sock"
    path = _runtime_folder(environ, len(name)) / name
    path.unlink(missing_ok=True)
    return path


def reservations_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The file in which all worlds of the user reserve their ports."""
    return _runtime_folder(environ, len("ports")) / "ports"


def is_served(path: Path) -> bool:
    """Whether somebody accepts connections there."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(2)
            probe.connect(str(path))
    except OSError:
        return False
    return True


def _runtime_folder(environ: Mapping[str, str], name_length: int) -> Path:
    if named := environ.get("XDG_RUNTIME_DIR"):
        path = Path(named) / "headgate"
        if len(os.fsencode(path)) + 1 + name_length <= LONGEST and _is_mine(path):
            return path
    path = Path("/tmp") / f"headgate-{os.geteuid()}"
    if not _is_mine(path):
        raise WorldFolderUnusable(str(path), "it is not a folder of this user alone")
    return path


def _is_mine(path: Path) -> bool:
    """Whether the folder is there, or can be made, and nobody else can put a socket of theirs into it."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
