"""What can go wrong with a registry. Not found, not allowed and unreachable are different errors."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.errors import HeadgateError, error


class RegistryError(HeadgateError):
    """Family REG."""


# REG-01xx: a schema's text and what it refers to.


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong in a schema's text: where (a path into the text) and what."""

    path: str
    reason: str


@error
class MalformedSchema(RegistryError):
    """The text is no schema of its type. ``line`` and ``column`` (from 1) are known when the text is not even JSON."""

    code = "REG-0101"
    type: str
    faults: tuple[Fault, ...]
    line: int | None = None
    column: int | None = None

    def message(self) -> str:
        first = self.faults[0]
        if self.line is not None:
            return f"malformed {self.type} schema: {first.reason} (line {self.line}, column {self.column})"
        where = f" at {first.path}" if first.path else ""
        more = f" (and {len(self.faults) - 1} more)" if len(self.faults) > 1 else ""
        return f"malformed {self.type} schema{where}: {first.reason}{more}"

    def detail(self) -> str | None:
        if len(self.faults) < 2:
            return None
        return "\n".join(f"{fault.path}: {fault.reason}" for fault in self.faults)

    def hint(self) -> str:
        if self.line is not None:
            return (
                "The text of the schema must be valid before it can be registered. Correct it at that place."
            )
        return "Correct the schema at the paths given. A path starts at the root of the schema's text."


@error
class UnknownReference(RegistryError):
    """A schema refers to a version of a subject that the registry does not have."""

    code = "REG-0102"
    name: str
    subject: str
    version: int

    def message(self) -> str:
        return (
            f'reference "{self.name}" to version {self.version} of subject "{self.subject}" cannot be found'
        )

    def hint(self) -> str:
        return "Register the schema that is referred to first, or name an existing subject and version."


@error
class ReferenceCycle(RegistryError):
    """Following a schema's references leads back to one of them. ``subjects`` is the way round."""

    code = "REG-0103"
    subjects: tuple[str, ...]

    def message(self) -> str:
        return f'references of subject "{self.subjects[0]}" lead back to itself'

    def detail(self) -> str:
        return "The way round is " + " -> ".join(f'"{subject}"' for subject in self.subjects) + "."

    def hint(self) -> str:
        return "Move what both schemas need into a third one, and let both refer to that."


# --- frames -----------------------------------------------------------------------------------------------------


@error
class FrameTooShort(RegistryError):
    """A record is shorter than the five bytes that every framed record starts with."""

    code = "REG-0201"
    length: int

    def message(self) -> str:
        return f"record of {self.length} bytes is too short for a schema id"

    def hint(self) -> str:
        return "A framed record starts with a zero byte and a schema id of four bytes; this one was not written by a registry serialiser."


@error
class UnknownMagic(RegistryError):
    """A record does not start with the zero byte of the registry's frame."""

    code = "REG-0202"
    magic: int

    def message(self) -> str:
        return f"record starts with byte {self.magic} instead of 0"

    def hint(self) -> str:
        return "Records without a schema id need a format that carries its schema, for Avro: AVRO USING SCHEMA '..' (CONFLUENT WIRE FORMAT = false)."


@error
class MalformedMessageIndexes(RegistryError):
    """The path of the message type in a Protobuf frame cannot be read."""

    code = "REG-0203"
    what: str

    def message(self) -> str:
        return f"message indexes of a Protobuf record cannot be read: {self.what}"


@error
class SchemaIdOutOfRange(RegistryError):
    code = "REG-0204"
    schema_id: int

    def message(self) -> str:
        return f"schema id {self.schema_id} does not fit into a frame"

    def hint(self) -> str:
        return "Schema ids go from 0 to 2147483647."


# --- what a registry answers to its client ------------------------------------------------------------------------


@error
class SubjectNotFound(RegistryError):
    code = "REG-0211"
    subject: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'subject "{self.subject}" does not exist in the registry'


@error
class SubjectDeleted(RegistryError):
    """The subject was deleted softly: its ids can still be read, its versions not."""

    code = "REG-0212"
    subject: str

    def message(self) -> str:
        return f'subject "{self.subject}" is deleted'

    def hint(self) -> str:
        return "Register a schema to bring the subject back, or delete it permanently to remove it for good."


@error
class VersionNotFound(RegistryError):
    code = "REG-0213"
    subject: str
    version: int

    def message(self) -> str:
        return f'version {self.version} of subject "{self.subject}" does not exist'


@error
class SchemaIdNotFound(RegistryError):
    code = "REG-0214"
    schema_id: int

    def message(self) -> str:
        return f"schema id {self.schema_id} does not exist in the registry"

    def hint(self) -> str:
        return "Check that the records were written with this registry and not with another one."


