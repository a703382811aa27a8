"""What can go wrong with a registry. Not found, not allowed and unreachable are different errors."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.errors import HeadgateError


class RegistryError(HeadgateError):
    """An error of a schema registry: REG-…."""


# REG-01xx: a schema's text and what it refers to.


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong in a schema's text: where (a path into the text) and what."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why a reader cannot read what a writer wrote.

    `path` is in the reader: `$.fields[2].type` in Avro, `/properties/a/type` in JSON Schema, a full name in
    Protobuf. `kind` is a stable upper-case word that a program can compare.
    """

    path: str
    kind: str
    message: str


class MalformedSchema(RegistryError, code="REG-0101"):
    """The text is not a schema of its type."""

    type: str
    faults: tuple[Fault, ...]
    line: int | None = None  # from 1; known if the text is not even JSON
    column: int | None = None
    MESSAGE = "malformed {type} schema{where}: {faults[0].reason}{more}"
    HINT = "Correct the schema at the paths given. A path starts at the root of the schema's text."

    @property
    def where(self) -> str:
        return f" at {self.faults[0].path}" if self.faults[0].path and self.line is None else ""

    @property
    def more(self) -> str:
        if self.line is not None:
            return f" (line {self.line}, column {self.column})"
        return f" (and {len(self.faults) - 1} more)" if len(self.faults) > 1 else ""

    def detail(self) -> str | None:
        if len(self.faults) < 2:
            return None
        return "\n".join(f"{fault.path}: {fault.reason}" for fault in self.faults)

    def hint(self) -> str | None:
        if self.line is not None:
            return "The text of the schema must be valid before it can be registered. Correct it at that place."
        return super().hint()


class UnknownReference(RegistryError, code="REG-0102"):
    """A schema refers to a version of a subject that the registry does not have."""

    name: str
    subject: str
    version: int
    MESSAGE = 'reference "{name}" to version {version} of subject "{subject}" cannot be found'
    HINT = "Register the schema that is referred to first, or name an existing subject and version."


class ReferenceCycle(RegistryError, code="REG-0103"):
    """The references of a schema lead back to the schema itself."""

    subjects: tuple[str, ...]  # the way round
    MESSAGE = 'references of subject "{subjects[0]}" lead back to itself'
    DETAIL = "The way round is {subjects:quoted path}."
    HINT = "Move what both schemas need into a third one, and let both refer to that."


# --- frames -----------------------------------------------------------------------------------------------------


class FrameTooShort(RegistryError, code="REG-0201"):
    """A record is shorter than the five bytes with which every framed record begins."""

    length: int
    MESSAGE = "record of {length} bytes is too short for a schema id"
    HINT = (
        "A framed record starts with a zero byte and a schema id of four bytes; this one was not written by a "
        "registry serialiser."
    )


class UnknownMagic(RegistryError, code="REG-0202"):
    """A record does not begin with the zero byte of the registry's frame."""

    magic: int
    MESSAGE = "record starts with byte {magic} instead of 0"
    HINT = (
        "Records without a schema id need a format that carries its schema, for Avro: AVRO USING SCHEMA '..' "
        "(CONFLUENT WIRE FORMAT = false)."
    )


class MalformedMessageIndexes(RegistryError, code="REG-0203"):
    """The path of the message type at the beginning of a Protobuf record cannot be read.

    Cure: Check that the records were written by a registry serialiser for Protobuf.
    """

    what: str
    MESSAGE = "message indexes of a Protobuf record cannot be read: {what}"


class SchemaIdOutOfRange(RegistryError, code="REG-0204"):
    """A schema id is negative or larger than the frame's four bytes can hold."""

    schema_id: int
    MESSAGE = "schema id {schema_id} does not fit into a frame"
    HINT = "Schema ids go from 0 to 2147483647."


# --- what a registry answers to its client ------------------------------------------------------------------------


class SubjectNotFound(RegistryError, code="REG-0211"):
    """The registry has no subject of this name."""

    subject: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'subject "{subject}" does not exist in the registry'


class SubjectDeleted(RegistryError, code="REG-0212"):
    """The subject was deleted softly: its schemas can still be read by id, its versions cannot."""

    subject: str
    MESSAGE = 'subject "{subject}" is deleted'
    HINT = "Register a schema to bring the subject back, or delete it permanently to remove it for good."


class VersionNotFound(RegistryError, code="REG-0213"):
    """The subject exists and has no such version.

    Cure: Ask for the versions of the subject, and name one of them.
    """

    subject: str
    version: int
    MESSAGE = 'version {version} of subject "{subject}" does not exist'


class SchemaIdNotFound(RegistryError, code="REG-0214"):
    """The registry has no schema with the id that a record carries."""

    schema_id: int
    MESSAGE = "schema id {schema_id} does not exist in the registry"
    HINT = "Check that the records were written with this registry and not with another one."


