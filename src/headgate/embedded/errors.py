"""What can be missing or go wrong in an embedded world. WLD-01xx: Java and jars; WLD-02xx and up: services."""

from __future__ import annotations

from headgate.errors import HeadgateError, error


class WorldError(HeadgateError):
    """Family WLD."""

    retryable = True


@error
class JavaMissing(WorldError):
    code = "WLD-0101"
    found: tuple[str, ...] = ()

    def message(self) -> str:
        return "Java 17 or newer was not found"

    def detail(self) -> str:
        seen = f" Found only {', '.join(self.found)}." if self.found else ""
        return f"Looked at JAVA_HOME and at java on the PATH.{seen}"

    def hint(self) -> str:
        return (
            "Install it, for example with `apt-get install openjdk-17-jre-headless`, "
            "`dnf install java-17-openjdk-headless` or `brew install openjdk@17`, or set JAVA_HOME."
        )


@error
class UnknownJarSet(WorldError):
    code = "WLD-0102"
    name: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'jar set "{self.name}" does not exist'


@error
class JarLockUnreadable(WorldError):
    code = "WLD-0103"
    line: int
    text: str

    def message(self) -> str:
        return f"line {self.line} of the jar lock cannot be read: {self.text}"

    def hint(self) -> str:
        return "A line is `group:artifact:version[:classifier][@ext] sha256 bytes`. Run `make lock` to write it anew."


@error
class JarDownloadFailed(WorldError):
    code = "WLD-0104"
    coordinates: tuple[str, ...]
    reason: str
    log: str

    def message(self) -> str:
        first, rest = self.coordinates[0], len(self.coordinates) - 1
        return f"could not download {first}" + (f" and {rest} more jars" if rest else "")

    def detail(self) -> str:
        return f"{self.reason} The whole log is in {self.log}."

    def hint(self) -> str:
        return (
            "Check the network and run the command again: what has arrived is kept. Behind a mirror, point "
            "HEADGATE_IVY_SETTINGS at an ivysettings.xml of your own."
        )


@error
class JarHashMismatch(WorldError):
    code = "WLD-0105"
    coordinate: str
    expected: str
    found: str

    def message(self) -> str:
        return f"{self.coordinate} is not the file that the lock names"

    def detail(self) -> str:
        return f"Its SHA-256 is {self.found}, the lock has {self.expected}. The file was removed."

    def hint(self) -> str:
        return "Run the command again. If it happens again, the mirror you download from serves another file."


@error
class CacheUnusable(WorldError):
    code = "WLD-0106"
    folder: str
    reason: str

    def message(self) -> str:
        return f"cannot write to the cache folder {self.folder}: {self.reason}"

    def hint(self) -> str:
        return "Set HEADGATE_CACHE to a folder that you may write to."


@error
class WorldFolderUnusable(WorldError):
    code = "WLD-0201"
    folder: str
    reason: str

    def message(self) -> str:
        return f'world folder "{self.folder}" cannot be used: {self.reason}'

    def hint(self) -> str:
        return "Name a folder of your own on a local disk, for example with --folder or HEADGATE_WORLD."


@error
class WorldInUse(WorldError):
    """The folder's lock is held by a process that does not answer as a supervisor."""

    code = "WLD-0202"
    folder: str
    pid: int | None

    def message(self) -> str:
        holder = f"process {self.pid}" if self.pid else "a process"
        return f'world folder "{self.folder}" is in use by {holder}, which does not answer'

    def hint(self) -> str:
        end = f"End it with `kill -9 {self.pid}`" if self.pid else "End that process"
        return f"{end}: its services end with it, and the data stays. Or use another folder."


@error
class WorldOfOtherVersion(WorldError):
    code = "WLD-0203"
    folder: str
    found: int
    expected: int

    def message(self) -> str:
        return f'world folder "{self.folder}" has layout {self.found}, this Headgate reads layout {self.expected}'

    def hint(self) -> str:
        return "Use the Headgate that made it, or another folder."


@error
class SupervisorDidNotStart(WorldError):
    code = "WLD-0204"
    folder: str
    log: str
    last_lines: tuple[str, ...] = ()

    def message(self) -> str:
        return f'the supervisor of world folder "{self.folder}" did not start'

    def detail(self) -> str | None:
        return "\n".join(("Its last words were:", *self.last_lines)) if self.last_lines else None

    def hint(self) -> str:
        return f"Read {self.log}, and run `headgate doctor`."


