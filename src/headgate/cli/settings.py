"""Settings of a project: the file `headgate.toml` in its folder. Environment variables override it.

    port = 8080
    grpc_port = 8081               # gRPC port for materializations ON DEMAND
    hosts = ["engine.internal"]    # host names besides localhost that requests may use
    world = false                  # true, false, or the folder of the embedded world
    warehouse = "hdfs://data/headgate"

    [spark]
    master = "spark://host:7077"   # or local[8], yarn, k8s://…
    real_time = 16                 # slots for tasks in real time, one for each partition that they read
    memory = "4g"                  # of Spark's heap; by default a quarter of the machine's memory, 1 to 8 GB
    settings = { "spark.executor.memory" = "2g" }

    [queries]                      # the process that runs SELECTs
    memory = "512m"
    at_once = 4
    spool = "1g"

    [quarantine]
    in_catalog = 10000             # bad records that the catalog keeps for each task; more go to the warehouse

    [views]
    spare = "256m"                 # of the disk for old files of a materialized view, beside three copies of it

    [events]                       # a web hook for all events of the catalog
    url = "https://example.org/hook"
    secret = "what they are signed with"

    [log]
    level = "debug"
    file = "engine.log"

The variables are HEADGATE_PORT, HEADGATE_GRPC_PORT, HEADGATE_SPARK_MASTER, HEADGATE_LOG_LEVEL and so on. HEADGATE_SPARK_SETTINGS is a JSON
object, HEADGATE_HOSTS has commas between the names. Relative paths start at the project folder.
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

import click
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from headgate.cli.errors import InvalidSetting, SettingsUnreadable, UnknownSetting
from headgate.errors import HeadgateError, raise_all, similar_names

FILE = "headgate.toml"
project_option = click.option(
    "--project",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    envvar="HEADGATE_PROJECT",
    show_envvar=True,
    help="The project folder. The default is the current folder.",
)
MASTERS = ("local", "spark://", "yarn", "k8s://")


SIZE = re.compile(r"([1-9]\d{0,5})([kmg])", re.IGNORECASE)
LOCAL_THREADS = re.compile(r"local(?:\[(?P<threads>\*|\d+)(?P<failures>,\d+)?\])?")
REAL_TIME_SLOTS = 16  # with more slots, a large batch could start too many Python workers
LEAST_MEMORY = 256 << 20  # Spark does not start with less


def _size(given: str) -> str:
    if SIZE.fullmatch(given) is None:
        raise ValueError("it is a size such as 512m or 2g")
    return given


def _heap(given: str) -> str:
    if size_in_bytes(_size(given)) < LEAST_MEMORY:
        raise ValueError("it is at least 256m")
    return given


Size: TypeAlias = Annotated[str, AfterValidator(_size)]
HeapSize: TypeAlias = Annotated[str, AfterValidator(_heap)]


def size_in_bytes(text: str) -> int:
    found = SIZE.fullmatch(text)
    assert found is not None
    return int(found[1]) << {"k": 10, "m": 20, "g": 30}[found[2].lower()]


class Table(BaseModel):
    """A table of the file. A setting that is not declared is refused."""

    model_config = ConfigDict(extra="forbid")


class SparkSettings(Table):
    """The table `[spark]`."""

    master: str = "local[8]"
    real_time: int | None = Field(
        default=None, ge=0, le=1000
    )  # slots; None: 40 beside those of a local master, or none
    eager: bool = True  # start Spark with the engine, not when a statement first needs it
    memory: HeapSize | None = None  # of the heap; None: what the machine allows
    settings: dict[str, str] = Field(default_factory=dict)

    @property
    def real_time_slots(self) -> int:
        """The slots for tasks in real time. For a cluster they must be set, because the engine cannot know how many slots it has."""
        if self.real_time is not None:
            return self.real_time
        return REAL_TIME_SLOTS if LOCAL_THREADS.fullmatch(self.master) else 0

    @property
    def whole_master(self) -> str:
        """The master with the slots for tasks in real time added, if it is local. Spark makes a thread only when it needs one."""
        found = LOCAL_THREADS.fullmatch(self.master)
        if found is None:
            return self.master
        threads = os.cpu_count() or 1 if found["threads"] == "*" else int(found["threads"] or 1)
        return f"local[{threads + self.real_time_slots}{found['failures'] or ''}]"

    @field_validator("master")
    @classmethod
    def _known(cls, master: str) -> str:
        if not master.startswith(MASTERS):
            raise ValueError("it is local[n], spark://…, yarn or k8s://…")
        return master

    @field_validator("settings", mode="before")
    @classmethod
    def _texts(cls, given: object) -> object:
        """All settings of Spark are texts. A number or boolean in the file is converted to text."""
        if not isinstance(given, dict):
            return given
        return {key: _text(value) for key, value in given.items()}


class QuerySettings(Table):
    """The table `[queries]`: the process that runs SELECTs. Sizes are written as Java writes them: 512m, 2g."""

    eager: bool = True  # start it with the engine, not when a query first needs it
    memory: HeapSize = "512m"  # of its heap
    at_once: int = Field(default=4, ge=1, le=64)  # further queries wait for their turn
    spool: Size = "1g"  # rows on disk that wait for their clients


class QuarantineSettings(Table):
    """The table `[quarantine]`: where bad records are kept."""

    in_catalog: int = Field(default=10_000, ge=0)  # bad records of a task; further ones go to the warehouse


class ViewSettings(Table):
    """The table `[views]`: where materialized views are stored."""

    spare: Size = "256m"  # of the disk for old files of each view, beside three copies of it


class EventSettings(Table):
    """The table `[events]`: the web hook that receives all events of the catalog, and the secret that signs them."""

    url: str | None = None
    secret: SecretStr | None = Field(default=None, validate_default=True)

    @field_validator("url")
    @classmethod
    def _http(cls, url: str | None) -> str | None:
        if url is not None and re.fullmatch(r"https?://[^\s/]+\S*", url) is None:
            raise ValueError("it is an address that begins with http:// or https://")
        return url

    @field_validator("secret")
    @classmethod
    def _signs(cls, secret: SecretStr | None, given: ValidationInfo) -> SecretStr | None:
        if given.data.get("url") is not None and not (secret and secret.get_secret_value()):
            raise ValueError("it is the text that events for the url are signed with")
        return secret


class LogSettings(Table):
    """The table `[log]`. Without a file, the log goes to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    file: Path | None = None


