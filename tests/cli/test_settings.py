from __future__ import annotations

from pathlib import Path

import pytest

from headgate.cli.errors import InvalidSetting, SettingsUnreadable, UnknownSetting
from headgate.cli.settings import read_settings, size_in_bytes
from headgate.errors import ErrorGroup

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PORT", "WORLD", "WAREHOUSE", "SPARK_MASTER", "SPARK_SETTINGS", "SPARK_EAGER", "LOG_LEVEL"):
        monkeypatch.delenv(f"HEADGATE_{name}", raising=False)


def _write(folder: Path, text: str) -> Path:
    (folder / "headgate.toml").write_text(text)
    return folder


def test_a_project_without_a_file_has_the_defaults(tmp_path: Path) -> None:
    settings = read_settings(tmp_path)
    assert (settings.port, settings.spark.master, settings.spark.settings) == (0, "local[8]", {})
    assert settings.world_folder(tmp_path) == tmp_path / ".headgate" / "world"
    assert settings.warehouse_address(tmp_path) == str(tmp_path / ".headgate" / "warehouse")
    assert settings.log_file(tmp_path) is None


def test_the_file_sets_everything(tmp_path: Path) -> None:
    project = _write(
        tmp_path,
        """
        port = 8080
        world = "elsewhere"
        warehouse = "hdfs://data:9000/headgate"
        [spark]
        master = "spark://host:7077"
        settings = { "spark.executor.cores" = 2, "spark.speculation" = true, "spark.executor.memory" = "2g" }
        [log]
        level = "debug"
        file = "logs/engine.log"
        """,
    )
    settings = read_settings(project)
    assert (settings.port, settings.spark.master, settings.log.level) == (8080, "spark://host:7077", "debug")
    assert settings.world_folder(project) == project / "elsewhere"
    assert settings.warehouse_address(project) == "hdfs://data:9000/headgate"
    assert settings.log_file(project) == project / "logs" / "engine.log"
    assert settings.spark.settings == {
        "spark.executor.cores": "2",
        "spark.speculation": "true",
        "spark.executor.memory": "2g",
    }


def test_memory_quarantine_and_views_can_be_set_in_the_file_and_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = read_settings(tmp_path)
    assert (settings.spark.memory, settings.quarantine.in_catalog, settings.views.spare) == (None, 10_000, "256m")
    _write(tmp_path, '[spark]\nmemory = "2g"\n[quarantine]\nin_catalog = 5')
    settings = read_settings(tmp_path)
    assert (settings.spark.memory, settings.quarantine.in_catalog) == ("2g", 5)
    monkeypatch.setenv("HEADGATE_SPARK_MEMORY", "3g")
    monkeypatch.setenv("HEADGATE_QUARANTINE_IN_CATALOG", "0")
    settings = read_settings(tmp_path)
    assert (settings.spark.memory, settings.quarantine.in_catalog) == ("3g", 0)


def test_the_environment_comes_before_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = _write(tmp_path, 'port = 1\n[spark]\nmaster = "yarn"\nsettings = { "a" = "file", "b" = "file" }')
    monkeypatch.setenv("HEADGATE_PORT", "2")
    monkeypatch.setenv("HEADGATE_SPARK_MASTER", "k8s://https://host:443")
    monkeypatch.setenv("HEADGATE_SPARK_SETTINGS", '{"b": "environment"}')
    monkeypatch.setenv("HEADGATE_LOG_LEVEL", "error")
    settings = read_settings(project)
    assert (settings.port, settings.spark.master, settings.log.level) == (
        2,
        "k8s://https://host:443",
        "error",
    )
    assert settings.spark.settings == {"a": "file", "b": "environment"}


@pytest.mark.parametrize("written", ["false", "False"])
def test_a_project_may_have_no_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.setenv("HEADGATE_WORLD", written)
    assert read_settings(tmp_path).world_folder(tmp_path) is None


def test_queries_have_settings_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_QUERIES_AT_ONCE", "2")
    queries = read_settings(_write(tmp_path, '[queries]\nmemory = "1G"\nspool = "64m"')).queries
    assert (queries.at_once, queries.memory, size_in_bytes(queries.spool)) == (2, "1G", 64 << 20)


def test_a_world_in_the_environment_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_WORLD", str(tmp_path / "world"))
    assert read_settings(tmp_path).world_folder(tmp_path / "project") == tmp_path / "world"


def test_other_variables_of_headgate_are_no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_SECRET_KEY", "x")
    monkeypatch.setenv("HEADGATE_CACHE", "x")
    assert read_settings(tmp_path).port == 0


@pytest.mark.parametrize(
    ("text", "setting", "similar"),
    [
        ("prot = 1", "prot", ("port",)),
        ('[spark]\nmastr = "yarn"', "spark.mastr", ("spark.master",)),
        ("[log]\nlevels = 'info'", "log.levels", ("log.level",)),
        ("[queries]\nmemry = '1g'", "queries.memry", ("queries.memory",)),
        ("[quarantine]\nin_catlog = 1", "quarantine.in_catlog", ("quarantine.in_catalog",)),
        ("colour = 'red'", "colour", ()),
    ],
)
def test_an_unknown_setting_is_an_error_with_similar_names(
    tmp_path: Path, text: str, setting: str, similar: tuple[str, ...]
) -> None:
    with pytest.raises(UnknownSetting) as raised:
        read_settings(_write(tmp_path, text))
    assert (raised.value.setting, raised.value.similar) == (setting, similar)
    assert "headgate.toml" in raised.value.message()


