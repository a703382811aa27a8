"""Set-up of a checkout: Java, `.venv`, Python packages, jars, class archive. Runs on a bare Python 3.11+, so only stdlib here.

Says first what it will download, does only what is missing, and is done in a blink when nothing is. What it
installs is pinned: Python packages by `requirements.lock`, jars by `src/headgate/embedded/jars.lock`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TextIO

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / ".headgate-setup"  # what the packages in .venv were installed from
PARTIAL = VENV / ".headgate-partial"  # there while pip works; pip does not see that half a package is not one
ARCHIVE_STAMP = VENV / ".headgate-archive"  # what Spark's class archive was made from, and where it is
LOCKS = ("requirements.lock", "pyproject.toml")
JAR_LOCK = ROOT / "src" / "headgate" / "embedded" / "jars.lock"
ARCHIVE_MAKER = JAR_LOCK.with_name("spark.py")
PACKAGES_MB = 700  # what pip downloads for requirements.lock, of which pyspark is 430
INSTALLED_MB = 2000  # .venv and what pip unpacks on the way
JAVA_MB = 50  # openjdk-17-jre-headless on Debian
OLDEST_JAVA = 17
ARCHIVE_SECONDS = 900  # a quarter of a minute on an idle machine

# How each package manager installs, and its packages of a Java without a display: newer systems have no 17 any more.
JAVA_PACKAGES = {
    "apt-get": ("install -y --no-install-recommends", "openjdk-17-jre-headless", "openjdk-21-jre-headless"),
    "dnf": ("install -y", "java-17-openjdk-headless", "java-21-openjdk-headless"),
    "yum": ("install -y", "java-17-openjdk-headless", "java-21-openjdk-headless"),
    "apk": ("add", "openjdk17-jre-headless", "openjdk21-jre-headless"),
    "zypper": ("install -y", "java-17-openjdk-headless", "java-21-openjdk-headless"),
    "brew": ("install", "openjdk@17", "openjdk@21"),
}


def main(arguments: Sequence[str] = ()) -> None:
    """With ``--without-jars`` the jars are left: `make lock` must run when their lock has lines to be filled in."""
    with only_one():
        jars = "--without-jars" not in arguments
        if packages_are_installed() and has_java() and not (jars and (missing_jar_bytes() or archive_is_due())):
            return
        announce(jars)
        if not has_java():
            install_java()
        if not packages_are_installed():
            make_venv()
            install_packages()
        if jars and missing_jar_bytes():
            fetch_jars()
        if jars and archive_is_due():
            make_archive()
        say("Ready.")


def say(line: str) -> None:
    print(line, flush=True)


def fail(*lines: str) -> NoReturn:
    sys.exit("\n".join(lines))


def only_one() -> TextIO:
    """Two makes at once: the second waits, and finds everything done."""
    try:
        lock = (ROOT / ".setup.lock").open("w")
    except OSError as error:
        fail(f"Headgate cannot be set up in {ROOT}: {error.strerror}.", "Use a checkout that you may write to.")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("Another make sets this checkout up: waiting for it.")
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def fingerprint() -> str:
    digest = hashlib.sha256(f"{sys.version} {ROOT}".encode())
    for name in LOCKS:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def announce(jars: bool) -> None:
    """Say what will be downloaded, and stop before it where it would have no place."""
    parts = []
    if not packages_are_installed():
        fresh = not venv_runs()
        what = f"about {PACKAGES_MB} MB" if fresh else "only what has changed"
        parts.append(f"Python packages into .venv ({what})")
        check_room(fresh)
    if jars and (size := missing_jar_bytes()):
        parts.append(f"jars into {cache_folder()} (about {size / 1e6:.0f} MB)")
        check_cache(cache_folder())
    if not has_java():
        parts.append(f"Java with the system's package manager (about {JAVA_MB} MB)")
    say("Setting up Headgate." + (" This downloads, once:" if parts else ""))
    for part in parts:
        say(f"  - {part}")


def check_room(fresh: bool) -> None:
    free = shutil.disk_usage(ROOT).free // 1_000_000
    if fresh and free < INSTALLED_MB:
        fail(
            f"Headgate needs {INSTALLED_MB} MB of disk at {ROOT}, {free} MB are free.",
            "Make room and run make again.",
        )


def check_cache(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refuse_cache(folder, str(error.strerror))
    for place in (folder, folder / "jars"):
        if place.exists() and not os.access(place, os.W_OK | os.X_OK):
            refuse_cache(place, "it cannot be written")


def refuse_cache(folder: Path, reason: str) -> NoReturn:
    fail(
        f"The jars cannot be put into {folder}: {reason}.",
        "Set HEADGATE_CACHE to a folder that you may write to, and run make again.",
    )


# Java


def has_java() -> bool:
    return any(java_version(java) >= OLDEST_JAVA for java in java_candidates())


def java_candidates() -> list[str]:
    home = os.environ.get("JAVA_HOME")
    return [str(Path(home, "bin", "java")), "java"] if home else ["java"]


def java_version(java: str) -> int:
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(match[1]) if match else 0


def install_java() -> None:
    manager = next((name for name in JAVA_PACKAGES if shutil.which(name)), None)
    if manager is None:
        fail(f"Headgate needs Java {OLDEST_JAVA} or newer. Install a JRE, or set JAVA_HOME, and run make again.")
    commands = java_commands(manager)
    if not any(install(manager, command) for command in commands):
        fail(
            f"Headgate needs Java {OLDEST_JAVA} or newer, and it could not be installed from here. Run",
            f"  {'' if manager == 'brew' else 'sudo '}{' '.join(commands[0])}",
            f"(or {commands[1][-1]}, where the system has no Java {OLDEST_JAVA}), and then make again.",
        )
    if not has_java():
        fail(
            f"Java was installed, but no java {OLDEST_JAVA}+ is on the PATH. Set JAVA_HOME"
            + (' to "$(brew --prefix openjdk@17)"' if manager == "brew" else "")
            + " and run make again."
        )


def java_commands(manager: str) -> list[list[str]]:
    how, *packages = JAVA_PACKAGES[manager]
    return [[manager, *how.split(), package] for package in packages]


def install(manager: str, command: Sequence[str]) -> bool:
    """Run a package manager with the rights we have: as root, by sudo without a password, or (brew) as ourselves."""
    prefix: list[str] = []
    if manager != "brew" and os.geteuid() != 0:
        if not shutil.which("sudo") or subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode:
            return False
        prefix = ["sudo", "-n"]
    say(f"Installing with the system's package manager: {' '.join(command)}")
    if manager == "apt-get":
        subprocess.run([*prefix, "apt-get", "update", "-qq"], check=False)
    return subprocess.run([*prefix, *command], stdin=subprocess.DEVNULL).returncode == 0


# Python


def python() -> str:
    return str(VENV / "bin" / "python")


def venv_runs() -> bool:
    """Whether .venv can be used as it is: not if its Python is gone, if pip was killed at work in it, or if the
    checkout was moved, for its commands know where they were installed."""
    try:
        if PARTIAL.exists() or f"{VENV}/bin/python" not in (VENV / "bin" / "pip").read_text():
            return False
        return subprocess.run([python(), "-c", "import pip"], capture_output=True).returncode == 0
    except OSError:
        return False


def make_venv() -> None:
    if venv_runs():
        return
    shutil.rmtree(VENV, ignore_errors=True)
    say("Making .venv")
    command = [sys.executable, "-m", "venv", str(VENV)]
    made = subprocess.run(command, capture_output=True, text=True)
    package = f"python3.{sys.version_info.minor}-venv"
    if made.returncode and shutil.which("apt-get"):  # Debian keeps venv in a package of its own
        if not install("apt-get", ["apt-get", "install", "-y", "--no-install-recommends", package]):
            fail(
                "Python could not make a virtual environment:",
                (made.stdout + made.stderr).strip(),
                f"Run\n  sudo apt-get install {package}\nand then make again.",
            )
        made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        fail("Python could not make a virtual environment:", (made.stdout + made.stderr).strip())


def packages_are_installed() -> bool:
    stamped = STAMP.exists() and STAMP.read_text() == fingerprint()
    return stamped and (VENV / "bin" / "headgate").exists() and venv_runs()


def install_packages() -> None:
    say("Installing Python packages")
    PARTIAL.touch()
    pip("install", "--require-hashes", "--no-deps", "-r", "requirements.lock")
    pip("install", "--no-deps", "--no-build-isolation", "--editable", ".")
    STAMP.write_text(fingerprint())
    PARTIAL.unlink()


def pip(*arguments: str) -> None:
    bar = ["--progress-bar", "on" if sys.stdout.isatty() else "off"]
    quiet = [] if sys.stdout.isatty() else ["--quiet"]
    command = [python(), "-m", "pip", "--disable-pip-version-check", *arguments, *bar, *quiet]
    if subprocess.run(command, cwd=ROOT).returncode:
        fail(
            f"pip failed: {' '.join(arguments)}",
            "Check the network and run make again: what has arrived is kept.",
        )


# Jars


def cache_folder() -> Path:
    """Where headgate.embedded.jars puts it; here only to say so and to see what is missing."""
    if named := os.environ.get("HEADGATE_CACHE"):
        return Path(named)
    if os.geteuid() == 0:
        return Path("/var/cache/headgate")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headgate"


def missing_jar_bytes() -> int:
    """Bytes of the lock's jars that are not in the cache. The hashes are checked when they are used."""
    total, wanted = 0, True
    for line in JAR_LOCK.read_text().splitlines():
        if line.startswith("["):
            wanted = line != "[apicurio]"
        elif wanted and len(words := line.split()) == 3 and not line.startswith("#"):
            coordinate, _, size = words
            group, artifact, version = coordinate.split(":")[:3]
            path = cache_folder() / "jars" / group / f"{artifact}-{version}.jar"
            total += 0 if file_size(path) == int(size) else int(size)
    return total


