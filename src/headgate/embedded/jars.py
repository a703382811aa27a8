"""Java and jars: finding a Java, the cache folder, and downloading what jars.lock names."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_NB, flock
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias
from xml.sax.saxutils import quoteattr

from headgate.embedded.errors import (
    CacheUnusable,
    JarDownloadFailed,
    JarHashMismatch,
    JarLockUnreadable,
    JavaMissing,
    UnknownJarSet,
)
from headgate.errors import HeadgateError, similar_names


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """HEADGATE_CACHE; for root a folder that the services' own user can read; else the user's cache folder."""
    if named := environ.get("HEADGATE_CACHE"):
        folder = Path(named).absolute()
    elif os.geteuid() == 0:
        folder = Path("/var/cache/headgate")
    elif named := environ.get("XDG_CACHE_HOME"):
        folder = Path(named) / "headgate"
    else:
        folder = Path.home() / ".cache" / "headgate"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0 and folder.stat().st_mode & 0o055 != 0o055:
            folder.chmod(0o755)  # whatever the umask is, the services' own user must reach it
    except OSError as error:
        raise CacheUnusable(str(folder), error.strerror or str(error)) from error
    return folder


OLDEST = 17


@dataclass(frozen=True, slots=True)
class Java:
    path: Path
    version: int


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """JAVA_HOME's java if it is new enough, else the one on the PATH."""
    found = []
    for path in _candidates(environ):
        version = java_version(path)
        if version is not None and version >= OLDEST:
            return Java(path, version)
        found.append(f"{path} ({'version ' + str(version) if version else 'which does not run'})")
    raise JavaMissing(tuple(found))


def java_version(path: Path) -> int | None:
    """The major version that `java -version` tells, or None if it cannot be run."""
    try:
        told = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', told.stderr + told.stdout)
    if match is None:
        return None
    major = int(match[1])
    return int(match[2]) if major == 1 and match[2] else major  # Java 8 called itself 1.8


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH")):
        yield Path(on_path)


Progress: TypeAlias = Callable[[str], None]

TRIES = 3
FOR_TESTS = ("apicurio",)  # a registry that we did not write; only our own tests need it
SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""  # usepoms=false: we ask for files by name, so Ivy need not read a POM for each (12 s instead of 40 for the broker)


@dataclass(frozen=True, slots=True)
class Jar:
    group: str
    artifact: str
    version: str
    classifier: str | None
    extension: str
    sha256: str
    size: int

    @property
    def coordinate(self) -> str:
        classifier = f":{self.classifier}" if self.classifier else ""
        extension = f"@{self.extension}" if self.extension != "jar" else ""
        return f"{self.group}:{self.artifact}:{self.version}{classifier}{extension}"

    @property
    def file_name(self) -> str:
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{classifier}.{self.extension}"


def fetch(set_name: str, progress: Progress | None = None) -> tuple[Path, ...]:
    """The files of one set of the lock, in its order, downloaded if they are not in the cache yet."""
    return fetch_jars(jar_set(set_name), cache_folder(), progress)


def jar_sets() -> dict[str, tuple[Jar, ...]]:
    return read_lock((files("headgate.embedded") / "jars.lock").read_text("utf-8"))


def jar_set(name: str) -> tuple[Jar, ...]:
    sets = jar_sets()
    if name not in sets:
        raise UnknownJarSet(name, similar_names(name, sets))
    return sets[name]


def missing_jars(jars: Iterable[Jar], cache: Path) -> tuple[Jar, ...]:
    """The jars that are not in the cache with the hash that the lock names."""
    return tuple(jar for jar in dict.fromkeys(jars) if hash_of(jar_path(jar, cache)) != jar.sha256)


def jar_path(jar: Jar, cache: Path) -> Path:
    return cache / "jars" / jar.group / jar.file_name


def fetch_jars(jars: Sequence[Jar], cache: Path, progress: Progress | None = None) -> tuple[Path, ...]:
    """Like `fetch`, for any jars and cache folder. Of two runs at once, the second waits and finds them there."""
    if missing_jars(jars, cache):
        say = progress or (lambda _: None)
        with _only_one(cache, say):
            _download(jars, cache, say)
    return tuple(jar_path(jar, cache) for jar in jars)


def read_lock(text: str) -> dict[str, tuple[Jar, ...]]:
    sets: dict[str, tuple[Jar, ...]] = {}
    current = ""
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if heading := re.fullmatch(r"\[([\w-]+)\]", line):
            current = heading[1]
            sets[current] = ()
        elif line and not line.startswith("#"):
            if not current or (jar := _read_line(line)) is None:
                raise JarLockUnreadable(number, line)
            sets[current] += (jar,)
    return sets


def _read_line(line: str) -> Jar | None:
    match = re.fullmatch(
        r"([\w.-]+):([\w.-]+):([\w.-]+)(?::([\w.-]+))?(?:@([\w.]+))?\s+([0-9a-f]{64})\s+(\d+)", line
    )
    if match is None:
        return None
    group, artifact, version, classifier, extension, sha256, size = match.groups()
    return Jar(group, artifact, version, classifier, extension or "jar", sha256, int(size))


