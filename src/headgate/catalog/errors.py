"""What can go wrong between a name and an object, and between the catalog and its file."""

from __future__ import annotations

from datetime import datetime

from headgate.errors import HeadgateError, error
from headgate.schema.names import force_quotes


class CatalogError(HeadgateError):
    """Family CAT."""


def article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _either(kinds: tuple[str, ...]) -> str:
    return " or ".join(article(kind) for kind in kinds)


@error
class UnknownObject(CatalogError):
    """`similar` holds names of objects that the name could have found."""

    code = "CAT-0101"
    kind: str
    name: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'{self.kind} "{self.name}" does not exist'


@error
class AmbiguousName(CatalogError):
    """Several objects differ from the name only by case. `candidates` are names as they can be written."""

    code = "CAT-0102"
    name: str
    candidates: tuple[str, ...]

    def message(self) -> str:
        return f'name "{self.name}" is ambiguous'

    def detail(self) -> str:
        return f"It could mean {', '.join(self.candidates)}, which differ only by case."

    def hint(self) -> str:
        return f"Write the name exactly, for example {self.candidates[0]}."


@error
class WrongKind(CatalogError):
    code = "CAT-0103"
    name: str
    kind: str
    wanted: tuple[str, ...]

    def message(self) -> str:
        return f'"{self.name}" is {article(self.kind)}, not {_either(self.wanted)}'


@error
class AlreadyExists(CatalogError):
    """`existing` is the name of the object that is there, which may differ from `name` by case."""

    code = "CAT-0104"
    kind: str
    name: str
    existing: str

    def message(self) -> str:
        return f'{self.kind} "{self.existing}" already exists'

    def hint(self) -> str:
        if self.name != self.existing:
            return f"Write {force_quotes(self.name)} to have a second object whose name differs only by case."
        return "Choose another name, or drop the existing object first."


@error
class UnknownColumn(CatalogError):
    code = "CAT-0105"
    column: str
    kind: str
    name: str
    similar: tuple[str, ...] = ()
    advice: str | None = None

    def message(self) -> str:
        return f'column "{self.column}" of {self.kind} "{self.name}" does not exist'

    def hint(self) -> str | None:
        return self.advice or super().hint()


@error
class AmbiguousColumn(CatalogError):
    code = "CAT-0106"
    column: str
    kind: str
    name: str
    candidates: tuple[str, ...]

    def message(self) -> str:
        return f'column "{self.column}" of {self.kind} "{self.name}" is ambiguous'

    def detail(self) -> str:
        return f"It could mean {', '.join(self.candidates)}, which differ only by case."

    def hint(self) -> str:
        return f"Write the name exactly, for example {self.candidates[0]}."


@error
class NameTooLong(CatalogError):
    code = "CAT-0107"
    name: str
    most: int

    def message(self) -> str:
        return f'name "{self.name}" has too many parts'

    def hint(self) -> str:
        form = {1: "object", 2: "database.schema", 3: "database.schema.object"}[self.most]
        return f"A name has at most {self.most} part(s) here: {form}. A dot inside a name needs quotes."


@error
class ReservedName(CatalogError):
    code = "CAT-0108"
    kind: str
    name: str

    def message(self) -> str:
        return f'{self.kind} "{self.name}" is reserved'

    def hint(self) -> str:
        return "The catalog shows itself under this name. Choose another one."


@error
class NoColumns(CatalogError):
    code = "CAT-0109"
    kind: str
    name: str

    def message(self) -> str:
        return f'{self.kind} "{self.name}" has no columns'


@error
class ColumnWithoutObject(CatalogError):
    code = "CAT-0110"
    column: str

    def message(self) -> str:
        return f'column "{self.column}" is named without its object'

    def hint(self) -> str:
        return f"Write the object's name, a dot, and the column's name: orders.{self.column}."


@error
class InUse(CatalogError):
    """`dependents` are kind and name of everything that would have to go too, nearest first."""

    code = "CAT-0201"
    kind: str
    name: str
    dependents: tuple[tuple[str, str], ...]

    def message(self) -> str:
        return f'cannot drop {self.kind} "{self.name}": other objects use it'

    def detail(self) -> str:
        return "Used by " + ", ".join(f'{kind} "{name}"' for kind, name in self.dependents) + "."

    def hint(self) -> str:
        return "Drop these first, or write DROP … CASCADE to drop them too."


@error
class NotEmpty(CatalogError):
    code = "CAT-0202"
    kind: str
    name: str
    contents: tuple[tuple[str, str], ...]

    def message(self) -> str:
        return f'cannot drop {self.kind} "{self.name}": it is not empty'

    def detail(self) -> str:
        shown = ", ".join(f'{kind} "{name}"' for kind, name in self.contents[:10])
        more = f" and {len(self.contents) - 10} more" if len(self.contents) > 10 else ""
        return f"It holds {shown}{more}."

    def hint(self) -> str:
        return "Drop these first, or write DROP … CASCADE to drop them too."


@error
class DependencyCycle(CatalogError):
    """`path` goes from the object round to itself again."""

    code = "CAT-0203"
    kind: str
    name: str
    path: tuple[str, ...]

    def message(self) -> str:
        return f'{self.kind} "{self.name}" cannot depend on itself'

    def detail(self) -> str:
        return "The dependencies go round: " + " -> ".join(self.path) + "."


