"""What the peers are made of, downloaded once into the cache folder and checked by hash.

Flink comes from PyPI by pip into a folder of its own, so that nothing of it is in `.venv`; all else from Maven Central by Ivy,
as the jars of the embedded world. pip and Ivy use their own defaults or the user's settings.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
from pathlib import Path

from headgate.embedded.jars import Jar, cache_folder, fetch_jars, install_once, read_lock

JARS = Path(__file__).with_name("jars.lock")
PACKAGES = Path(__file__).with_name("requirements.lock")


def jars(set_name: str) -> tuple[Path, ...]:
    """The files of a set of the peers' own lock."""
    return fetch_jars(jar_set(set_name), cache_folder(), report)


def jar_set(name: str) -> tuple[Jar, ...]:
    return read_lock(JARS.read_text("utf-8"))[name]


def flink() -> Path:
    """The folder of Flink, with `lib` and `opt`."""
    home = _folder("flink", PACKAGES.read_bytes())
    install_once(home, _install_packages)
    return home / "pyflink"


def connectors() -> Path:
    """A folder for Kafka Connect's `plugin.path`, with Debezium's JDBC sink in it."""
    (archive,) = jars("debezium")
    (jar,) = jar_set("debezium")
    home = _folder("debezium", jar.sha256.encode())
    install_once(home, lambda fresh: _unpack(archive, fresh))
    return home


def report(line: str) -> None:
    print(f"  {line}", flush=True)


def _folder(name: str, made_from: bytes) -> Path:
    peers = cache_folder() / "peers"
    peers.mkdir(exist_ok=True)
    return peers / f"{name}-{hashlib.sha256(made_from).hexdigest()[:12]}"


def _install_packages(fresh: Path) -> None:
    report("downloading Flink, 330 MB")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check")
    what = ("--no-deps", "--require-hashes", "--target", str(fresh), "-r", str(PACKAGES))
    subprocess.run((*pip, *what), check=True)


def _unpack(archive: Path, fresh: Path) -> None:
    with tarfile.open(archive) as files:
        files.extractall(fresh, filter="data")
