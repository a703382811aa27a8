"""What the registry server answers when it does not do what was asked, and what keeps it from starting.

A ``Refusal`` carries the HTTP status and the error code that Confluent's registry gives for the same thing: those
two are the interface, and the clients of that registry decide by them. The messages are Headgate's own.
"""

from __future__ import annotations

from typing import ClassVar

from headgate.registry.errors import RegistryError


class Refusal(RegistryError):
    """A request that is answered with an error body instead of what it asked for."""

    status: ClassVar[int] = 500
    registry_code: ClassVar[int] = 500

    def __init_subclass__(cls, *, code: str = "", status: int = 500, registry_code: int = 500) -> None:
        super().__init_subclass__(code=code)
        cls.status, cls.registry_code = status, registry_code


class SubjectRefusal(Refusal):
    """A refusal that names a subject."""

    subject: str


class VersionRefusal(SubjectRefusal):
    """A refusal that names a version of a subject."""

    version: int


class UnknownSubject(SubjectRefusal, code="REG-0301", status=404, registry_code=40401):
    """A request names a subject that the registry does not have."""

    MESSAGE = 'subject "{subject}" does not exist'
    HINT = "Ask for /subjects, and name one of them."


class UnknownVersion(VersionRefusal, code="REG-0302", status=404, registry_code=40402):
    """A request names a version that the subject does not have."""

    MESSAGE = 'version {version} of subject "{subject}" does not exist'
    HINT = "Ask for the versions of the subject, and name one of them."


class UnknownSchemaId(Refusal, code="REG-0303", status=404, registry_code=40403):
    """A request names a schema id that the registry has not given out."""

    schema_id: int
    MESSAGE = "schema {schema_id} does not exist"
    HINT = "Check that the id comes from this registry and not from another one."


class SchemaNotInSubject(SubjectRefusal, code="REG-0304", status=404, registry_code=40403):
    """A request asks for the version of a schema that the subject does not contain."""

    MESSAGE = 'subject "{subject}" has no version with this schema'
    HINT = "Register the schema first."


class SubjectAlreadyDeleted(SubjectRefusal, code="REG-0305", status=404, registry_code=40404):
    """A subject is to be deleted softly a second time."""

    MESSAGE = 'subject "{subject}" is deleted already; permanent=true removes it for good'
    HINT = "Add permanent=true to remove it for good."


class SubjectNotDeleted(SubjectRefusal, code="REG-0306", status=404, registry_code=40405):
    """A subject is to be deleted permanently before it was deleted softly."""

    MESSAGE = 'subject "{subject}" cannot be deleted permanently before it is deleted'
    HINT = "Delete it without permanent=true first."


class VersionAlreadyDeleted(VersionRefusal, code="REG-0307", status=404, registry_code=40406):
    """A version is to be deleted softly a second time."""

    MESSAGE = 'version {version} of subject "{subject}" is deleted already; permanent=true removes it for good'
    HINT = "Add permanent=true to remove it for good."


class VersionNotDeleted(VersionRefusal, code="REG-0308", status=404, registry_code=40407):
    """A version is to be deleted permanently before it was deleted softly."""

    MESSAGE = 'version {version} of subject "{subject}" cannot be deleted permanently before it is deleted'
    HINT = "Delete it without permanent=true first."


class NoLevelOfItsOwn(SubjectRefusal, code="REG-0309", status=404, registry_code=40408):
    """A request asks for the compatibility level of a subject that only has the global one."""

    MESSAGE = 'subject "{subject}" has no compatibility level of its own'
    HINT = "Ask with defaultToGlobal=true, or set a level for the subject."


class NoModeOfItsOwn(SubjectRefusal, code="REG-0310", status=404, registry_code=40409):
    """A request asks for the mode of a subject that only has the global one."""

    MESSAGE = 'subject "{subject}" has no mode of its own'
    HINT = "Ask with defaultToGlobal=true, or set a mode for the subject."


class Incompatible(Refusal, code="REG-0311", status=409, registry_code=409):
    """A schema breaks the compatibility level of its subject."""

    subject: str
    level: str
    reasons: tuple[str, ...]
    MESSAGE = (
        'schema is incompatible with an earlier version of subject "{subject}" at level {level}: {reasons:clauses}'
    )
    HINT = "Change the schema so that the reasons in the message no longer hold, or set another level."


class InvalidSchema(Refusal, code="REG-0312", status=422, registry_code=42201):
    """The text of a schema, or one of its references, is not valid."""

    problem: str
    MESSAGE = "{problem}"
    HINT = "Correct the schema as the message says."


class InvalidVersion(Refusal, code="REG-0313", status=422, registry_code=42202):
    """A request names a version that is neither a number nor the word latest."""

    version: str
    MESSAGE = '"{version:.40}" is not a version; write a number from 1 to 2147483647, or latest'
    HINT = "Write a number from 1, or latest."


class InvalidLevel(Refusal, code="REG-0314", status=422, registry_code=42203):
    """A request sets a compatibility level that does not exist."""

    level: str
    MESSAGE = (
        '"{level:.40}" is not a compatibility level; write BACKWARD, BACKWARD_TRANSITIVE, FORWARD, '
        "FORWARD_TRANSITIVE, FULL, FULL_TRANSITIVE or NONE"
    )
    HINT = "Write one of the levels that the message lists."