@error
class CatalogTooNew(CatalogError):
    code = "CAT-0301"
    path: str
    version: int
    supported: int

    def message(self) -> str:
        return f'cannot open catalog "{self.path}": it was written by a newer version of Headgate'

    def detail(self) -> str:
        return f"The file has format {self.version}, and this version reads formats up to {self.supported}."

    def hint(self) -> str:
        return "Use the newer version of Headgate. Nothing was changed."


@error
class CatalogDamaged(CatalogError):
    code = "CAT-0302"
    path: str
    reason: str

    def message(self) -> str:
        return f'cannot read catalog "{self.path}": the file is damaged'

    def detail(self) -> str:
        return f"What was found: {self.reason}."

    def hint(self) -> str:
        return "Restore the file, and the files beside it ending in -wal and -shm, from a copy."


@error
class CatalogFull(CatalogError):
    code = "CAT-0303"
    retryable = True
    path: str

    def message(self) -> str:
        return f'could not write catalog "{self.path}": no space left'

    def hint(self) -> str:
        return "Make room on the disk and run the statement again. Nothing of it was stored, nothing else was lost."


@error
class CatalogBusy(CatalogError):
    code = "CAT-0304"
    retryable = True
    path: str

    def message(self) -> str:
        return f'could not write catalog "{self.path}": another process is writing it'

    def hint(self) -> str:
        return "Run the statement again."


@error
class CatalogUnreachable(CatalogError):
    code = "CAT-0305"
    path: str
    reason: str

    def message(self) -> str:
        return f'could not reach catalog "{self.path}": {self.reason}'

    def hint(self) -> str:
        return "Check that the folder exists and that this user may read and write it."


@error
class NotACatalog(CatalogError):
    code = "CAT-0306"
    path: str

    def message(self) -> str:
        return f'cannot open "{self.path}" as a catalog: it is a database of something else'

    def hint(self) -> str:
        return "Name another file. Nothing was changed."


@error
class CatalogMoved(CatalogError):
    code = "CAT-0307"
    planned: int
    present: int

    def message(self) -> str:
        return "could not commit: the catalog has changed since the statement was planned"

    def hint(self) -> str:
        return "Plan the statement again."


@error
class CatalogTooOld(CatalogError):
    """Only a writer brings a catalog up to date."""

    code = "CAT-0308"
    path: str
    version: int
    wanted: int

    def message(self) -> str:
        return f'could not read catalog "{self.path}": it was written by an older version of Headgate'

    def detail(self) -> str:
        return f"The file has format {self.version}, and this version reads format {self.wanted}."

    def hint(self) -> str:
        return "Start an engine of this version on it once, which brings the file up to date."


@error
class NotUnicode(CatalogError):
    code = "CAT-0309"

    def message(self) -> str:
        return "cannot store a text that is not Unicode"

    def detail(self) -> str:
        return "A name, comment or statement holds half of a surrogate pair, which no UTF-8 text can hold."


@error
class LeaseHeld(CatalogError):
    """Another process, alive as far as can be told, writes this catalog."""

    code = "CAT-0401"
    path: str
    host: str
    pid: int
    since: datetime

    def message(self) -> str:
        return f'could not open catalog "{self.path}" for writing: process {self.pid} on host "{self.host}" holds it'

    def detail(self) -> str:
        return f"It has held the catalog since {self.since.isoformat(timespec='seconds')}."

    def hint(self) -> str:
        return "Send statements to that engine, or stop it first. Reading is possible at any time."


@error
class LeaseLost(CatalogError):
    """This process was taken for dead and another one writes now; what it has in memory may be out of date."""

    code = "CAT-0402"
    path: str
    epoch: int
    holder: str

    def message(self) -> str:
        return f'cannot write catalog "{self.path}" any more: {self.holder} has taken it over'

    def hint(self) -> str:
        return "Stop this engine and start it again. Nothing of the statement was stored."


@error
class KeyFileExposed(CatalogError):
    code = "CAT-0501"
    path: str
    mode: int

    def message(self) -> str:
        return f'cannot use key file "{self.path}": others than its owner can reach it (mode {self.mode:04o})'

    def hint(self) -> str:
        return f"Run chmod 600 {self.path}, and change the secrets if others may have read the key."


@error
class SecretUnreadable(CatalogError):
    code = "CAT-0502"
    name: str

    def message(self) -> str:
        return f'cannot decrypt secret "{self.name}": it was encrypted with another key'

    def hint(self) -> str:
        return "Give the key it was made with in HEADGATE_SECRET_KEY or the key file, or set it anew with ALTER SECRET."


@error
class SecretKeyMalformed(CatalogError):
    """`place` says where the key came from; the key itself is not shown."""

    code = "CAT-0503"
    place: str

    def message(self) -> str:
        return f"cannot use the secret key from {self.place}: it is malformed"

    def hint(self) -> str:
        return "A key is 32 random bytes in URL-safe base64. Several keys, the newest first, are separated by commas."


@error
class SecretKeyMissing(CatalogError):
    code = "CAT-0504"
    path: str

    def message(self) -> str:
        return (
            f'cannot decrypt secrets: there is no key file "{self.path}" and HEADGATE_SECRET_KEY is not set'
        )

    def hint(self) -> str:
        return "Restore the key file, give the key in HEADGATE_SECRET_KEY, or set the secrets anew with ALTER SECRET."


@error
class SecretSourceMissing(CatalogError):
    """The environment variable or file that a secret is read from is not there."""

    code = "CAT-0505"
    name: str
    place: str

    def message(self) -> str:
        return f'could not read secret "{self.name}" from {self.place}'

    def hint(self) -> str:
        return "Provide it there, or name another place with ALTER SECRET."