def hash_of(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


@contextmanager
def _only_one(cache: Path, say: Progress) -> Iterator[None]:
    """Hold the cache's download lock; it goes with the process, so a killed run leaves nothing locked."""
    try:
        (cache / "jars").mkdir(parents=True, exist_ok=True)
        lock = (cache / "jars" / ".lock").open("w")
    except OSError as error:
        raise CacheUnusable(str(cache), error.strerror or str(error)) from error
    with lock:
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            say("another run is downloading, waiting for it")
            flock(lock, LOCK_EX)
        yield


def _download(jars: Sequence[Jar], cache: Path, say: Progress) -> None:
    for attempt in range(1, TRIES + 1):
        wanted = missing_jars(jars, cache)
        if not wanted:
            break
        megabytes = sum(jar.size for jar in wanted) / 1e6
        say(
            f"downloading {len(wanted)} jars, {megabytes:.0f} MB"
            + (f", try {attempt}" if attempt > 1 else "")
        )
        arrived = run_ivy(wanted, cache, say)
        wrong = [jar for jar, path in arrived.items() if not _take(jar, path, cache)]
        if wrong:
            shutil.rmtree(_ivy_cache(cache))  # or the next run would be given the same file again
            raise JarHashMismatch(wrong[0].coordinate, wrong[0].sha256, str(hash_of(arrived[wrong[0]])))
    if left := missing_jars(jars, cache):
        log = _log(cache)
        raise JarDownloadFailed(tuple(jar.coordinate for jar in left), _reason(log), str(log))
    shutil.rmtree(_ivy_cache(cache), ignore_errors=True)


def run_ivy(jars: Sequence[Jar], cache: Path, say: Progress) -> dict[Jar, Path]:
    """One Ivy run for all jars: where each that arrived lies. Ivy's own cache keeps them if this run is killed."""
    work = cache / "jars" / ".arrived"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "ivysettings.xml").write_text(SETTINGS)
    (work / "ivy.xml").write_text(_ivy_file(jars))
    settings = os.environ.get("HEADGATE_IVY_SETTINGS") or str(work / "ivysettings.xml")
    pattern = f"{work}/[organisation]/[artifact]-[revision](-[classifier]).[ext]"
    command = [
        *(str(find_java().path), "-cp", os.pathsep.join(map(str, _ivy_class_path())), "org.apache.ivy.Main"),
        *("-settings", settings, "-cache", str(_ivy_cache(cache))),
        *("-ivy", str(work / "ivy.xml"), "-retrieve", pattern),
    ]
    _follow(command, _log(cache), len(jars), say)
    places = {jar: work / jar.group / jar.file_name for jar in jars}
    return {jar: place for jar, place in places.items() if place.exists()}


def _ivy_cache(cache: Path) -> Path:
    return cache / "jars" / ".ivy"


def _log(cache: Path) -> Path:
    return cache / "jars" / "download.log"


def _follow(command: list[str], log: Path, total: int, say: Progress) -> None:
    """Run Ivy, its output into the log, one line of progress per file. Its exit status says less than the files."""
    done = 0
    with (
        log.open("w") as out,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy,
    ):
        assert ivy.stdout is not None
        for line in ivy.stdout:
            out.write(line)
            if arrived := re.search(r"\[SUCCESSFUL \] \S+!(\S+) ", line):
                done += 1
                say(f"{done}/{total} {arrived[1]}")


def _take(jar: Jar, arrived: Path, cache: Path) -> bool:
    """Put the file where it belongs, if it is what the lock names."""
    if hash_of(arrived) != jar.sha256:
        return False
    final = jar_path(jar, cache)
    final.parent.mkdir(exist_ok=True)
    shutil.move(arrived, final)
    final.chmod(0o644)
    return True


def _ivy_file(jars: Sequence[Jar]) -> str:
    dependencies = "\n".join(map(_ivy_dependency, jars))
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">\n'
        '<info organisation="headgate" module="jars"/>\n'
        '<configurations><conf name="default"/></configurations>\n<dependencies>\n'
        f"{dependencies}\n"
        '<conflict org="*" module="*" manager="all"/></dependencies>\n</ivy-module>\n'
    )


def _ivy_dependency(jar: Jar) -> str:
    classifier = f" m:classifier={quoteattr(jar.classifier)}" if jar.classifier else ""
    kind = quoteattr(jar.extension)
    return (
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} rev={quoteattr(jar.version)} "
        f'transitive="false" conf="default->*"><artifact name={quoteattr(jar.artifact)} type={kind} ext={kind}{classifier}/></dependency>'
    )


def _ivy_class_path() -> tuple[Path, ...]:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    jars = Path(spec.origin).parent / "jars"
    return tuple(
        next(jars.glob(pattern)) for pattern in ("ivy-*.jar", "commons-cli-*.jar", "commons-lang3-*.jar")
    )


def _reason(log: Path) -> str:
    """Ivy's own words for what failed, without its decoration."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    told = [
        line
        for line in lines
        if re.search(r"exception|failed|refused|not found|unknownhost|timed out", line, re.I)
    ]
    return told[0].strip(": ") + "." if told else "Ivy did not say why."


def main(names: Sequence[str]) -> None:
    """`python -m headgate.embedded.jars [SET ...]`: fetch these sets, or all that a world and Spark need."""
    wanted = names or [name for name in jar_sets() if name not in FOR_TESTS]
    jars = [jar for name in wanted for jar in jar_set(name)]
    try:
        fetch_jars(jars, cache_folder(), _print_progress)
    except HeadgateError as error:
        sys.exit(error.diagnostic().render())


def _print_progress(line: str) -> None:
    sys.stdout.write(f"  {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