class SchemaNotFound(RegistryError, code="REG-0215"):
    """The subject exists, and none of its versions is this schema.

    Cure: Register the schema, or look it up in another subject.
    """

    subject: str
    MESSAGE = 'subject "{subject}" has no version with this schema'


class DeletionRefused(RegistryError):
    """The registry does not delete a subject, or one version of it."""

    subject: str
    version: int | None = None

    @property
    def which(self) -> str:
        return (
            f'subject "{self.subject}"'
            if self.version is None
            else f'version {self.version} of subject "{self.subject}"'
        )


class NotDeletedFirst(DeletionRefused, code="REG-0216"):
    """A permanent deletion is asked for before a soft one."""

    MESSAGE = "{which} cannot be deleted permanently"
    HINT = "Delete it softly first; a permanent deletion is the second step."


class StillReferenced(DeletionRefused, code="REG-0217"):
    """Schemas of other subjects refer to the version that is to be deleted."""

    MESSAGE = "{which} cannot be deleted, other schemas refer to it"
    HINT = "The registry's resource `referencedby` lists the ids of those schemas. Delete them first."


class IncompatibleSchema(RegistryError, code="REG-0218"):
    """The registry does not accept a schema as the next version of its subject."""

    subject: str
    reasons: tuple[str, ...] = ()  # in the registry's own words
    MESSAGE = 'schema is not compatible with the earlier versions of subject "{subject}"'
    DETAIL = "{reasons:lines}"
    HINT = "Change the schema, or the compatibility level of the subject."


class SchemaRefused(RegistryError, code="REG-0219"):
    """The registry cannot read a schema, or cannot find what it refers to.

    Cure: Correct the schema as the detail says, which is the registry's own text.
    """

    subject: str
    reason: str
    MESSAGE = 'the registry refuses the schema for subject "{subject}"'
    DETAIL = "{reason}"


class RequestRefused(RegistryError, code="REG-0220"):
    """The registry understands a request and does not do it: its mode forbids it, or it does not know a value.

    Cure: Read the detail, which is the registry's own text.
    """

    what: str
    registry_code: int
    reason: str
    MESSAGE = "the registry refuses to {what} (its code {registry_code})"
    DETAIL = "{reason}"


# --- the way to a registry ----------------------------------------------------------------------------------------


class RegistryUnreachable(RegistryError, code="REG-0231"):
    """No registry answers at the address of the connection."""

    retryable = True
    url: str
    reason: str
    MESSAGE = "could not reach the registry at {url}"
    DETAIL = "{reason}"
    HINT = "Check that the registry runs and that host, port and TLS settings are right."


class WrongCredentials(RegistryError, code="REG-0232"):
    """The registry answers and does not accept the user or the password."""

    url: str
    user: str | None = None
    MESSAGE = "the registry at {url} does not accept {who}"
    HINT = "Check the user name and the password."

    @property
    def who(self) -> str:
        return f'user "{self.user}"' if self.user is not None else "these credentials"


class NotAllowed(RegistryError, code="REG-0233"):
    """The registry accepts the user and does not allow the request."""

    url: str
    what: str
    user: str | None = None
    MESSAGE = "{who} may not {what} in the registry at {url}"
    HINT = "Ask the registry's owner for the right, or use another user."

    @property
    def who(self) -> str:
        return f'user "{self.user}"' if self.user is not None else "this client"


class RegistryFailed(RegistryError, code="REG-0234"):
    """The registry answered with an error of its own, after retries too."""

    retryable = True
    url: str
    what: str
    status: int
    reason: str
    MESSAGE = "the registry at {url} could not {what} (HTTP {status})"
    DETAIL = "{reason}"
    HINT = "Try again later; the registry's own log says more."


class RegistryAnswerUnreadable(RegistryError, code="REG-0235"):
    """The server at the address does not speak the registry's API: it is a login page, a proxy or another server."""

    url: str
    status: int
    content_type: str
    problem: str
    MESSAGE = "the answer from {url} is not that of a schema registry: {problem}"
    DETAIL = "HTTP status {status}, content type {received}."
    HINT = (
        "Check the URL, its base path too (Apicurio: /apis/ccompat/v7), and whether a proxy or a login page "
        "is in front of it."
    )

    @property
    def received(self) -> str:
        return self.content_type or "not given"


class InvalidRegistrySetting(RegistryError, code="REG-0236"):
    """A setting of the client cannot be used, for example a URL without a host or a certificate file that does not
    exist.

    Cure: Correct the option of the connection that the message names.
    """

    setting: str
    problem: str
    MESSAGE = 'registry setting "{setting}" cannot be used: {problem}'