@error
class NoUnprivilegedUser(WorldError):
    code = "WLD-0205"
    service: str
    tried: tuple[str, ...]

    def message(self) -> str:
        return f"{self.service} does not run as root, and no other user was found to run it"

    def detail(self) -> str:
        return f"Looked for {' and '.join(self.tried)}."

    def hint(self) -> str:
        return "Run Headgate as an ordinary user, or make one with `useradd --system postgres`."


@error
class UnreachableForUser(WorldError):
    code = "WLD-0206"
    path: str
    user: str
    what: str

    def message(self) -> str:
        return f'user "{self.user}" cannot reach {self.what} at {self.path}'

    def detail(self) -> str:
        return "Headgate runs as root, and this service does not: it runs as that user."

    def hint(self) -> str:
        return "Move it out of a folder that only root may enter, or run Headgate as an ordinary user."


@error
class PortTaken(WorldError):
    """A port that was asked for by number, and so cannot be another, is taken."""

    code = "WLD-0301"
    service: str
    port: int
    pid: int | None = None

    def message(self) -> str:
        holder = f" by process {self.pid}" if self.pid else ""
        return f"port {self.port} of {self.service} is taken{holder}"

    def hint(self) -> str:
        return "End what listens there, or give another port with --port, or none to let Headgate choose."


@error
class NotEnoughMemory(WorldError):
    code = "WLD-0302"
    service: str
    needed: int
    available: int

    def message(self) -> str:
        return f"{self.service} needs {self.needed} MB of memory, {self.available} MB are available"

    def hint(self) -> str:
        return "Close other programs, or raise the memory limit of this container or machine."


@error
class NotEnoughDisk(WorldError):
    code = "WLD-0303"
    service: str
    folder: str
    needed: int
    available: int

    def message(self) -> str:
        return f"{self.service} needs {self.needed} MB of disk, {self.available} MB are free in {self.folder}"

    def hint(self) -> str:
        return "Free some space there, or use a world folder on another disk."


@error
class ServiceDidNotStart(WorldError):
    code = "WLD-0304"
    service: str
    reason: str
    log: str
    last_lines: tuple[str, ...] = ()

    def message(self) -> str:
        return f"{self.service} did not start: {self.reason}"

    def detail(self) -> str | None:
        return "\n".join(("The end of its log:", *self.last_lines)) if self.last_lines else None

    def hint(self) -> str:
        return f"Read {self.log}, and run `headgate doctor`."


@error
class ServiceDied(WorldError):
    """A service ended by itself again and again; it is not started once more."""

    code = "WLD-0305"
    service: str
    times: int
    log: str
    last_lines: tuple[str, ...] = ()

    def message(self) -> str:
        return f"{self.service} died {self.times} times within a minute"

    def detail(self) -> str | None:
        return "\n".join(("The end of its log:", *self.last_lines)) if self.last_lines else None

    def hint(self) -> str:
        return f"Read {self.log}, then try again in a minute."


@error
class ServiceIsDown(WorldError):
    """The service was stopped on purpose, and only a start brings it back."""

    code = "WLD-0306"
    service: str

    def message(self) -> str:
        return f"{self.service} was stopped on purpose"

    def hint(self) -> str:
        return f"Start it again with World.start, or `headgate world up {self.service}`."


@error
class UnknownService(WorldError):
    code = "WLD-0307"
    service: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'service "{self.service}" does not exist'


@error
class PostgresDataOfOtherVersion(WorldError):
    code = "WLD-0308"
    folder: str
    found: str
    expected: str

    def message(self) -> str:
        return f"the data in {self.folder} is of PostgreSQL {self.found}, this is PostgreSQL {self.expected}"

    def hint(self) -> str:
        return (
            f"Dump it with PostgreSQL {self.found}'s pg_dumpall and load it into a new world, "
            "or remove that folder to begin anew."
        )


@error
class JavaTooNew(WorldError):
    code = "WLD-0309"
    service: str
    version: int
    newest: int

    def message(self) -> str:
        return f"{self.service} runs on Java up to {self.newest}, found version {self.version}"

    def hint(self) -> str:
        return "Set JAVA_HOME to a Java 17 or 21."


@error
class RefusedBySupervisor(WorldError):
    """The supervisor answered with something that this version does not know."""

    code = "WLD-0401"
    told: str

    def message(self) -> str:
        return f"the world's supervisor refused: {self.told}"

    def hint(self) -> str:
        return "A supervisor of another version may be running. Run `headgate world down`, then try again."


@error
class SupervisorEnding(WorldError):
    """It stops its services and takes no more requests. ``World`` asks the next one instead."""

    code = "WLD-0402"
    folder: str

    def message(self) -> str:
        return f'the supervisor of world folder "{self.folder}" is just ending'

    def hint(self) -> str:
        return "Try again."
