"""What the set-up of a checkout decides; the package managers and the Java here are scripts that tell what was asked."""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.unit

SOURCE = Path(__file__).parents[2] / "tools" / "setup.py"
JAVA = """#!/bin/sh
echo 'openjdk version "{version}" 2025-04-15' >&2
"""
# Knows the packages that are named in $KNOWN, and "installs" a Java by putting it on the PATH.
APT = """#!/bin/sh
echo "$@" >> "$ASKED"
[ "$1" = update ] && exit 0
for package; do :; done
case " $KNOWN " in *" $package "*) ;; *) exit 100 ;; esac
printf '#!/bin/sh\\necho "openjdk version \\\\"17.0.1\\\\"" >&2\\n' > "$BIN/java"
/bin/chmod +x "$BIN/java"
"""


@pytest.fixture(name="setup")
def setup_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, for a checkout in an empty folder, on a machine with nothing on its PATH."""
    spec = spec_from_file_location("headgate_setup", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    root = tmp_path / "a checkout"
    root.mkdir()
    monkeypatch.setattr(module, "ROOT", root)
    monkeypatch.setattr(module, "JAR_LOCK", root / "jars.lock")
    monkeypatch.setattr(module, "VENV", root / ".venv")
    monkeypatch.setattr(module, "STAMP", root / ".venv" / ".headgate-setup")
    monkeypatch.setattr(module, "PARTIAL", root / ".venv" / ".headgate-partial")
    monkeypatch.setattr(module, "ARCHIVE_STAMP", root / ".venv" / ".headgate-archive")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("BIN", str(tmp_path / "bin"))
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return module


def _program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def _asked(tmp_path: Path) -> list[str]:
    return (tmp_path / "asked").read_text().splitlines()


@pytest.mark.parametrize(("told", "enough"), [("17.0.1", True), ("21", True), ("11.0.2", False), ("1.8.0", False)])
def test_java_is_there_from_version_17_on(setup: ModuleType, tmp_path: Path, told: str, enough: bool) -> None:
    assert not setup.has_java()
    _program(tmp_path / "bin" / "java", JAVA.format(version=told))
    assert setup.has_java() == enough


def test_java_of_java_home_is_enough(setup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(tmp_path / "home" / "bin" / "java", JAVA.format(version="21.0.2"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert setup.has_java()


@pytest.mark.parametrize("known", ["openjdk-17-jre-headless", "openjdk-21-jre-headless"])
def test_root_gets_the_java_that_the_system_has(
    setup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("KNOWN", known)
    _program(tmp_path / "bin" / "apt-get", APT)
    setup.install_java()
    assert setup.has_java()
    assert _asked(tmp_path)[-1] == f"install -y --no-install-recommends {known}"


def test_who_may_not_install_is_told_what_to_type(
    setup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    _program(tmp_path / "bin" / "apt-get", APT)
    with pytest.raises(SystemExit) as stopped:
        setup.install_java()
    assert "  sudo apt-get install -y --no-install-recommends openjdk-17-jre-headless\n" in str(stopped.value)
    assert not (tmp_path / "asked").exists()


def test_without_a_package_manager_java_is_asked_for(setup: ModuleType) -> None:
    with pytest.raises(SystemExit) as stopped:
        setup.install_java()
    assert str(stopped.value).startswith("Headgate needs Java 17 or newer. Install a JRE")


def test_a_python_without_venv_is_told_what_to_type(
    setup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = _program(tmp_path / "python3", "#!/bin/sh\necho ensurepip is not available\nexit 1\n")
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    _program(tmp_path / "bin" / "apt-get", APT)
    with pytest.raises(SystemExit) as stopped:
        setup.make_venv()
    assert "ensurepip is not available" in str(stopped.value)
    assert f"sudo apt-get install python3.{sys.version_info.minor}-venv" in str(stopped.value)


def _make_venv(setup: ModuleType, made_for: Path) -> None:
    _program(setup.VENV / "bin" / "python", "#!/bin/sh\n")
    _program(setup.VENV / "bin" / "headgate", "#!/bin/sh\n")
    _program(setup.VENV / "bin" / "pip", f"#!{made_for}/bin/python3\n")
    for name in setup.LOCKS:
        (setup.ROOT / name).write_text("")
    setup.STAMP.write_text(setup.fingerprint())


def test_packages_are_installed_until_their_lock_changes(setup: ModuleType) -> None:
    assert not setup.packages_are_installed()
    _make_venv(setup, setup.VENV)
    assert setup.packages_are_installed()
    (setup.ROOT / "requirements.lock").write_text("one more")
    assert not setup.packages_are_installed()
    assert setup.venv_runs()


def test_a_venv_in_which_pip_was_killed_is_not_used(setup: ModuleType) -> None:
    _make_venv(setup, setup.VENV)
    setup.PARTIAL.touch()
    assert not setup.venv_runs()


def test_the_venv_of_a_moved_checkout_is_not_used(setup: ModuleType, tmp_path: Path) -> None:
    _make_venv(setup, tmp_path / "where it was" / ".venv")
    assert not setup.venv_runs()


def test_a_jar_is_missing_until_it_is_there_whole(setup: ModuleType, tmp_path: Path) -> None:
    setup.JAR_LOCK.write_text(
        "# a comment of three words\n[kafka]\norg.a:one:1.0 00 10\norg.a:two:2.0 00 5\n"
        "org.a:to-be-locked:3.0\n[apicurio]\norg.b:app:1:all@tar.gz 00 1000\n"
    )
    assert setup.missing_jar_bytes() == 15
    _program(tmp_path / "cache" / "jars" / "org.a" / "one-1.0.jar", "x" * 10)
    _program(tmp_path / "cache" / "jars" / "org.a" / "two-2.0.jar", "xx")
    assert setup.missing_jar_bytes() == 5


def test_a_cache_that_cannot_be_written_stops_before_the_download(setup: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as stopped:
        setup.check_cache(tmp_path / "file" / "cache")
    assert "Set HEADGATE_CACHE" in str(stopped.value)


def test_too_little_disk_stops_before_the_download(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "INSTALLED_MB", 10**9)
    setup.check_room(fresh=False)
    with pytest.raises(SystemExit) as stopped:
        setup.check_room(fresh=True)
    assert "Make room" in str(stopped.value)


def test_a_class_archive_is_made_once_for_each_java(setup: ModuleType, tmp_path: Path) -> None:
    _make_venv(setup, setup.VENV)
    setup.JAR_LOCK.write_text("")
    archive = tmp_path / "classes.jsa"
    archive.touch()
    _program(setup.VENV / "bin" / "python", f"#!/bin/sh\necho {archive}\n")
    assert setup.archive_is_due()
    setup.make_archive()
    assert not setup.archive_is_due()
    _program(tmp_path / "bin" / "java", JAVA.format(version="21"))
    assert setup.archive_is_due()
    setup.make_archive()
    assert not setup.archive_is_due()
    archive.unlink()
    assert setup.archive_is_due()


def test_an_archive_that_cannot_be_made_is_told_once(setup: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    _make_venv(setup, setup.VENV)
    setup.JAR_LOCK.write_text("")
    _program(setup.VENV / "bin" / "python", "#!/bin/sh\necho no room\nexit 1\n")
    setup.make_archive()
    assert "Everything works without it" in capsys.readouterr().out
    assert not setup.archive_is_due()
