"""What services and Spark are made of: a Java, and jars from Maven Central in a cache folder.

`jars.lock` names every jar with its version and SHA-256. A jar in the cache counts only if its hash is right, so a broken
download is fetched again. The list is explicit and not transitive: what runs is exactly what the lock names. Ivy, which
pyspark ships, does the downloads: it knows Maven Central, and reads the user's own settings for a mirror.
"""

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

from headgate.embedded import errors
from headgate.errors import HeadgateError, similar_names


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The cache folder, shared by all worlds of a user. It is created if it does not exist.

    HEADGATE_CACHE names it. The default is in the user's cache folder; under root it is a folder that other users can read,
    because some services run as another user. Raises CacheUnusable.
    """
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
            folder.chmod(0o755)  # under any umask, the users of the services must be able to read it
    except OSError as error:
        raise errors.CacheUnusable(str(folder), error.strerror or str(error)) from error
    return folder


def install_once(home: Path, fill: Callable[[Path], None]) -> None:
    """Make a folder of the cache unless it exists. ``fill`` creates it under another name, and it is then renamed, so that
    no process sees half of it."""
    if home.exists():
        return
    fresh = home.with_name(f"{home.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fill(fresh)
    try:
        fresh.rename(home)
    except OSError:  # another process was faster
        shutil.rmtree(fresh, ignore_errors=True)


def package_folder(name: str) -> Path:
    """The folder of an installed Python package, which is not imported."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


OLDEST_JAVA = 17  # for Spark, Kafka and OpenSearch


@dataclass(frozen=True, slots=True)
class Java:
    """A java program and its major version."""

    path: Path
    version: int


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """The java of JAVA_HOME if it is new enough, otherwise the one on the PATH. Raises JavaMissing."""
    found = []
    for path in _java_candidates(environ):
        version = java_version(path)
        if version is not None and version >= OLDEST_JAVA:
            return Java(path, version)
        found.append(f"{path} ({'version ' + str(version) if version else 'which does not run'})")
    raise errors.JavaMissing(tuple(found))


def java_version(path: Path) -> int | None:
    """The major version that `java -version` prints, or None if it cannot be run."""
    try:
        result = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', result.stderr + result.stdout)
    if match is None:
        return None
    major = int(match[1])
    return int(match[2]) if major == 1 and match[2] else major  # Java 8 prints 1.8


