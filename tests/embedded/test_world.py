"""The four real services: that they serve, keep their data through every kind of end, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import psycopg
import pytest
from confluent_kafka.admin import AdminClient

from headgate.embedded.errors import PostgresDataOfOtherVersion, ServiceIsDown
from headgate.embedded.folder import open_folder
from headgate.embedded.host import is_free, is_root, private_folder
from headgate.embedded.service import SERVICES
from headgate.embedded.world import World
from tests.embedded import sample_data
from tests.embedded.world_fixtures import eventually, is_gone, open_world, process_tree

pytestmark = pytest.mark.e2e

COMMAND = """
import sys, time
from headgate.embedded.world import World
world = World.open(sys.argv[1])
world.ensure()
print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    for world in open_world(tmp_path_factory):
        world.ensure()
        sample_data.write(world)
        yield world


def _pids(world: World) -> dict[str, int]:
    return {one.service: one.pid for one in world.status().services if one.pid}


def test_every_service_listens_on_loopback_alone(world: World) -> None:
    world.ensure()
    pids = _pids(world)
    assert sorted(pids) == sorted(SERVICES)
    for service, pid in pids.items():
        listening = [one.laddr.ip for one in psutil.Process(pid).net_connections("tcp") if one.status == "LISTEN"]
        assert listening, service
        assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}, service


def test_kafka_makes_no_topic_that_nobody_created(world: World) -> None:
    admin = AdminClient({"bootstrap.servers": world.kafka()})
    answer = admin.list_topics("mispelt", timeout=30).topics["mispelt"]
    assert answer.error is not None
    assert "mispelt" not in admin.list_topics(timeout=30).topics


def test_postgres_is_set_up_for_logical_replication_and_any_text(world: World) -> None:
    with psycopg.connect(world.postgres()) as connection:
        shown = {
            name: connection.execute(f"SHOW {name}").fetchone()
            for name in ("wal_level", "server_encoding", "lc_messages", "TimeZone")
        }
        locale = connection.execute(
            "SELECT datcollate, current_user, current_database() FROM pg_database WHERE datname = current_database()"
        ).fetchone()
    assert shown == {
        "wal_level": ("logical",),
        "server_encoding": ("UTF8",),
        "lc_messages": ("C",),
        "TimeZone": ("UTC",),
    }
    assert locale == ("C", "headgate", "headgate")


def test_postgres_wants_the_password_which_only_the_owner_can_read(world: World) -> None:
    url = urlsplit(world.postgres())
    file = world.folder / "secrets" / "postgres"
    assert file.read_text() == url.password
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for wrong in ("", "wrong"):
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(host=url.hostname, port=url.port, user="headgate", password=wrong, dbname="headgate")


def test_the_password_is_nowhere_in_status_and_logs(world: World) -> None:
    secret = str(urlsplit(world.postgres()).password)
    assert secret not in repr(world.status())
    assert not [log for log in (world.folder / "logs").iterdir() if secret in log.read_text(errors="replace")]


def test_an_index_can_be_filled_from_another_and_swapped_in(world: World) -> None:
    url = world.elasticsearch()
    httpx.put(f"{url}/other", json={"settings": {"number_of_replicas": 0}}, timeout=30).raise_for_status()
    body = {"source": {"index": sample_data.INDEX}, "dest": {"index": "other"}}
    answer = httpx.post(f"{url}/_reindex?refresh=true", json=body, timeout=60).json()
    httpx.delete(f"{url}/other", timeout=30).raise_for_status()
    assert (answer["created"], answer["failures"]) == (1, [])


def test_killed_services_come_back_at_their_ports_with_their_data(world: World) -> None:
    before, pids = world.ensure(), _pids(world)
    world.stop_hard(*SERVICES)
    assert all(map(is_gone, pids.values()))
    for service in SERVICES:
        with pytest.raises(ServiceIsDown):
            world.address(service)
    assert world.start(*SERVICES) == before
    assert sample_data.read(world) == sample_data.SAMPLE


@pytest.mark.parametrize("supervisor_too", [False, True], ids=["alone", "with its supervisor"])
def test_a_killed_command_leaves_no_process_and_the_world_comes_back(world: World, supervisor_too: bool) -> None:
    before = world.ensure()
    with subprocess.Popen((sys.executable, "-c", COMMAND, str(world.folder)), stdout=subprocess.PIPE) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == b"up\n"
        supervisor = world.status().pid
        doomed = process_tree(supervisor)
        assert len(doomed) >= 5
        command.kill()
        if supervisor_too:  # our own lease is still open, and our next call starts another
            os.kill(supervisor, signal.SIGKILL)
        else:
            world.close()
    assert eventually(lambda: all(map(is_gone, doomed)), 20)
    assert world.ensure() == before
    assert sample_data.read(world) == sample_data.SAMPLE


def test_two_worlds_run_side_by_side_and_do_not_meet(world: World, tmp_path: Path) -> None:
    mine = world.ensure()
    with World.open(tmp_path / "a second, größere Welt", idle_timeout=0.2) as other:
        theirs = other.ensure("kafka", "registry", "postgres")
        assert not set(mine.values()) & set(theirs.values())
        assert (
            sample_data.TOPIC not in AdminClient({"bootstrap.servers": theirs["kafka"]}).list_topics(timeout=30).topics
        )
        assert httpx.get(f"{theirs['registry']}/subjects", timeout=10).json() == []
        with psycopg.connect(theirs["postgres"]) as connection:
            assert connection.execute("SELECT to_regclass('planets')").fetchone() == (None,)
        other.shut_down()
    assert all(is_free(int(theirs[name].rpartition(":")[2])) for name in ("kafka", "registry"))
    assert sample_data.read(world) == sample_data.SAMPLE


def test_postgres_data_of_another_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with World.open(tmp_path, idle_timeout=0.2) as other:
        cluster = private_folder(open_folder(tmp_path).data("postgres", as_other_user=is_root()) / "data", None)
        (cluster / "PG_VERSION").write_text("16\n")
        with pytest.raises(PostgresDataOfOtherVersion) as caught:
            other.postgres()
    assert (caught.value.found, caught.value.expected, caught.value.folder) == ("16", "18", str(cluster))
    assert [one.name for one in cluster.iterdir()] == ["PG_VERSION"]