class Settings(BaseSettings):
    """All settings. ``world`` is False, a folder, or True for `.headgate/world` in the project."""

    model_config = SettingsConfigDict(
        extra="forbid", env_prefix="HEADGATE_", env_nested_delimiter="_", env_nested_max_split=1
    )

    port: int = Field(0, ge=0, le=65535)
    grpc_port: int = Field(0, ge=0, le=65535)
    hosts: Annotated[tuple[str, ...], NoDecode] = ()
    world: bool | Path = True
    warehouse: str | None = None
    spark: SparkSettings = Field(default_factory=SparkSettings)
    queries: QuerySettings = Field(default_factory=QuerySettings)
    quarantine: QuarantineSettings = Field(default_factory=QuarantineSettings)
    views: ViewSettings = Field(default_factory=ViewSettings)
    events: EventSettings = Field(default_factory=EventSettings)
    log: LogSettings = Field(default_factory=LogSettings)

    @field_validator("world", mode="before")
    @classmethod
    def _world(cls, given: object) -> object:
        if isinstance(given, str):
            return {"true": True, "false": False}.get(given.lower(), given)
        return given

    @field_validator("hosts", mode="before")
    @classmethod
    def _hosts(cls, given: object) -> object:
        if isinstance(given, str):
            return tuple(host.strip() for host in given.split(",") if host.strip())
        return given

    @field_validator("hosts")
    @classmethod
    def _without_port(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        if not all(map(_is_host, hosts)):
            raise ValueError("")
        return hosts

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over the file, whose content comes as arguments."""
        return env_settings, init_settings

    def world_folder(self, project: Path) -> Path | None:
        if isinstance(self.world, Path):
            return project / self.world
        return project / ".headgate" / "world" if self.world else None

    def warehouse_address(self, project: Path) -> str:
        """A folder, or an address on any Hadoop file system."""
        if self.warehouse is None:
            return str(project / ".headgate" / "warehouse")
        return self.warehouse if "://" in self.warehouse else str(project / self.warehouse)

    def log_file(self, project: Path) -> Path | None:
        return None if self.log.file is None else project / self.log.file


def read_settings(project: Path) -> Settings:
    """The settings of a project folder. The file need not exist. All errors are raised at once."""
    file = project / FILE
    given = _read_file(file)
    try:
        return Settings(**given)
    except SettingsError as error:
        raise InvalidSetting("spark.settings", "the environment", "it is a JSON object") from error
    except ValidationError as error:
        raise_all(_findings(error, given, str(file)))
        raise


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsUnreadable(str(file), error.strerror or type(error).__name__) from error
    except ValueError as error:  # not TOML, or not UTF-8
        reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it is not UTF-8"
        raise SettingsUnreadable(str(file), reason[:1].lower() + reason[1:]) from error


def _findings(error: ValidationError, given: dict[str, Any], file: str) -> Iterator[HeadgateError]:
    seen: set[str] = set()  # pydantic reports one error per branch of a union
    for finding in error.errors(include_url=False, include_input=False):
        path = tuple(str(part) for part in finding["loc"][: _depth(finding["loc"])])
        name = ".".join(path)
        if name in seen:
            continue
        seen.add(name)
        place = f'file "{file}"' if _is_in(given, path) else "the environment"
        if finding["type"] == "extra_forbidden":
            known = _names_beside(path)
            yield UnknownSetting(name, place, known, _near(name, known))
        else:
            yield InvalidSetting(name, place, _reason(name, str(finding["msg"])))


TABLES: dict[str, type[Table]] = {
    "spark": SparkSettings,
    "queries": QuerySettings,
    "quarantine": QuarantineSettings,
    "views": ViewSettings,
    "events": EventSettings,
    "log": LogSettings,
}


def _depth(loc: tuple[int | str, ...]) -> int:
    """How many parts of a location are the name of a setting. The rest are branches of its type."""
    return 2 if loc[0] in TABLES else 1


def _is_in(given: dict[str, Any], path: tuple[str, ...]) -> bool:
    at: Any = given
    for part in path:
        if not isinstance(at, dict) or part not in at:
            return False
        at = at[part]
    return True


def _names_beside(path: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the settings in the same table, or of those outside all tables."""
    table, *rest = path
    return tuple(f"{table}.{name}" for name in TABLES[table].model_fields) if rest else tuple(Settings.model_fields)


def _near(name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Known settings with a similar last word. The name of the table before it is the same for all."""
    last = {one.rpartition(".")[2]: one for one in known}
    return tuple(last[one] for one in similar_names(name.rpartition(".")[2], last))


_REASONS = {
    "port": "it is a number from 0 to 65535",
    "grpc_port": "it is a number from 0 to 65535",
    "hosts": "it is a list of names or addresses, without port and scheme",
    "world": "it is true, false or a folder",
    "spark.real_time": "it is a number of slots from 0 to 1000",
    "queries.at_once": "it is a number from 1 to 64",
    "quarantine.in_catalog": "it is a number of records, at least 0",
    "log.level": f"it is one of {', '.join(get_args(LogSettings.model_fields['level'].annotation))}",
    "spark.settings": "it is a table of Spark's settings, each a text",
    **{table: f"it is a table, [{table}]" for table in TABLES},
}


def _reason(name: str, message: str) -> str:
    """The values that a setting takes, in our own words if there are some, otherwise in the words of pydantic."""
    plain = message.removeprefix("Value error, ").removeprefix("Input ")
    return _REASONS.get(name) or (plain if plain.startswith("it ") else f"it {plain[:1].lower()}{plain[1:]}")


def _is_host(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return re.fullmatch(r"[\w-]+(\.[\w-]+)*", text) is not None


def _text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value
