"""Where the supervisor's socket is: a short path, for the system allows little more than a hundred bytes."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path

from headgate.embedded.errors import WorldFolderUnusable

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
