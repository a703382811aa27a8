"""Set-up of a checkout: Java, `.venv`, Python packages, jars. Runs on a bare Python 3.11+, so only stdlib here.

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

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / ".headgate-setup"
LOCKS = ("requirements.lock", "pyproject.toml", "src/headgate/embedded/jars.lock", "tools/setup.py")
PACKAGES_MB = 700  # what pip downloads for requirements.lock, of which pyspark is 430
JAVA_MB = 50  # openjdk-17-jre-headless on Debian
OLDEST_JAVA = 17

# Package managers, and what each needs to install a Java without a display.
JAVA_PACKAGES = {
    "apt-get": ["apt-get", "install", "-y", "--no-install-recommends", "openjdk-17-jre-headless"],
    "dnf": ["dnf", "install", "-y", "java-17-openjdk-headless"],
    "yum": ["yum", "install", "-y", "java-17-openjdk-headless"],
    "apk": ["apk", "add", "openjdk17-jre-headless"],
    "zypper": ["zypper", "install", "-y", "java-17-openjdk-headless"],
    "brew": ["brew", "install", "openjdk@17"],
}


def main() -> None:
    with (ROOT / ".setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two makes at once: the second waits and finds everything done
        if is_done():
            return
        announce()
        if not has_java():
            install_java()
        make_venv()
        install_packages()
        fetch_jars()
        STAMP.write_text(fingerprint())
        say("Ready.")


def say(line: str) -> None:
    print(line, flush=True)


def fail(*lines: str) -> None:
    sys.exit("\n".join(lines))


def fingerprint() -> str:
    digest = hashlib.sha256(sys.version.encode())
    for name in LOCKS:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def is_done() -> bool:
    stamped = STAMP.exists() and STAMP.read_text() == fingerprint()
    return stamped and venv_runs() and has_java() and not missing_jar_bytes()


def announce() -> None:
    parts = []
    if not packages_are_installed():
        parts.append(f"Python packages into .venv (about {PACKAGES_MB} MB)")
    if size := missing_jar_bytes():
        parts.append(f"jars into {cache_folder()} (about {size / 1e6:.0f} MB)")
    if not has_java():
        parts.append(f"Java {OLDEST_JAVA} with the system's package manager (about {JAVA_MB} MB)")
    say("Setting up Headgate." + (" This downloads, once:" if parts else ""))
    for part in parts:
        say(f"  - {part}")


# Java


def has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    candidates = [str(Path(home, "bin", "java"))] if home else []
    return any(java_version(java) >= OLDEST_JAVA for java in [*candidates, "java"])


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
        fail(
            f"Headgate needs Java {OLDEST_JAVA} or newer. Install a JRE, or set JAVA_HOME, and run make again."
        )
        return
    command = JAVA_PACKAGES[manager]
    say(f"Installing Java: {' '.join(command)}")
    if not install(manager, command):
        fail(
            f"Headgate needs Java {OLDEST_JAVA} or newer, and it could not be installed from here. Run",
            f"  {'' if manager == 'brew' else 'sudo '}{' '.join(command)}",
            "and then make again.",
        )
    if not has_java():
        fail(
            f"Java was installed, but no java {OLDEST_JAVA}+ is on the PATH. Set JAVA_HOME and run make again."
        )


def install(manager: str, command: Sequence[str]) -> bool:
    """Run a package manager with the rights we have: as root, by sudo without a password, or (brew) as ourselves."""
    prefix: list[str] = []
    if manager != "brew" and os.geteuid() != 0:
        if not shutil.which("sudo") or subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode:
            return False
        prefix = ["sudo", "-n"]
    if manager == "apt-get":
        subprocess.run([*prefix, "apt-get", "update", "-qq"], check=False)
    return subprocess.run([*prefix, *command], stdin=subprocess.DEVNULL).returncode == 0


# Python


def python() -> str:
    return str(VENV / "bin" / "python")


def venv_runs() -> bool:
    try:
        return subprocess.run([python(), "-c", "import pip"], capture_output=True).returncode == 0
    except OSError:
        return False


def make_venv() -> None:
    if venv_runs():
        return
    shutil.rmtree(VENV, ignore_errors=True)
    say("Making .venv")
    made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True)
    if made.returncode and shutil.which("apt-get"):  # Debian keeps venv in a package of its own
        package = f"python3.{sys.version_info.minor}-venv"
        if install("apt-get", ["apt-get", "install", "-y", "--no-install-recommends", package]):
            made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True)
    if made.returncode:
        fail("Python could not make a virtual environment:", made.stdout + made.stderr)


def packages_are_installed() -> bool:
    return STAMP.exists() and (VENV / "bin" / "headgate").exists() and STAMP.read_text() == fingerprint()


def install_packages() -> None:
    say("Installing Python packages")
    pip("install", "--require-hashes", "--no-deps", "-r", "requirements.lock")
    pip("install", "--no-deps", "--no-build-isolation", "--editable", ".")


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
    """Where headgate.embedded.cache puts it; here only to say so and to see what is missing."""
    if named := os.environ.get("HEADGATE_CACHE"):
        return Path(named)
    if os.geteuid() == 0:
        return Path("/var/cache/headgate")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headgate"


def missing_jar_bytes() -> int:
    """Bytes of the lock's jars that are not in the cache. The hashes are checked when they are used."""
    total, wanted = 0, True
    for line in (ROOT / LOCKS[2]).read_text().splitlines():
        if line.startswith("["):
            wanted = line != "[apicurio]"
        elif wanted and line and not line.startswith("#"):
            coordinate, _, size = line.split()
            group, artifact, version = coordinate.split(":")[:3]
            path = cache_folder() / "jars" / group / f"{artifact}-{version}.jar"
            if not path.exists() or path.stat().st_size != int(size):
                total += int(size)
    return total


def fetch_jars() -> None:
    say("Fetching jars")
    if subprocess.run([python(), "-m", "headgate.embedded.jars"], cwd=ROOT).returncode:
        fail("The jars could not be fetched; the reason is above.")


if __name__ == "__main__":
    main()
