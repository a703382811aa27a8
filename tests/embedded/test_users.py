from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

import pytest

from headgate.embedded.errors import NoUnprivilegedUser, UnreachableForUser
from headgate.embedded.users import User, check_reach, own_file, own_folder, service_user

pytestmark = pytest.mark.unit


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


def test_root_without_another_user_is_told_so() -> None:
    with pytest.raises(NoUnprivilegedUser) as caught:
        service_user("opensearch", ("no-such-user", "nor-this-one"), root=True)
    assert caught.value.detail() == "Looked for no-such-user and nor-this-one."


def test_what_a_user_cannot_reach_is_told(tmp_path: Path) -> None:
    closed = own_folder(tmp_path / "closed", None)
    (closed / "file").write_text("x")
    closed.chmod(0)
    with pytest.raises(UnreachableForUser) as caught:
        check_reach(_somebody(), closed / "file", "the file")
    closed.chmod(0o700)
    assert (caught.value.user, caught.value.what) == (_somebody().name, "the file")


def test_what_a_user_can_reach_passes() -> None:
    check_reach(_somebody(), Path("/"), "the root folder")


def test_a_secret_file_is_readable_by_its_owner_alone_also_if_another_was_there(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old and open")
    (tmp_path / "x").chmod(0o666)
    path = own_file(tmp_path / "x", "new", None)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "new"
