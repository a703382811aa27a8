"""What can be missing or go wrong in an embedded world. WLD-01xx: Java and jars; WLD-02xx and up: services."""

from __future__ import annotations

from headgate.errors import HeadgateError


class WorldError(HeadgateError):
    """An error of the embedded world: WLD-…."""

    retryable = True


class JavaMissing(WorldError, code="WLD-0101"):
    """Neither JAVA_HOME nor the PATH has a Java that is new enough."""

    found: tuple[str, ...] = ()
    MESSAGE = "Java 17 or newer was not found"
    DETAIL = "Looked at JAVA_HOME and at java on the PATH."
    HINT = (
        "Install it, for example with `apt-get install openjdk-17-jre-headless`, `dnf install "
        "java-17-openjdk-headless` or `brew install openjdk@17`, or set JAVA_HOME."
    )

    def detail(self) -> str:
        found = f" Found only {', '.join(self.found)}." if self.found else ""
        return f"{super().detail()}{found}"


class UnknownJarSet(WorldError, code="WLD-0102"):
    """A set of jars is named that the lock file does not have."""

    name: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'jar set "{name}" does not exist'


class JarLockUnreadable(WorldError, code="WLD-0103"):
    """A line of the file that pins the jars has the wrong form."""

    line: int
    text: str
    MESSAGE = "line {line} of the jar lock cannot be read: {text}"
    HINT = "A line is `group:artifact:version[:classifier][@ext] sha256 bytes`. Run `make lock` to write it anew."


class JarDownloadFailed(WorldError, code="WLD-0104"):
    """A jar is not in the cache and could not be downloaded."""

    coordinates: tuple[str, ...]
    reason: str
    log: str
    MESSAGE = "could not download {what}"
    DETAIL = "{reason} The whole log is in {log}."
    HINT = (
        "Check the network and run the command again: what has arrived is kept. Behind a mirror, point "
        "HEADGATE_IVY_SETTINGS at an ivysettings.xml of your own."
    )

    @property
    def what(self) -> str:
        rest = len(self.coordinates) - 1
        return self.coordinates[0] + (f" and {rest} more jars" if rest else "")


class JarHashMismatch(WorldError, code="WLD-0105"):
    """A downloaded jar has another hash than the lock file says."""

    coordinate: str
    expected: str
    found: str
    MESSAGE = "{coordinate} is not the file that the lock names"
    DETAIL = "Its SHA-256 is {found}, the lock has {expected}. The file was removed."
    HINT = "Run the command again. If it happens again, the mirror you download from serves another file."


class CacheUnusable(WorldError, code="WLD-0106"):
    """The cache folder cannot be created or written."""

    folder: str
    reason: str
    MESSAGE = "cannot write to the cache folder {folder}: {reason}"
    HINT = "Set HEADGATE_CACHE to a folder that you may write to."


class WorldFolderUnusable(WorldError, code="WLD-0201"):
    """The folder of the world cannot be created, or its file system cannot hold a world."""

    folder: str
    reason: str
    MESSAGE = 'world folder "{folder}" cannot be used: {reason}'
    HINT = "Name a folder of your own on a local disk, for example with --folder or HEADGATE_WORLD."


class WorldInUse(WorldError, code="WLD-0202"):
    """The folder's lock is held by a process that does not answer as a supervisor."""

    folder: str
    pid: int | None
    MESSAGE = 'world folder "{folder}" is in use by {holder}, which does not answer'
    HINT = "End {process}: its services end with it, and the data stays. Or use another folder."

    @property
    def holder(self) -> str:
        return f"process {self.pid}" if self.pid else "a process"

    @property
    def process(self) -> str:
        return f"it with `kill -9 {self.pid}`" if self.pid else "that process"


class WorldOfOtherVersion(WorldError, code="WLD-0203"):
    """The folder of the world was made by another version of Headgate."""

    folder: str
    found: int
    expected: int
    MESSAGE = 'world folder "{folder}" has layout {found}, this Headgate reads layout {expected}'
    HINT = "Use the Headgate that made it, or another folder."


class SupervisorDidNotStart(WorldError, code="WLD-0204"):
    """The process that looks after the services ended while it was starting."""

    folder: str
    log: str
    last_lines: tuple[str, ...] = ()
    MESSAGE = 'the supervisor of world folder "{folder}" did not start'
    DETAIL = "The end of its log:\n{last_lines:lines}"
    HINT = "Read {log}, and run `headgate doctor`."