def file_size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def fetch_jars() -> None:
    say("Fetching jars")
    if subprocess.run([python(), "-m", "headgate.embedded.jars"], cwd=ROOT).returncode:
        fail("The jars could not be fetched; the reason is above.")


# The class archive: Spark starts in half the time with it, and works without it.


def archive_is_due() -> bool:
    """Whether an archive was never tried for these packages, jars and this Java, or was made and is gone."""
    try:
        made_from, path = ARCHIVE_STAMP.read_text().splitlines()
    except (OSError, ValueError):
        return True
    return made_from != archive_fingerprint() or (path != "none" and not Path(path).exists())


def archive_fingerprint() -> str:
    digest = hashlib.sha256(fingerprint().encode() + JAR_LOCK.read_bytes() + ARCHIVE_MAKER.read_bytes())
    for java in filter(None, map(shutil.which, java_candidates())):
        digest.update(f"{Path(java).resolve()} {Path(java).stat().st_mtime_ns}".encode())
    return digest.hexdigest()


def make_archive() -> None:
    """A failure is said and remembered, so that it is not repeated at every make."""
    say("Making a class archive, with which Spark starts in half the time")
    command = [python(), "-m", "headgate.embedded.spark"]
    try:
        made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=ARCHIVE_SECONDS)
        path = made.stdout.strip() if made.returncode == 0 else "none"
    except subprocess.TimeoutExpired:
        path = "none"
    if path == "none":
        say("It could not be made. Everything works without it, but starts more slowly.")
    ARCHIVE_STAMP.write_text(f"{archive_fingerprint()}\n{path}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
