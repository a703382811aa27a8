"""Apicurio Registry, a registry that is not ours, as a process for the time of a test."""

from __future__ import annotations

import os
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from headgate.embedded.host import choose_port
from headgate.embedded.jars import cache_folder, fetch, find_java

BASE_PATH = "/apis/ccompat/v7"
PATIENCE = 180.0


@contextmanager
def apicurio(folder: Path) -> Iterator[str]:
    """Its address without the base path. It keeps everything in memory; its log goes into the folder."""
    port, log = choose_port(None), folder / "apicurio.log"
    settings = (f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1")
    options = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx400m")
    command = [str(find_java().path), *options, *settings, "-jar", str(_runner())]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, cwd=folder) as started:
        try:
            _wait(started, f"http://127.0.0.1:{port}", log)
            yield f"http://127.0.0.1:{port}"
        finally:
            started.terminate()
            try:
                started.wait(timeout=10)
            except subprocess.TimeoutExpired:
                started.kill()


def _wait(started: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    with httpx.Client(trust_env=False) as http:
        while time.monotonic() < deadline and started.poll() is None:
            try:
                if http.get(f"{url}{BASE_PATH}/subjects").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.2)
    raise AssertionError(f"Apicurio did not start:\n{log.read_text()[-2000:]}")


def _runner() -> Path:
    """Unpacked once into the cache, beside it first and then moved: two runs at once do not see half of it."""
    (archive,) = fetch("apicurio")
    unpacked = cache_folder() / "unpacked" / archive.name.removesuffix(".tar.gz")
    if not unpacked.exists():
        unpacked.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=unpacked.parent) as beside, tarfile.open(archive) as packed:
            packed.extractall(beside, filter="data")
            Path(beside, "lib").chmod(0o755)
            try:
                os.rename(beside, unpacked)
            except OSError:
                assert unpacked.exists(), "another run was quicker"
            else:
                Path(beside).mkdir()  # what TemporaryDirectory will remove
    (runner,) = unpacked.glob("*-runner.jar")
    return runner