@error
class SchemaNotFound(RegistryError):
    """The subject exists, but none of its versions is this schema."""

    code = "REG-0215"
    subject: str

    def message(self) -> str:
        return f'subject "{self.subject}" has no version with this schema'


@error
class NotDeletedFirst(RegistryError):
    code = "REG-0216"
    subject: str
    version: int | None = None

    def message(self) -> str:
        return f"{_version_of(self.subject, self.version)} cannot be deleted permanently"

    def hint(self) -> str:
        return "Delete it softly first; a permanent deletion is the second step."


@error
class StillReferenced(RegistryError):
    code = "REG-0217"
    subject: str
    version: int | None = None

    def message(self) -> str:
        return f"{_version_of(self.subject, self.version)} cannot be deleted, other schemas refer to it"

    def hint(self) -> str:
        return "Ask for referenced_by to see the ids of those schemas, and delete them first."


@error
class IncompatibleSchema(RegistryError):
    """The registry does not take a schema as the next version. ``reasons`` are its own words."""

    code = "REG-0218"
    subject: str
    reasons: tuple[str, ...] = ()

    def message(self) -> str:
        return f'schema is not compatible with the earlier versions of subject "{self.subject}"'

    def detail(self) -> str | None:
        return "\n".join(self.reasons) or None

    def hint(self) -> str:
        return "Change the schema, or the compatibility level of the subject."


@error
class SchemaRefused(RegistryError):
    """The registry cannot read a schema, or cannot find what it refers to."""

    code = "REG-0219"
    subject: str
    reason: str

    def message(self) -> str:
        return f'the registry refuses the schema for subject "{self.subject}"'

    def detail(self) -> str:
        return self.reason


@error
class RequestRefused(RegistryError):
    """The registry understood and does not do it: a mode that forbids it, a value that it does not know."""

    code = "REG-0220"
    what: str
    registry_code: int
    reason: str

    def message(self) -> str:
        return f"the registry refuses to {self.what} (its code {self.registry_code})"

    def detail(self) -> str:
        return self.reason


# --- the way to a registry ----------------------------------------------------------------------------------------


@error
class RegistryUnreachable(RegistryError):
    code = "REG-0231"
    retryable = True
    url: str
    reason: str

    def message(self) -> str:
        return f"could not reach the registry at {self.url}"

    def detail(self) -> str:
        return self.reason

    def hint(self) -> str:
        return "Check that the registry runs and that host, port and TLS settings are right."


@error
class WrongCredentials(RegistryError):
    code = "REG-0232"
    url: str
    user: str | None = None

    def message(self) -> str:
        who = f'user "{self.user}"' if self.user is not None else "these credentials"
        return f"the registry at {self.url} does not accept {who}"

    def hint(self) -> str:
        return "Check user name and password, or the token."


@error
class NotAllowed(RegistryError):
    code = "REG-0233"
    url: str
    what: str
    user: str | None = None

    def message(self) -> str:
        who = f'user "{self.user}"' if self.user is not None else "this client"
        return f"{who} may not {self.what} in the registry at {self.url}"

    def hint(self) -> str:
        return "Ask the registry's owner for the right, or use another user."


@error
class RegistryFailed(RegistryError):
    """The registry answered with an error of its own, also after the retries."""

    code = "REG-0234"
    retryable = True
    url: str
    what: str
    status: int
    reason: str

    def message(self) -> str:
        return f"the registry at {self.url} could not {self.what} (HTTP {self.status})"

    def detail(self) -> str | None:
        return self.reason or None

    def hint(self) -> str:
        return "Try again later; the registry's own log says more."


@error
class RegistryAnswerUnreadable(RegistryError):
    """What answers at the URL does not speak the registry's API: a login page, a proxy, another server."""

    code = "REG-0235"
    url: str
    status: int
    content_type: str
    problem: str

    def message(self) -> str:
        return f"the answer from {self.url} is not that of a schema registry: {self.problem}"

    def detail(self) -> str:
        return f"HTTP status {self.status}, content type {self.content_type or 'not given'}."

    def hint(self) -> str:
        return "Check the URL, its base path too (Apicurio: /apis/ccompat/v7), and whether a proxy or a login page stands before it."


@error
class InvalidRegistrySetting(RegistryError):
    """A setting of the client cannot be used: a URL without a host, a certificate file that is not there."""

    code = "REG-0236"
    setting: str
    problem: str

    def message(self) -> str:
        return f'registry setting "{self.setting}" cannot be used: {self.problem}'


def _version_of(subject: str, version: int | None) -> str:
    return f'subject "{subject}"' if version is None else f'version {version} of subject "{subject}"'