def test_an_unknown_setting_of_the_environment_names_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_SPARK_MASTR", "yarn")
    with pytest.raises(UnknownSetting) as raised:
        read_settings(tmp_path)
    assert raised.value.message() == 'setting "spark.mastr" of the environment does not exist'


@pytest.mark.parametrize(
    ("text", "setting", "reason"),
    [
        ("port = 99999", "port", "it is a number from 0 to 65535"),
        ("world = 3.5", "world", "it is true, false or a folder"),
        ('[spark]\nmaster = "mesos://x"', "spark.master", "it is local[n], spark://…, yarn or k8s://…"),
        ("[spark]\nsettings = 3", "spark.settings", "it is a table of Spark's settings, each a text"),
        ('[log]\nlevel = "loud"', "log.level", "it is one of debug, info, warning, error"),
        ("spark = 3", "spark", "it is a table, [spark]"),
        ("queries = 3", "queries", "it is a table, [queries]"),
        ("[queries]\nat_once = 0", "queries.at_once", "it is a number from 1 to 64"),
        ('[queries]\nspool = "much"', "queries.spool", "it is a size such as 512m or 2g"),
        ('[queries]\nmemory = "64m"', "queries.memory", "it is at least 256m"),
        ('[spark]\nmemory = "64m"', "spark.memory", "it is at least 256m"),
        ('[spark]\nmemory = "half"', "spark.memory", "it is a size such as 512m or 2g"),
        ("[quarantine]\nin_catalog = -1", "quarantine.in_catalog", "it is a number of records, at least 0"),
        ('[views]\nspare = "some"', "views.spare", "it is a size such as 512m or 2g"),
        ("quarantine = 3", "quarantine", "it is a table, [quarantine]"),
        ("grpc_port = 70000", "grpc_port", "it is a number from 0 to 65535"),
        ('[events]\nurl = "ftp://x"', "events.url", "it is an address that begins with http:// or https://"),
        ('[events]\nurl = "http://x"', "events.secret", "it is the text that events for the url are signed with"),
    ],
)
def test_a_value_that_is_not_allowed_says_what_is(tmp_path: Path, text: str, setting: str, reason: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        read_settings(_write(tmp_path, text))
    assert (raised.value.setting, raised.value.reason) == (setting, reason)


def test_all_errors_are_raised_at_once(tmp_path: Path) -> None:
    with pytest.raises(ErrorGroup) as raised:
        read_settings(_write(tmp_path, "prot = 1\nport = -1\n[log]\nlevel = 'loud'"))
    assert {error.code for error in raised.value.errors} == {"CLI-0202", "CLI-0203"}
    assert len(raised.value.errors) == 3


def test_a_value_is_never_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting) as raised:
        read_settings(_write(tmp_path, '[spark]\nsettings = { "password" = ["hunter2"] }'))
    assert "hunter2" not in raised.value.diagnostic().render()


@pytest.mark.parametrize("content", [b"port = = 1", b"port = '\xff'"])
def test_a_file_that_is_no_toml_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "headgate.toml").write_bytes(content)
    with pytest.raises(SettingsUnreadable):
        read_settings(tmp_path)


def test_hosts_are_a_list_in_the_file_and_have_commas_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = _write(tmp_path, 'hosts = ["engine.internal", "10.0.0.7"]')
    assert read_settings(project).hosts == ("engine.internal", "10.0.0.7")
    monkeypatch.setenv("HEADGATE_HOSTS", "a.example, fd00::7")
    assert read_settings(project).hosts == ("a.example", "fd00::7")


@pytest.mark.parametrize("host", ["http://h", "h:80", "u@h", "*", "a b", "[::1]", ""])
def test_a_host_has_neither_port_nor_scheme(tmp_path: Path, host: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        read_settings(_write(tmp_path, f'hosts = ["{host}"]'))
    assert raised.value.setting == "hosts"


def test_a_local_engine_has_threads_for_real_time_and_a_cluster_has_those_that_are_promised(tmp_path: Path) -> None:
    assert read_settings(tmp_path).spark.whole_master == "local[24]"
    spark = read_settings(_write(tmp_path, '[spark]\nmaster = "local[4]"\nreal_time = 6')).spark
    assert (spark.whole_master, spark.real_time_slots) == ("local[10]", 6)
    assert read_settings(_write(tmp_path, '[spark]\nmaster = "local[2,3]"')).spark.whole_master == "local[18,3]"
    assert read_settings(_write(tmp_path, '[spark]\nmaster = "local"')).spark.whole_master == "local[17]"
    spark = read_settings(_write(tmp_path, '[spark]\nmaster = "spark://host:7077"')).spark
    assert (spark.whole_master, spark.real_time_slots) == ("spark://host:7077", 0)
    spark = read_settings(_write(tmp_path, '[spark]\nmaster = "yarn"\nreal_time = 8')).spark
    assert (spark.whole_master, spark.real_time_slots) == ("yarn", 8)


def test_the_slots_of_real_time_are_a_number(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting) as refused:
        read_settings(_write(tmp_path, "[spark]\nreal_time = -1"))
    assert "a number of slots from 0 to 1000" in refused.value.reason


def test_the_secret_of_the_web_hook_may_come_from_the_environment_and_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_EVENTS_SECRET", "hunter2")
    monkeypatch.setenv("HEADGATE_GRPC_PORT", "8081")
    settings = read_settings(_write(tmp_path, '[events]\nurl = "https://example.org/hook"'))
    assert settings.grpc_port == 8081
    assert settings.events.url == "https://example.org/hook"
    assert settings.events.secret is not None
    assert settings.events.secret.get_secret_value() == "hunter2"
    assert "hunter2" not in repr(settings)
