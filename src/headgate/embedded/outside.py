"""Data outside of the world folder: for services that, under root, run as another user.

Each world has a folder by its id under ``WorldFolder.state``, with a file `owner` that names the world folder. So a
world folder that was removed can be told, and its data is removed when any world starts; and two folders that
have the same id, because one is a copy, do not meet.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from headgate.embedded.errors import WorldFolderUnusable
from headgate.embedded.folder import WorldFolder
from headgate.embedded.process import Record
from headgate.embedded.users import own_file


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
