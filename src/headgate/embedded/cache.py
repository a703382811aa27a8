"""The cache folder, shared by all runs and worlds of a user: jars, and PostgreSQL's binaries when we are root."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from headgate.embedded.errors import CacheUnusable


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """HEADGATE_CACHE; for root a folder that the services' own user can read; else the user's cache folder."""
    if named := environ.get("HEADGATE_CACHE"):
        folder = Path(named).absolute()
    elif os.geteuid() == 0:
        folder = Path("/var/cache/headgate")
    elif named := environ.get("XDG_CACHE_HOME"):
        folder = Path(named) / "headgate"
    else:
        folder = Path.home() / ".cache" / "headgate"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0 and folder.stat().st_mode & 0o055 != 0o055:
            folder.chmod(0o755)  # whatever the umask is, the services' own user must reach it
    except OSError as error:
        raise CacheUnusable(str(folder), error.strerror or str(error)) from error
    return folder
