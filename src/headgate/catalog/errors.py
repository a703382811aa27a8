"""What can go wrong between a name and an object, and between the catalog and its file."""

from __future__ import annotations

from datetime import datetime

from headgate.errors import HeadgateError
from headgate.schema.names import force_quotes


class CatalogError(HeadgateError):
    """An error of the catalog: CAT-…."""


class UnknownObject(CatalogError, code="CAT-0101"):
    """A statement names an object that does not exist in the schemas of the search path."""

    kind: str
    name: str
    similar: tuple[str, ...] = ()
    MESSAGE = '{kind} "{name}" does not exist'


class AmbiguousName(CatalogError, code="CAT-0102"):
    """A name without quotes fits several objects whose names differ only by case."""

    name: str
    candidates: tuple[str, ...]  # names as they can be written
    MESSAGE = 'name "{name}" is ambiguous'
    DETAIL = "It could mean {candidates:list}, which differ only by case."
    HINT = "Write the name exactly, for example {candidates[0]}."


class WrongKind(CatalogError, code="CAT-0103"):
    """A statement names an object of a kind that it cannot use.

    Cure: Name an object of the kind that the message wants.
    """

    name: str
    kind: str
    wanted: tuple[str, ...]
    MESSAGE = '"{name}" is {kind:a}, not {wanted:a or}'


class AlreadyExists(CatalogError, code="CAT-0104"):
    """An object of this name exists already in the schema."""

    kind: str
    name: str
    existing: str  # may differ from `name` by case
    MESSAGE = '{kind} "{existing}" already exists'
    HINT = "Choose another name, or drop the existing object first."

    def hint(self) -> str | None:
        if self.name != self.existing:
            return f"Write {force_quotes(self.name)} to have a second object whose name differs only by case."
        return super().hint()


class UnknownColumn(CatalogError, code="CAT-0105"):
    """A statement names a column that the object does not have."""

    column: str
    kind: str
    name: str
    similar: tuple[str, ...] = ()
    advice: str | None = None
    columns: tuple[str, ...] = ()  # those of the object, if they are few
    MESSAGE = 'column "{column}" of {kind} "{name}" does not exist'
    HINT = "The columns are {columns:list}."

    def hint(self) -> str | None:
        return self.advice or super().hint()


class AmbiguousColumn(CatalogError, code="CAT-0106"):
    """A name without quotes fits several columns whose names differ only by case."""

    column: str
    kind: str
    name: str
    candidates: tuple[str, ...]  # names as they can be written
    MESSAGE = 'column "{column}" of {kind} "{name}" is ambiguous'
    DETAIL = "It could mean {candidates:list}, which differ only by case."
    HINT = "Write the name exactly, for example {candidates[0]}."


class NameTooLong(CatalogError, code="CAT-0107"):
    """A name has more parts than the object has parents."""

    name: str
    most: int
    MESSAGE = 'name "{name}" has too many parts'
    HINT = "A name has at most {most:part|parts} here: {form}. A dot inside a name needs quotes."

    @property
    def form(self) -> str:
        return {1: "object", 2: "database.schema", 3: "database.schema.object"}[self.most]


class ReservedName(CatalogError, code="CAT-0108"):
    """An object would get the name of a schema or database that the catalog itself provides."""

    kind: str
    name: str
    MESSAGE = '{kind} "{name}" is reserved'
    HINT = "The catalog shows itself under this name. Choose another one."


class NoColumns(CatalogError, code="CAT-0109"):
    """A statement names a column of an object that has none.

    Cure: Name an object that has columns: a source, a view, a sink or a table.
    """

    kind: str
    name: str
    MESSAGE = '{kind} "{name}" has no columns'


class UnknownField(CatalogError, code="CAT-0110"):
    """A statement names a field of a record in a column, and the column has no such field of its own."""

    field: str
    column: str
    similar: tuple[str, ...] = ()
    type: str = ""  # the type of the catalog that has the field
    MESSAGE = 'field "{field}" of column "{column}" does not exist'

    def hint(self) -> str | None:
        if self.type:
            return f"The column is of type {self.type}. Name the field as a column of it: {self.type}.{self.field}."
        return super().hint()


