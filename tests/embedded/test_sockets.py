from __future__ import annotations

import socket
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from headgate.embedded.sockets import LONGEST, is_served, make_socket_path

pytestmark = pytest.mark.unit


def test_the_path_is_short_however_deep_the_folder() -> None:
    path = make_socket_path(Path("/" + "deep/" * 200), {})
    assert len(str(path)) <= LONGEST
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        assert is_served(path)
    assert not is_served(path)
    path.unlink()


def test_two_folders_have_two_paths() -> None:
    assert make_socket_path(Path("/a"), {}) != make_socket_path(Path("/b"), {})


def test_the_systems_runtime_folder_is_used_if_it_is_short() -> None:
    with TemporaryDirectory() as runtime:
        path = make_socket_path(Path("/a"), {"XDG_RUNTIME_DIR": runtime})
        assert path.parent == Path(runtime) / "headgate"
        assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_runtime_folder_that_is_too_long_or_open_to_others_is_not_used(tmp_path: Path) -> None:
    usual = make_socket_path(Path("/a"), {}).parent
    (tmp_path / ("x" * 100)).mkdir()
    assert make_socket_path(Path("/a"), {"XDG_RUNTIME_DIR": str(tmp_path / ("x" * 100))}).parent == usual
    with TemporaryDirectory() as runtime:
        (Path(runtime) / "headgate").mkdir()
        (Path(runtime) / "headgate").chmod(0o777)
        assert make_socket_path(Path("/a"), {"XDG_RUNTIME_DIR": runtime}).parent == usual
