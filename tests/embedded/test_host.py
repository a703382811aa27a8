from __future__ import annotations

import os
import pwd
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from headgate.embedded.errors import (
    NotEnoughDisk,
    NotEnoughMemory,
    NoUnprivilegedUser,
    PortTaken,
    UnreachableForUser,
)
from headgate.embedded.host import (
    LOOPBACK,
    MEGABYTE,
    PORT_RANGE,
    Reservations,
    User,
    accepts_connections,
    available_memory,
    check_readable,
    check_resources,
    choose_port,
    free_disk,
    is_free,
    private_file,
    private_folder,
    require_port,
    service_user,
    total_memory,
)

pytestmark = pytest.mark.unit


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((LOOPBACK, choose_port(None))) as server:
        yield server.getsockname()[1]


def test_a_port_that_somebody_listens_on_is_not_free(taken: int) -> None:
    assert not is_free(taken)
    assert accepts_connections(taken)


def test_a_port_that_is_listened_on_at_every_address_is_not_free() -> None:
    port = choose_port(None)
    with socket.create_server(("0.0.0.0", port)):
        assert not is_free(port)
    assert is_free(port)


def test_a_port_whose_connections_only_linger_is_free(taken: int) -> None:
    port = choose_port(None)
    with (
        socket.create_server((LOOPBACK, port)) as server,
        socket.create_connection((LOOPBACK, port)) as client,
    ):
        accepted, _ = server.accept()
        accepted.close()  # the server's side closes first, so that it is the one to linger
        assert client.recv(1) == b""
    assert is_free(port)


def test_a_remembered_port_is_kept_while_it_is_free() -> None:
    port = choose_port(None)
    assert choose_port(port) == port


def test_a_remembered_port_that_is_taken_is_replaced(taken: int) -> None:
    assert choose_port(taken) != taken


def test_a_chosen_port_is_none_of_the_others_and_not_one_for_outgoing_connections() -> None:
    port = choose_port(None)
    assert choose_port(port, others={port}) != port
    assert port in PORT_RANGE
    assert max(PORT_RANGE) < 32768


RESERVE = """
import sys
from pathlib import Path
from headgate.embedded.host import Reservations
print(Reservations(Path(sys.argv[1])).take(int(sys.argv[2])), flush=True)
sys.stdin.read()
"""


def test_a_port_that_another_process_means_to_use_is_not_taken_until_it_ends(tmp_path: Path) -> None:
    port, mine = choose_port(None), Reservations(tmp_path / "ports")
    command = (sys.executable, "-c", RESERVE, str(tmp_path / "ports"), str(port))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"True\n"
        assert not mine.take(port)
        assert choose_port(port, take=mine.take) != port
        other.kill()
    assert mine.take(port)
    assert mine.take(port)


def test_a_port_asked_for_by_number_must_be_free(taken: int) -> None:
    with pytest.raises(PortTaken) as caught:
        require_port("kafka", taken)
    assert (caught.value.service, caught.value.port, caught.value.pid) == ("kafka", taken, os.getpid())
    assert caught.value.message() == f"port {taken} of kafka is taken by process {os.getpid()}"


def _somebody() -> User:
    """A user whom modes of files concern: root is above them."""
    found = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    return User(found.pw_name, found.pw_uid, found.pw_gid)


def test_an_ordinary_user_runs_services_as_itself() -> None:
    assert service_user("postgres", root=False) is None


def test_root_runs_services_as_the_first_user_that_exists() -> None:
    nobody = pwd.getpwnam("nobody")
    found = service_user("postgres", ("no-such-user", "nobody"), root=True)
    assert found == User("nobody", nobody.pw_uid, nobody.pw_gid)


def test_root_without_another_user_is_an_error() -> None:
    with pytest.raises(NoUnprivilegedUser) as caught:
        service_user("opensearch", ("no-such-user", "nor-this-one"), root=True)
    assert caught.value.detail() == "Looked for no-such-user and nor-this-one."