def service_options(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Options that Kafka and OpenSearch get besides their own. The tests set them to start services with less work."""
    return tuple(environ.get("HEADGATE_SERVICE_JAVA_OPTIONS", "").split())


def _java_candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH")):
        yield Path(on_path)


Progress: TypeAlias = Callable[[str], None]

TRIES = 3
FOR_TESTS = ("apicurio",)  # another registry, which only our own tests need
IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""  # usepoms=false: the lock names the files, so Ivy need not read a POM for each (12 s instead of 40 s for Kafka)


@dataclass(frozen=True, slots=True)
class Jar:
    """One line of the lock. ``size`` is in bytes."""

    group: str
    artifact: str
    version: str
    classifier: str | None
    extension: str
    sha256: str
    size: int

    @property
    def coordinate(self) -> str:
        """The name in the lock: `group:artifact:version[:classifier][@extension]`."""
        classifier = f":{self.classifier}" if self.classifier else ""
        extension = f"@{self.extension}" if self.extension != "jar" else ""
        return f"{self.group}:{self.artifact}:{self.version}{classifier}{extension}"

    @property
    def file_name(self) -> str:
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{classifier}.{self.extension}"


def fetch(set_name: str, progress: Progress | None = None) -> tuple[Path, ...]:
    """The files of one set of the lock, in the order of the lock. Downloads those that are not in the cache.

    Raises JavaMissing, JarDownloadFailed, JarHashMismatch, CacheUnusable and UnknownJarSet.
    """
    return fetch_jars(jar_set(set_name), cache_folder(), progress)


def jar_sets() -> dict[str, tuple[Jar, ...]]:
    """All sets of the lock by name."""
    return read_lock((files("headgate.embedded") / "jars.lock").read_text("utf-8"))


def jar_set(name: str) -> tuple[Jar, ...]:
    sets = jar_sets()
    if name not in sets:
        raise errors.UnknownJarSet(name, similar_names(name, sets))
    return sets[name]


def missing_jars(jars: Iterable[Jar], cache: Path) -> tuple[Jar, ...]:
    """The jars that the cache does not have with the right hash."""
    return tuple(jar for jar in dict.fromkeys(jars) if hash_of(jar_path(jar, cache)) != jar.sha256)


def jar_path(jar: Jar, cache: Path) -> Path:
    return cache / "jars" / jar.group / jar.file_name


def fetch_jars(jars: Sequence[Jar], cache: Path, progress: Progress | None = None) -> tuple[Path, ...]:
    """Like ``fetch``, for any jars and cache folder. If two processes fetch at once, the second waits for the first."""
    if missing_jars(jars, cache):
        report = progress or (lambda _: None)
        with _download_lock(cache, report):
            _download(jars, cache, report)
    return tuple(jar_path(jar, cache) for jar in jars)


def read_lock(text: str) -> dict[str, tuple[Jar, ...]]:
    """The sets of a lock file: lines `[set]`, and below each its jars. Raises JarLockUnreadable."""
    sets: dict[str, tuple[Jar, ...]] = {}
    current = ""
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if heading := re.fullmatch(r"\[([\w-]+)\]", line):
            current = heading[1]
            sets[current] = ()
        elif line and not line.startswith("#"):
            if not current or (jar := _read_line(line)) is None:
                raise errors.JarLockUnreadable(number, line)
            sets[current] += (jar,)
    return sets


def _read_line(line: str) -> Jar | None:
    match = re.fullmatch(r"([\w.-]+):([\w.-]+):([\w.-]+)(?::([\w.-]+))?(?:@([\w.]+))?\s+([0-9a-f]{64})\s+(\d+)", line)
    if match is None:
        return None
    group, artifact, version, classifier, extension, sha256, size = match.groups()
    return Jar(group, artifact, version, classifier, extension or "jar", sha256, int(size))


def hash_of(path: Path) -> str | None:
    """The SHA-256 of a file in hex digits, or None if there is no file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


@contextmanager
def _download_lock(cache: Path, report: Progress) -> Iterator[None]:
    """Hold the download lock of the cache. The kernel releases it when the process ends, also by a kill."""
    try:
        (cache / "jars").mkdir(parents=True, exist_ok=True)
        lock = (cache / "jars" / ".lock").open("w")
    except OSError as error:
        raise errors.CacheUnusable(str(cache), error.strerror or str(error)) from error
    with lock:
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            report("another run is downloading, waiting for it")
            flock(lock, LOCK_EX)
        yield


def _download(jars: Sequence[Jar], cache: Path, report: Progress) -> None:
    """Download what is missing, in several tries. Ivy keeps what has arrived, so a try continues the one before."""
    for attempt in range(1, TRIES + 1):
        wanted = missing_jars(jars, cache)
        if not wanted:
            break
        megabytes = sum(jar.size for jar in wanted) / 1e6
        again = f", try {attempt}" if attempt > 1 else ""
        report(f"downloading {len(wanted)} jars, {megabytes:.0f} MB{again}")
        arrived = run_ivy(wanted, cache, report)
        wrong = [jar for jar, path in arrived.items() if not _move_to_cache(jar, path, cache)]
        if wrong:
            shutil.rmtree(_ivy_cache(cache))  # otherwise Ivy would return the same wrong file again
            raise errors.JarHashMismatch(wrong[0].coordinate, wrong[0].sha256, str(hash_of(arrived[wrong[0]])))
    if left := missing_jars(jars, cache):
        log = _download_log(cache)
        raise errors.JarDownloadFailed(tuple(jar.coordinate for jar in left), _reason(log), str(log))
    shutil.rmtree(_ivy_cache(cache), ignore_errors=True)


def run_ivy(jars: Sequence[Jar], cache: Path, report: Progress) -> dict[Jar, Path]:
    """Download jars in one run of Ivy. Returns the file of each jar that arrived.

    Ivy's own cache keeps finished files, so the next run continues after a kill.
    """
    work = cache / "jars" / ".arrived"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "ivysettings.xml").write_text(IVY_SETTINGS)
    (work / "ivy.xml").write_text(_ivy_file(jars))
    settings = os.environ.get("HEADGATE_IVY_SETTINGS") or str(work / "ivysettings.xml")
    pattern = f"{work}/[organisation]/[artifact]-[revision](-[classifier]).[ext]"
    command = [
        *(str(find_java().path), "-cp", os.pathsep.join(map(str, _ivy_class_path())), "org.apache.ivy.Main"),
        *("-settings", settings, "-cache", str(_ivy_cache(cache))),
        *("-ivy", str(work / "ivy.xml"), "-retrieve", pattern),
    ]
    _run_with_progress(command, _download_log(cache), len(jars), report)
    paths = {jar: work / jar.group / jar.file_name for jar in jars}
    return {jar: path for jar, path in paths.items() if path.exists()}


def _ivy_cache(cache: Path) -> Path:
    return cache / "jars" / ".ivy"


def _download_log(cache: Path) -> Path:
    return cache / "jars" / "download.log"


def _run_with_progress(command: list[str], log: Path, total: int, report: Progress) -> None:
    """Run Ivy and write its output to a log. Reports one line per file.

    The exit status is ignored: which files arrived says more.
    """
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
                report(f"{done}/{total} {arrived[1]}")


def _move_to_cache(jar: Jar, arrived: Path, cache: Path) -> bool:
    """Move a downloaded file to its place in the cache. Returns False if its hash is wrong."""
    if hash_of(arrived) != jar.sha256:
        return False
    final = jar_path(jar, cache)
    final.parent.mkdir(exist_ok=True)
    shutil.move(arrived, final)
    final.chmod(0o644)
    return True


def _ivy_file(jars: Sequence[Jar]) -> str:
    """The module file that lists exactly these jars, without their own dependencies."""
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
    jars = package_folder("pyspark") / "jars"
    return tuple(next(jars.glob(pattern)) for pattern in ("ivy-*.jar", "commons-cli-*.jar", "commons-lang3-*.jar"))


def _reason(log: Path) -> str:
    """The first line of Ivy's log that names a failure."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    failures = [
        line for line in lines if re.search(r"exception|failed|refused|not found|unknownhost|timed out", line, re.I)
    ]
    return failures[0].strip(": ") + "." if failures else "Ivy did not report why."


def main(names: Sequence[str]) -> None:
    """`python -m headgate.embedded.jars [SET ...]`: fetch these sets, or all sets that a world and Spark need."""
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
