"""The registry as a process of its own: starting, being killed, and being asked by many at once."""

from __future__ import annotations

import os
import queue
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from headgate.registry.server.__main__ import main
from headgate.registry.server.errors import StoreUnusable, UserFileUnusable
from headgate.registry.server.requests import read_users
from headgate.registry.server.store import FILE_NAME, Store
from tests.registry.running import RegistryApi, avro, registry

pytestmark = pytest.mark.e2e


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "headgate.registry.server", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


def url_of(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    line = started.stdout.readline()
    assert line.startswith("registry listens on http://127.0.0.1:"), line
    return line.split()[-1]


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """In this process, as it ends before it serves."""
    assert main(list(arguments)) == 1
    return capsys.readouterr().err


def test_a_registry_killed_while_it_writes_has_all_that_it_acknowledged(tmp_path: Path) -> None:
    acknowledged: queue.SimpleQueue[tuple[str, str, int]] = queue.SimpleQueue()
    enough = threading.Semaphore(0)

    def register(worker: int, url: str) -> None:
        with httpx.Client(base_url=url, trust_env=False) as http:
            for number in range(10_000):
                body = avro(f"f{worker}_{number}")
                try:
                    schema_id = RegistryApi(http).register(f"s{worker}", body)
                except httpx.TransportError:
                    return
                acknowledged.put((f"s{worker}", body["schema"], schema_id))
                enough.release()

    with process("--data", str(tmp_path), "--port", "0") as started, ThreadPoolExecutor(4) as workers:
        url = url_of(started)
        done = [workers.submit(register, worker, url) for worker in range(4)]
        for _ in range(40):
            assert enough.acquire(timeout=30)
        started.send_signal(signal.SIGKILL)
        for worker in done:
            worker.result(timeout=30)

    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as rows:
        assert rows.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert rows.execute("PRAGMA foreign_key_check").fetchall() == []
        assert rows.execute("SELECT count(*) FROM schemas WHERE id NOT IN (SELECT id FROM versions)").fetchone() == (0,)
    with registry(tmp_path) as url, httpx.Client(base_url=url, trust_env=False) as http:
        api = RegistryApi(http)
        while not acknowledged.empty():
            subject, text, schema_id = acknowledged.get()
            assert api.ok("POST", f"/subjects/{subject}", {"schema": text})["id"] == schema_id
        highest = api.ok("GET", f"/schemas/ids/{schema_id}?fetchMaxId=true")["maxId"]
        assert api.register("after", avro("after")) == highest + 1


def test_many_who_register_at_once_get_one_id_per_schema_and_one_version_per_turn(tmp_path: Path) -> None:
    with registry(tmp_path) as url, ThreadPoolExecutor(8) as workers:

        def register(worker: int) -> list[int]:
            with httpx.Client(base_url=url, trust_env=False) as http:
                api = RegistryApi(http)
                shared = [api.register("shared", avro(f"field{n}")) for n in range(5)]
                own = [api.register(f"own{worker}", avro(f"own{worker}_{n}")) for n in range(5)]
                return [*shared, *own]

        ids = list(workers.map(register, range(8)))
        with httpx.Client(base_url=url, trust_env=False) as http:
            api = RegistryApi(http)
            shared = {tuple(found[:5]) for found in ids}
            assert len(shared) == 1
            own = [schema_id for found in ids for schema_id in found[5:]]
            assert sorted({*own, *next(iter(shared))}) == list(range(1, 46))
            assert api.ok("GET", "/subjects/shared/versions") == [1, 2, 3, 4, 5]
            for worker in range(8):
                assert api.ok("GET", f"/subjects/own{worker}/versions") == [1, 2, 3, 4, 5]


def test_two_registries_on_one_folder_do_not_give_an_id_twice(tmp_path: Path) -> None:
    with registry(tmp_path) as one, registry(tmp_path) as two, ThreadPoolExecutor(2) as workers:

        def register(url: str) -> list[int]:
            with httpx.Client(base_url=url, trust_env=False) as http:
                name = url[-5:]
                return [RegistryApi(http).register(f"s{name}", avro(f"f{name}_{n}")) for n in range(10)]

        ids = [schema_id for found in workers.map(register, (one, two)) for schema_id in found]
    assert sorted(ids) == list(range(1, 21))


def test_what_was_registered_is_there_after_a_restart(tmp_path: Path) -> None:
    for expected in (1, 2):
        with process("--data", str(tmp_path), "--port", "0") as started:
            with httpx.Client(base_url=url_of(started), trust_env=False) as http:
                api = RegistryApi(http)
                assert api.register("a", avro(*(f"f{n}" for n in range(expected)))) == expected
            started.send_signal(signal.SIGTERM)
            assert started.wait(timeout=20) in (0, -signal.SIGTERM)


def test_a_port_that_is_taken_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        errors = refusal(capsys, "--data", str(tmp_path), "--port", str(port))
    assert f"error REG-0342: could not listen on 127.0.0.1:{port}" in errors
    assert "hint: Another process has the port" in errors


def test_a_registry_without_users_does_not_open_itself_to_the_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = refusal(capsys, "--data", str(tmp_path), "--port", "0", "--host", "0.0.0.0")
    assert 'error REG-0344: registry without users cannot listen on "0.0.0.0"' in errors


@pytest.mark.parametrize(
    ("text", "mode", "problem"),
    [
        ("read-write ada", 0o600, "line 1 is not understood"),
        ("# nobody\n", 0o600, "it names no user"),
        ("admin ada s3cret", 0o600, "line 1 is not understood"),
        ("read-write ada s3cret", 0o644, "users other than its owner can read or write it"),
        (None, 0o600, "No such file or directory"),
    ],
)
def test_a_user_file_that_cannot_be_used_is_refused(tmp_path: Path, text: str | None, mode: int, problem: str) -> None:
    file = tmp_path / "users"
    if text is not None:
        file.write_text(text)
        file.chmod(mode)
    with pytest.raises(UserFileUnusable) as refused:
        read_users(file)
    assert refused.value.message() == f'user file "{file}" cannot be used: {problem}'
    assert "s3cret" not in refused.value.diagnostic().render()


def test_the_users_of_a_file_are_asked_for_their_passwords(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.touch(mode=0o600)
    file.write_text("# people\nread-write ada three little words\n\nread-only bob b\n")
    with process("--data", str(tmp_path), "--port", "0", "--user-file", str(file)) as started:
        url = url_of(started)
        assert httpx.get(url, trust_env=False).status_code == 401
        assert httpx.get(url, auth=("ada", "three little words"), trust_env=False).status_code == 200
        body = {"url": f"{url}/config", "auth": ("bob", "b"), "trust_env": False, "json": {}}
        assert httpx.put(**body).status_code == 403  # type: ignore[arg-type]


def test_data_that_is_not_a_registrys_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("this is not a database, but long enough to be looked at" * 20)
    with pytest.raises(StoreUnusable) as refused:
        Store(tmp_path)
    assert "file is not a database" in refused.value.problem


def test_data_of_a_later_format_is_refused(tmp_path: Path) -> None:
    Store(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as rows:
        rows.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreUnusable) as refused:
        Store(tmp_path)
    assert refused.value.problem == "it has format 99, this version writes format 1"


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    errors = refusal(capsys, "--data", str(tmp_path / "file" / "below"), "--port", "0")
    assert "error REG-0341: registry data" in errors
    assert os.listdir(tmp_path) == ["file"]