def test_a_path_that_a_user_cannot_read_is_an_error(tmp_path: Path) -> None:
    closed = private_folder(tmp_path / "closed", None)
    (closed / "file").write_text("x")
    closed.chmod(0)
    with pytest.raises(UnreachableForUser) as caught:
        check_readable(_somebody(), closed / "file", "the file")
    closed.chmod(0o700)
    assert (caught.value.user, caught.value.what) == (_somebody().name, "the file")


def test_a_path_that_a_user_can_read_passes() -> None:
    check_readable(_somebody(), Path("/"), "the root folder")


def test_a_secret_file_is_readable_by_its_owner_alone_also_if_another_was_there(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old and open")
    (tmp_path / "x").chmod(0o666)
    path = private_file(tmp_path / "x", "new", None)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "new"


def _container(path: Path, limit: str, used: int, of_files: int) -> Path:
    (path / "memory.max").write_text(f"{limit}\n")
    (path / "memory.current").write_text(f"{used}\n")
    (path / "memory.stat").write_text(f"anon 1\ninactive_file {of_files}\n")
    return path


def test_a_container_has_what_its_limit_leaves_and_pages_of_files_count_as_free(tmp_path: Path) -> None:
    container = _container(tmp_path, str(100 * MEGABYTE), 90 * MEGABYTE, 20 * MEGABYTE)
    assert available_memory(container) == 30


def test_a_container_over_its_limit_has_nothing(tmp_path: Path) -> None:
    assert available_memory(_container(tmp_path, str(10 * MEGABYTE), 50 * MEGABYTE, 0)) == 0


def test_without_a_limit_the_machine_counts(tmp_path: Path) -> None:
    unlimited = available_memory(_container(tmp_path, "max", 1, 0))
    assert unlimited > 10
    assert abs(unlimited - available_memory(tmp_path / "none")) < 2000


def test_the_memory_of_a_machine_is_that_of_the_smallest_group_around_the_process(tmp_path: Path) -> None:
    own, nowhere = tmp_path / "own", tmp_path / "nowhere"
    own.write_text("12:cpu:/other\n0::/outer/inner\n")
    machine = total_memory(nowhere, nowhere)
    assert machine == psutil.virtual_memory().total // MEGABYTE
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (inner / "memory.max").write_text("max\n")
    assert total_memory(tmp_path, own) == machine
    (inner.parent / "memory.max").write_text(f"{300 * MEGABYTE}\n")
    assert total_memory(tmp_path, own) == 300
    (tmp_path / "memory.max").write_text(f"{200 * MEGABYTE}\n")
    assert total_memory(tmp_path, nowhere) == 200
    (inner / "memory.max").write_text(f"{100 * MEGABYTE}\n")
    assert total_memory(tmp_path, own) == 100


def test_a_limit_of_the_first_version_of_control_groups_counts_too(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("9:memory:/box\n")
    (tmp_path / "memory" / "box").mkdir(parents=True)
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    (tmp_path / "memory" / "box" / "memory.limit_in_bytes").write_text(f"{70 * MEGABYTE}\n")
    assert total_memory(tmp_path, own) == 70


def test_too_little_memory_is_reported_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(NotEnoughMemory) as caught:
        check_resources("opensearch", tmp_path, memory=1_000_000_000, disk=1)
    assert caught.value.needed == 1_000_000_000
    assert 0 < caught.value.available < 1_000_000_000


def test_too_little_disk_is_reported_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(NotEnoughDisk) as caught:
        check_resources("kafka", tmp_path, memory=1, disk=10_000_000_000)
    assert caught.value.folder == str(tmp_path)


def test_free_disk_of_a_folder_that_is_not_there_yet_is_that_of_its_parent(tmp_path: Path) -> None:
    assert abs(free_disk(tmp_path / "a" / "b") - free_disk(tmp_path)) < 2000
