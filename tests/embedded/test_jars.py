"""Downloads, from a small repository served on loopback: whole, broken off, wrong, and two at once."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from headgate.embedded.errors import (
    JarDownloadFailed,
    JarHashMismatch,
    JarLockUnreadable,
    JavaMissing,
    UnknownJarSet,
)
from headgate.embedded.jars import (
    Jar,
    fetch_jars,
    find_java,
    jar_path,
    jar_set,
    jar_sets,
    java_version,
    missing_jars,
    read_lock,
)

GOOD = b"the right bytes" * 1000
LINE = f"org.example:thing:1.0 {hashlib.sha256(GOOD).hexdigest()} {len(GOOD)}"


class Repository(SimpleHTTPRequestHandler):
    """Serves files; those listed in ``broken`` end half way, as often as the number says."""

    broken: dict[str, int]
    served: list[str]

    def do_GET(self) -> None:
        self.served.append(self.path)
        left = self.broken.get(self.path, 0)
        if left:
            self.broken[self.path] = left - 1
            self.send_response(200)
            self.send_header("Content-Length", str(len(GOOD)))
            self.end_headers()
            self.wfile.write(GOOD[: len(GOOD) // 2])
            self.close_connection = True
            return
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


class Served:
    def __init__(self, folder: Path, settings: Path) -> None:
        self.folder = folder
        self.broken: dict[str, int] = {}
        self.served: list[str] = []
        handler = type("Handler", (Repository,), {"broken": self.broken, "served": self.served})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        root = f"http://127.0.0.1:{self.server.server_port}"
        settings.write_text(
            '<ivysettings><settings defaultResolver="here"/><resolvers>'
            f'<ibiblio name="here" m2compatible="true" usepoms="false" root="{root}"/></resolvers></ivysettings>'
        )

    def add(self, artifact: str, content: bytes = GOOD) -> Jar:
        folder = self.folder / "org" / "example" / artifact / "1.0"
        folder.mkdir(parents=True)
        (folder / f"{artifact}-1.0.jar").write_bytes(content)
        return Jar("org.example", artifact, "1.0", None, "jar", hashlib.sha256(GOOD).hexdigest(), len(GOOD))

    def break_off(self, artifact: str, times: int) -> None:
        self.broken[f"/org/example/{artifact}/1.0/{artifact}-1.0.jar"] = times

    def downloads(self) -> list[str]:
        return [path.rpartition("/")[2] for path in self.served if path.endswith(".jar")]


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.setenv("HEADGATE_IVY_SETTINGS", str(tmp_path / "settings.xml"))
    repository = Served(folder, tmp_path / "settings.xml")
    yield repository
    repository.server.shutdown()
    repository.server.server_close()


@pytest.mark.spark
def test_a_jar_is_downloaded_once(served: Served, tmp_path: Path) -> None:
    jar = served.add("thing")
    for _ in range(2):
        assert [path.read_bytes() for path in fetch_jars([jar], tmp_path / "cache")] == [GOOD]
    assert served.downloads() == ["thing-1.0.jar"]


@pytest.mark.spark
def test_a_download_that_breaks_off_is_tried_again(served: Served, tmp_path: Path) -> None:
    jar = served.add("thing")
    served.break_off("thing", times=1)
    (path,) = fetch_jars([jar], tmp_path / "cache")
    assert path.read_bytes() == GOOD


@pytest.mark.spark
def test_a_jar_that_arrived_is_kept_when_another_keeps_failing(served: Served, tmp_path: Path) -> None:
    first, second = served.add("first"), served.add("second")
    served.break_off("second", times=1000)
    with pytest.raises(JarDownloadFailed) as caught:
        fetch_jars([first, second], tmp_path / "cache")
    assert "second" in " ".join(caught.value.coordinates)
    assert Path(caught.value.log).exists()
    served.break_off("second", times=0)
    fetch_jars([first, second], tmp_path / "cache")
    assert served.downloads().count("first-1.0.jar") == 1


@pytest.mark.spark
def test_a_jar_with_a_wrong_hash_is_refused_and_not_kept(served: Served, tmp_path: Path) -> None:
    jar = served.add("thing", b"something else")
    with pytest.raises(JarHashMismatch) as caught:
        fetch_jars([jar], tmp_path / "cache")
    assert caught.value.found == hashlib.sha256(b"something else").hexdigest()
    assert not jar_path(jar, tmp_path / "cache").exists()


@pytest.mark.spark
def test_jars_that_are_right_are_kept_when_another_is_wrong(served: Served, tmp_path: Path) -> None:
    wrong, right = served.add("wrong", b"something else"), served.add("right")
    with pytest.raises(JarHashMismatch) as caught:
        fetch_jars([wrong, right], tmp_path / "cache")
    assert caught.value.coordinate == wrong.coordinate
    assert missing_jars([wrong, right], tmp_path / "cache") == (wrong,)


@pytest.mark.spark
def test_a_jar_that_was_damaged_in_the_cache_is_fetched_again(served: Served, tmp_path: Path) -> None:
    jar = served.add("thing")
    (path,) = fetch_jars([jar], tmp_path / "cache")
    path.write_bytes(b"damaged")
    assert missing_jars([jar], tmp_path / "cache") == (jar,)
    fetch_jars([jar], tmp_path / "cache")
    assert path.read_bytes() == GOOD


@pytest.mark.spark
def test_of_two_runs_at_once_only_one_downloads(served: Served, tmp_path: Path) -> None:
    jar = served.add("thing")
    runs = [threading.Thread(target=fetch_jars, args=([jar], tmp_path / "cache")) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert missing_jars([jar], tmp_path / "cache") == ()
    assert served.downloads() == ["thing-1.0.jar"]


@pytest.mark.spark
def test_a_jar_that_the_repository_does_not_have_is_named(served: Served, tmp_path: Path) -> None:
    jar = Jar("org.example", "absent", "1.0", None, "jar", "0" * 64, 1)
    with pytest.raises(JarDownloadFailed) as caught:
        fetch_jars([jar], tmp_path / "cache")
    assert caught.value.message() == "could not download org.example:absent:1.0"


@pytest.mark.unit
def test_the_lock_is_read_by_set_with_classifier_and_extension() -> None:
    text = f"# comment\n[a]\n{LINE}\n\n[b]\norg.example:app:2:all@tar.gz {'a' * 64} 7\n"
    sets = read_lock(text)
    assert [jar.coordinate for jar in sets["a"]] == ["org.example:thing:1.0"]
    assert [(jar.coordinate, jar.file_name) for jar in sets["b"]] == [
        ("org.example:app:2:all@tar.gz", "app-2-all.tar.gz")
    ]


@pytest.mark.unit
@pytest.mark.parametrize("text", ["[a]\nnot a coordinate", LINE, "[a]\norg.example:thing:1.0"])
def test_an_incomplete_line_of_the_lock_is_an_error(text: str) -> None:
    with pytest.raises(JarLockUnreadable):
        read_lock(text)


@pytest.mark.unit
def test_every_jar_of_the_lock_is_pinned_and_named_once_per_set() -> None:
    for jars in jar_sets().values():
        assert len({jar.coordinate for jar in jars}) == len(jars) > 0


@pytest.mark.unit
def test_an_unknown_set_names_the_near_one() -> None:
    with pytest.raises(UnknownJarSet) as caught:
        jar_set("kafak")
    assert caught.value.similar == ("kafka",)


def fake_java(folder: Path, version_text: str) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{version_text}' >&2\n")
    path.chmod(0o755)
    return path


@pytest.mark.unit
def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", 'openjdk version "21.0.3" 2024-04-16')
    on_path = fake_java(tmp_path / "path", 'openjdk version "17.0.15" 2025-04-15')
    java = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)})
    assert (java.path, java.version) == (tmp_path / "home" / "bin" / "java", 21)


@pytest.mark.unit
def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", 'java version "1.8.0_402"')
    on_path = fake_java(tmp_path / "path", 'openjdk version "17" 2021-09-14')
    java = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)})
    assert (java.path, java.version) == (on_path, 17)


@pytest.mark.unit
def test_java_eight_prints_its_version_in_the_old_form(tmp_path: Path) -> None:
    assert java_version(fake_java(tmp_path, 'java version "1.8.0_402"')) == 8


@pytest.mark.unit
def test_without_java_the_error_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing) as caught:
        find_java({"PATH": str(tmp_path)})
    assert "openjdk-17-jre-headless" in str(caught.value.hint())


@pytest.mark.unit
def test_the_error_names_the_java_that_is_too_old(tmp_path: Path) -> None:
    old = fake_java(tmp_path, 'openjdk version "11.0.2" 2019-01-15')
    with pytest.raises(JavaMissing) as caught:
        find_java({"PATH": str(old.parent)})
    assert f"{old} (version 11)" in caught.value.detail()