class NoUnprivilegedUser(WorldError, code="WLD-0205"):
    """A service refuses to run as root, and the system has no other user for it."""

    service: str
    tried: tuple[str, ...]
    MESSAGE = "{service} does not run as root, and no other user was found to run it"
    DETAIL = "Looked for {tried:and}."
    HINT = "Run Headgate as an ordinary user, or make one with `useradd --system postgres`."


class UnreachableForUser(WorldError, code="WLD-0206"):
    """A service runs as another user than root, and that user cannot enter a folder that it needs."""

    path: str
    user: str
    what: str
    MESSAGE = 'user "{user}" cannot reach {what} at {path}'
    DETAIL = "Headgate runs as root, and this service does not: it runs as that user."
    HINT = "Move it out of a folder that only root may enter, or run Headgate as an ordinary user."


class PortTaken(WorldError, code="WLD-0301"):
    """A port that was asked for by its number is taken by another process."""

    service: str
    port: int
    pid: int | None = None
    MESSAGE = "port {port} of {service} is taken{holder}"
    HINT = "End what listens there, or give another port with --port, or none to let Headgate choose."

    @property
    def holder(self) -> str:
        return f" by process {self.pid}" if self.pid else ""


class NotEnoughMemory(WorldError, code="WLD-0302"):
    """The machine or container has less free memory than a service needs."""

    service: str
    needed: int
    available: int
    MESSAGE = "{service} needs {needed} MB of memory, {available} MB are available"
    HINT = "Close other programs, or raise the memory limit of this container or machine."


class NotEnoughDisk(WorldError, code="WLD-0303"):
    """The disk has less free space than a service needs."""

    service: str
    folder: str
    needed: int
    available: int
    MESSAGE = "{service} needs {needed} MB of disk, {available} MB are free in {folder}"
    HINT = "Free some space there, or use a world folder on another disk."


class ServiceDidNotStart(WorldError, code="WLD-0304"):
    """A service ended while it was starting, or did not answer in time."""

    service: str
    reason: str
    log: str
    last_lines: tuple[str, ...] = ()
    MESSAGE = "{service} did not start: {reason}"
    DETAIL = "The end of its log:\n{last_lines:lines}"
    HINT = "Read {log}, and run `headgate doctor`."


class ServiceDied(WorldError, code="WLD-0305"):
    """A service ended by itself again and again, so that it is not started once more."""

    service: str
    times: int
    log: str
    last_lines: tuple[str, ...] = ()
    MESSAGE = "{service} died {times} times within a minute"
    DETAIL = "The end of its log:\n{last_lines:lines}"
    HINT = "Read {log}, then try again in a minute."


class ServiceIsDown(WorldError, code="WLD-0306"):
    """The service was stopped on purpose, and only a start brings it back."""

    service: str
    MESSAGE = "{service} was stopped on purpose"
    HINT = "Start it again with World.start, or `headgate world up {service}`."


class UnknownService(WorldError, code="WLD-0307"):
    """A command names a service that the world does not have."""

    service: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'service "{service}" does not exist'


class PostgresDataOfOtherVersion(WorldError, code="WLD-0308"):
    """The data of the world's PostgreSQL was written by another version of PostgreSQL."""

    folder: str
    found: str
    expected: str
    MESSAGE = "the data in {folder} is of PostgreSQL {found}, this is PostgreSQL {expected}"
    HINT = (
        "Dump it with PostgreSQL {found}'s pg_dumpall and load it into a new world, or remove that folder to "
        "begin anew."
    )


class JavaTooNew(WorldError, code="WLD-0309"):
    """A service does not run on a Java as new as the one that was found."""

    service: str
    version: int
    newest: int
    MESSAGE = "{service} runs on Java up to {newest}, found version {version}"
    HINT = "Set JAVA_HOME to a Java 17 or 21."


class RefusedBySupervisor(WorldError, code="WLD-0401"):
    """The supervisor gave an answer that this version does not know."""

    reason: str
    MESSAGE = "the world's supervisor refused: {reason}"
    HINT = "A supervisor of another version may be running. Run `headgate world down`, then try again."


class SupervisorEnding(WorldError, code="WLD-0402"):
    """The supervisor stops its services and takes no more requests. The next one takes them."""

    folder: str
    MESSAGE = 'the supervisor of world folder "{folder}" is just ending'
    HINT = "Try again."