class ReservedColumnName(CatalogError, code="CAT-0111"):
    """A column would get a name of those that Headgate keeps for columns of its own beside the rows."""

    kind: str
    name: str
    column: str
    MESSAGE = 'column "{column}" of {kind} "{name}" has a reserved name'
    DETAIL = "Names that begin with hg: are those of columns that Headgate has beside those of a relation."
    HINT = "Give the column another name."


class InUse(CatalogError, code="CAT-0201"):
    """An object cannot be dropped while others use it."""

    kind: str
    name: str
    dependents: tuple[tuple[str, str], ...]  # kind and name, nearest first
    MESSAGE = 'cannot drop {kind} "{name}": other objects use it'
    DETAIL = "Used by {dependents:object list}."
    HINT = "Drop these first, or write DROP … CASCADE to drop them too."


class NotEmpty(CatalogError, code="CAT-0202"):
    """A database or schema cannot be dropped while it contains objects."""

    kind: str
    name: str
    contents: tuple[tuple[str, str], ...]
    MESSAGE = 'cannot drop {kind} "{name}": it is not empty'
    DETAIL = "It holds {shown}."
    HINT = "Drop these first, or write DROP … CASCADE to drop them too."

    @property
    def shown(self) -> str:
        more = f" and {len(self.contents) - 10} more" if len(self.contents) > 10 else ""
        return ", ".join(f'{kind} "{name}"' for kind, name in self.contents[:10]) + more


class DependencyCycle(CatalogError, code="CAT-0203"):
    """A definition would use itself, directly or through other objects.

    Cure: Take one of the uses out of its definition.
    """

    kind: str
    name: str
    path: tuple[str, ...]  # begins and ends with the object
    MESSAGE = '{kind} "{name}" cannot depend on itself'
    DETAIL = "The dependencies go round: {path:path}."


class CatalogTooNew(CatalogError, code="CAT-0301"):
    """The catalog's file has a format that this version does not know."""

    path: str
    version: int
    supported: int
    MESSAGE = 'cannot open catalog "{path}": it was written by a newer version of Headgate'
    DETAIL = "The file has format {version}, and this version reads formats up to {supported}."
    HINT = "Use the newer version of Headgate. Nothing was changed."


class CatalogDamaged(CatalogError, code="CAT-0302"):
    """The catalog's file is not a valid database, or its content contradicts itself."""

    path: str
    reason: str
    MESSAGE = 'cannot read catalog "{path}": the file is damaged'
    DETAIL = "What was found: {reason}."
    HINT = "Restore the file, and the files beside it ending in -wal and -shm, from a copy."


class CatalogFull(CatalogError, code="CAT-0303"):
    """The disk that holds the catalog is full."""

    retryable = True
    path: str
    MESSAGE = 'could not write catalog "{path}": no space left'
    HINT = "Make room on the disk and run the statement again. Nothing of it was stored, nothing else was lost."


class CatalogBusy(CatalogError, code="CAT-0304"):
    """Another process kept the catalog's file locked for too long."""

    retryable = True
    path: str
    MESSAGE = 'could not write catalog "{path}": another process is writing it'
    HINT = "Run the statement again."


class CatalogUnreachable(CatalogError, code="CAT-0305"):
    """The operating system refused to open, read or write the catalog's file."""

    path: str
    reason: str
    MESSAGE = 'could not reach catalog "{path}": {reason}'
    HINT = "Check that the folder exists and that this user may read and write it."


class NotACatalog(CatalogError, code="CAT-0306"):
    """The file that is given as the catalog is a SQLite database of another program."""

    path: str
    MESSAGE = 'cannot open "{path}" as a catalog: it is a database of something else'
    HINT = "Name another file. Nothing was changed."


class CatalogChanged(CatalogError, code="CAT-0307"):
    """Another statement changed the catalog between the plan and the commit of this one."""

    planned: int
    present: int
    MESSAGE = "could not commit: the catalog has changed since the statement was planned"
    HINT = "Plan the statement again."


class CatalogTooOld(CatalogError, code="CAT-0308"):
    """The catalog's file has an older format. Only an engine that writes it can convert it."""

    path: str
    version: int
    wanted: int
    MESSAGE = 'could not read catalog "{path}": it was written by an older version of Headgate'
    DETAIL = "The file has format {version}, and this version reads format {wanted}."
    HINT = "Start an engine of this version on it once, which brings the file up to date."


