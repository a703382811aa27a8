"""Another user for the services that refuse to run as root, and where such a user can reach."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.embedded.errors import NoUnprivilegedUser, UnreachableForUser

CANDIDATES = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class User:
    name: str
    uid: int
    gid: int


def is_root() -> bool:
    return os.geteuid() == 0


def service_user(
    service: str, candidates: Sequence[str] = CANDIDATES, root: bool | None = None
) -> User | None:
    """The user to run a service as: None, the one we are, unless we are root."""
    if not (is_root() if root is None else root):
        return None
    for name in candidates:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return User(name, found.pw_uid, found.pw_gid)
    raise NoUnprivilegedUser(service, tuple(candidates))


def check_reach(user: User | None, path: Path, what: str) -> None:
    """Raise unless the user can read the file, or list the folder; by trying, since modes do not tell all."""
    if user is None:
        return
    groups: list[int] | None = [] if is_root() else None  # only root can give groups up
    command = ("test", "-r", str(path))
    tried = subprocess.run(command, user=user.uid, group=user.gid, extra_groups=groups, cwd="/", check=False)
    if tried.returncode != 0:
        raise UnreachableForUser(str(path), user.name, what)


def own_folder(path: Path, user: User | None) -> Path:
    """Make the folder, for its owner alone."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    if user is not None:
        os.chown(path, user.uid, user.gid)
    return path


def own_file(path: Path, text: str, user: User | None) -> Path:
    """Write a file that only its owner can read; the mode is right before the text is there."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        if user is not None:
            os.fchown(file.fileno(), user.uid, user.gid)
        file.write(text)
    return path
