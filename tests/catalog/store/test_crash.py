"""A process killed at any moment, or out of space, leaves a catalog that holds every commit whole or not at all."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import apply
from headgate.catalog.store.reader import SqliteReader
from headgate.catalog.store.sqlite import SqliteStore
from tests.catalog.building import START
from tests.catalog.store.children import child, line, next_commit

pytestmark = pytest.mark.unit


def after_commits(number: int) -> Catalog:
    catalog = START
    for _ in range(number):
        catalog = apply(catalog, *next_commit(catalog))
    return catalog


def check(path: Path, acknowledged: int) -> int:
    """The catalog holds every acknowledged commit, at most one more, and each whole."""
    with SqliteStore(path) as store:
        found = store.load()
        assert found.version in (acknowledged, acknowledged + 3)
        assert found == after_commits(found.version // 3)
        assert len(store.history()) == len(store.events()) == found.version
        return found.version


def test_a_writer_killed_at_any_moment_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    path, version = tmp_path / "catalog.db", 0
    for _ in range(4):
        with child("commit", path) as process:
            for _ in range(random.randint(1, 20)):
                version = int(line(process))
            time.sleep(random.random() / 100)
            process.kill()
            assert process.stdout is not None
            rest = process.stdout.read().split()
            version = int(rest[-1]) if rest else version
        version = check(path, version)


def test_no_space_left_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    with child("fill", path, "400000") as process:
        code, version = line(process).split()
        assert code == "CAT-0303"
        assert int(version) >= 3
        assert int(line(process)) == int(version) + 3
        assert process.wait() == 0
    with SqliteReader(path) as reader:
        assert reader.load() == after_commits(int(version) // 3 + 1)
