"""Configuration of the services before they start, and checks that keep them from starting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.embedded.errors import JavaTooNew, PostgresDataOfOtherVersion, ServiceDidNotStart
from headgate.embedded.host import private_file, private_folder
from headgate.embedded.service import SERVICES, Placement, service_name
from headgate.embedded.services.opensearch import OpenSearch, configure
from headgate.embedded.services.postgres import Postgres, check_version, password

pytestmark = pytest.mark.unit


def _site(tmp_path: Path) -> Placement:
    (tmp_path / "config").mkdir(parents=True)
    return Placement(tmp_path, (20001, 20002), None, tmp_path, tmp_path / "log")


def test_opensearch_has_one_data_folder_also_with_a_comma_in_its_path(tmp_path: Path) -> None:
    placement = _site(tmp_path / "here, there")
    configure(placement)
    lines = (placement.data / "config" / "opensearch.yml").read_text().splitlines()
    settings = {name: json.loads(value) for name, value in (line.split(": ", 1) for line in lines)}
    assert settings["path.data"] == [str(tmp_path / "here, there" / "data")]
    assert (settings["network.host"], settings["http.port"]) == ("127.0.0.1", 20001)


def test_opensearch_is_not_started_on_a_java_that_has_no_security_manager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = private_file(tmp_path / "java", "#!/bin/sh\necho 'openjdk version \"25.0.1\"' >&2\n", None)
    (tmp_path / "bin").mkdir()
    java.chmod(0o700)
    java.rename(tmp_path / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaTooNew) as caught:
        OpenSearch().prepare(_site(tmp_path))
    assert caught.value.message() == "opensearch runs on Java up to 23, found version 25"


@pytest.mark.parametrize("found", ["16", "17", "19"])
def test_data_of_another_major_version_of_postgres_is_refused(tmp_path: Path, found: str) -> None:
    (tmp_path / "PG_VERSION").write_text(f"{found}\n")
    with pytest.raises(PostgresDataOfOtherVersion) as caught:
        check_version(tmp_path)
    assert (caught.value.found, caught.value.expected) == (found, "18")


def test_data_of_this_version_and_no_data_yet_pass(tmp_path: Path) -> None:
    check_version(tmp_path)
    (tmp_path / "PG_VERSION").write_text("18\n")
    check_version(tmp_path)


def test_data_of_a_killed_initdb_is_created_again(tmp_path: Path) -> None:
    private_folder(tmp_path / "postgres" / "data", None)
    (tmp_path / "postgres" / "data" / "PG_VERSION").write_text("18\n")
    placement = Placement(
        tmp_path / "postgres", (20001,), None, private_folder(tmp_path / "secrets", None), tmp_path / "log"
    )
    assert Postgres().prepare(placement).setup is None
    (placement.data / "initial-password").write_text("x")
    first = Postgres().prepare(placement).setup
    assert first is not None
    assert Path(first.arguments[0]).name == "initdb"
    assert not (placement.data / "data").exists()


def test_a_lost_password_is_reported_with_the_name_of_its_file(tmp_path: Path) -> None:
    with pytest.raises(ServiceDidNotStart) as caught:
        password(_site(tmp_path))
    assert str(tmp_path / "postgres") in caught.value.reason


def test_a_service_is_known_by_its_name_and_opensearch_also_by_its_api() -> None:
    assert [service_name(one) for one in SERVICES] == list(SERVICES)
    assert service_name("elasticsearch") == "opensearch"