class CatalogNotConvertible(CatalogError, code="CAT-0310"):
    """The catalog's file was written by a version before the first release, whose format is not read any more."""

    path: str
    version: int
    wanted: int
    MESSAGE = 'cannot open catalog "{path}": it was written by an older version of Headgate'
    DETAIL = "The file has format {version}. This version reads format {wanted} and cannot convert the file."
    HINT = "Start with a new project folder and run your scripts there. The file was not changed."


class NotUnicode(CatalogError, code="CAT-0309"):
    """A name, comment or statement is not valid Unicode and cannot be stored.

    Cure: Remove the broken character from the text.
    """

    MESSAGE = "cannot store a text that is not Unicode"
    DETAIL = "A name, comment or statement holds half of a surrogate pair, which no UTF-8 text can hold."


class LeaseHeld(CatalogError, code="CAT-0401"):
    """Another process writes this catalog and is alive, as far as can be seen."""

    path: str
    host: str
    pid: int
    since: datetime
    MESSAGE = 'could not open catalog "{path}" for writing: process {pid} on host "{host}" holds it'
    DETAIL = "It has held the catalog since {start}."
    HINT = "Send statements to that engine, or stop it first. Reading is possible at any time."

    @property
    def start(self) -> str:
        return self.since.isoformat(timespec="seconds")


class LeaseLost(CatalogError, code="CAT-0402"):
    """This process was taken for dead, and another one writes the catalog now. What this one has in memory may be out
    of date."""

    path: str
    epoch: int
    holder: str
    MESSAGE = 'cannot write catalog "{path}" any more: {holder} has taken it over'
    HINT = "Stop this engine and start it again. Nothing of the statement was stored."


class LeaseExpired(CatalogError, code="CAT-0403"):
    """This process could not renew its hold on the catalog in time: it was stopped, or the disk did not answer."""

    path: str
    seconds: int
    MESSAGE = 'could not renew the lease of catalog "{path}" for {seconds} seconds'
    DETAIL = "Another engine may take the catalog over, so this one has ended. Nothing is lost."
    HINT = "Start the engine again. If it happens often, look for a slow disk or too little memory."


class LedgerMoved(CatalogError, code="CAT-0404"):
    """The progress of a task is not where the batch that wants to move it began: somebody else has moved it."""

    retryable = True
    task: int
    expected: int | None  # number of a batch
    found: int | None
    MESSAGE = "could not record the progress of task {task}: it has moved from batch {expected} to batch {found}"
    HINT = "The task continues from there by itself. If this repeats, look for a second engine."


class KeyFileExposed(CatalogError, code="CAT-0501"):
    """The file that holds the key for secrets can be read by other users."""

    path: str
    mode: int
    MESSAGE = 'cannot use key file "{path}": others than its owner can reach it (mode {mode:04o})'
    HINT = "Run chmod 600 {path}, and change the secrets if others may have read the key."


class SecretUnreadable(CatalogError, code="CAT-0502"):
    """A secret was encrypted with another key than the one that is given now."""

    name: str
    MESSAGE = 'cannot decrypt secret "{name}": it was encrypted with another key'
    HINT = "Give the key it was made with in HEADGATE_SECRET_KEY or the key file, or set it anew with ALTER SECRET."


class SecretKeyMalformed(CatalogError, code="CAT-0503"):
    """The key for secrets has the wrong form. The key itself is not shown."""

    place: str  # where the key came from
    MESSAGE = "cannot use the secret key from {place}: it is malformed"
    HINT = "A key is 32 random bytes in URL-safe base64. Several keys, the newest first, are separated by commas."


class SecretKeyMissing(CatalogError, code="CAT-0504"):
    """The catalog holds secrets, and the key for them is nowhere to be found."""

    path: str
    MESSAGE = 'cannot decrypt secrets: there is no key file "{path}" and HEADGATE_SECRET_KEY is not set'
    HINT = "Restore the key file, give the key in HEADGATE_SECRET_KEY, or set the secrets anew with ALTER SECRET."


class SecretSourceMissing(CatalogError, code="CAT-0505"):
    """A secret refers to an environment variable or a file that does not exist."""

    name: str
    place: str
    MESSAGE = 'could not read secret "{name}" from {place}'
    HINT = "Provide it there, or name another place with ALTER SECRET."