class InvalidMode(Refusal, code="REG-0315", status=422, registry_code=42204):
    """A request sets a mode that does not exist."""

    mode: str
    MESSAGE = '"{mode:.40}" is not a mode; write READWRITE, READONLY, READONLY_OVERRIDE (global only) or IMPORT'
    HINT = "Write one of the modes that the message lists."


class NotPermitted(Refusal, code="REG-0316", status=422, registry_code=42205):
    """The mode of the subject or of the registry forbids the request."""

    problem: str
    MESSAGE = "{problem}"
    HINT = "Set another mode with PUT /mode, or leave out what the message names."


class ReferencedElsewhere(VersionRefusal, code="REG-0317", status=422, registry_code=42206):
    """A version is to be deleted, and other schemas refer to it."""

    by: tuple[int, ...]
    MESSAGE = 'version {version} of subject "{subject}" is referred to by schema {by:list}'
    HINT = "Delete the schemas that the message names first."


class IdTaken(Refusal, code="REG-0318", status=422, registry_code=42207):
    """A schema is registered with an id that another schema has."""

    schema_id: int
    MESSAGE = "schema id {schema_id} belongs to another schema"
    HINT = "Choose another id, or let the registry choose one."


class InvalidSubject(Refusal, code="REG-0319", status=422, registry_code=42208):
    """A request uses a name that no subject can have."""

    subject: str
    problem: str
    MESSAGE = '"{subject:.80}" cannot be the name of a subject: {problem}'
    HINT = "Choose another name."


class UnreadableRequest(Refusal, code="REG-0320", status=400, registry_code=400):
    """The body or a parameter of a request cannot be read."""

    problem: str
    MESSAGE = "{problem}"
    HINT = "Correct the request as the message says."


class BodyTooLarge(Refusal, code="REG-0321", status=413, registry_code=413):
    """The body of a request is too large."""

    limit: int
    MESSAGE = "request body is larger than {megabytes} MB"
    HINT = "Split the schema, and use references."

    @property
    def megabytes(self) -> int:
        return self.limit // 1_000_000


class UnknownContentType(Refusal, code="REG-0322", status=415, registry_code=415):
    """A request has a body of a type that the registry does not read."""

    content_type: str
    MESSAGE = 'content type "{content_type:.80}" is not understood; send application/vnd.schemaregistry.v1+json'
    HINT = "Send JSON with the content type that the message names."


class NoAcceptableType(Refusal, code="REG-0323", status=406, registry_code=406):
    """A client accepts only types that the registry does not write."""

    accept: str
    MESSAGE = 'no answer in "{accept:.80}" can be given; accept application/vnd.schemaregistry.v1+json'
    HINT = "Accept the type that the message names."


class NotSignedIn(Refusal, code="REG-0324", status=401, registry_code=401):
    """The registry has users, and the request has no valid user name and password."""

    MESSAGE = "user name or password is missing or wrong"
    HINT = "Send the name and password of a user in the user file."


class ReadOnlyUser(Refusal, code="REG-0325", status=403, registry_code=403):
    """A user who may only read sent a request that changes something."""

    user: str
    MESSAGE = 'user "{user}" may only read'
    HINT = "Use another user, or change the user file."


class StoreFailed(Refusal, code="REG-0326", status=500, registry_code=50001):
    """The registry's database cannot be read or written."""

    problem: str
    MESSAGE = "the registry's store failed: {problem}"
    HINT = "Check the disk that holds the registry's data."


class Failed(Refusal, code="REG-0327", status=500, registry_code=500):
    """The registry has a bug. Its log has the cause; the answer does not, because it may hold secrets."""

    MESSAGE = "the registry failed; its log says more"
    HINT = "Report the bug with the registry's log."


class StoreUnusable(RegistryError, code="REG-0341"):
    """The folder with the registry's data is not one, or belongs to another version."""

    path: str
    problem: str
    MESSAGE = 'registry data in "{path}" cannot be used: {problem}'
    HINT = "Give --data an empty folder, or one that this version of the registry wrote."


class PortTaken(RegistryError, code="REG-0342"):
    """The registry cannot listen on its port."""

    host: str
    port: int
    MESSAGE = "could not listen on {host}:{port}"
    HINT = (
        "Another process has the port, or the address is not of this machine; choose another one, or --port 0 "
        "for any free port."
    )


class UserFileUnusable(RegistryError, code="REG-0343"):
    """The file with the registry's users cannot be read, is open to other users, or has a line of another form."""

    path: str
    problem: str
    MESSAGE = 'user file "{path}" cannot be used: {problem}'
    HINT = (
        'One user per line, "read-write NAME PASSWORD" or "read-only NAME PASSWORD", in a file that only its '
        "owner can read."
    )


class OpenToTheNetwork(RegistryError, code="REG-0344"):
    """A registry that asks for no password would be open to the network."""

    host: str
    MESSAGE = 'registry without users cannot listen on "{host}"'
    HINT = "Listen on 127.0.0.1, or give a --user-file."
