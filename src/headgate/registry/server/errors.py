"""What the registry server answers when it does not do what was asked, and what keeps it from starting.

A ``Refusal`` carries the HTTP status and the error code that Confluent's registry gives for the same thing: those
two are the interface, and the clients of that registry decide by them. The messages are Headgate's own.
"""

from __future__ import annotations

from typing import ClassVar

from headgate.errors import error
from headgate.registry.errors import RegistryError


class Refusal(RegistryError):
    """A request that is answered with an error body instead of what it asked for."""

    status: ClassVar[int]
    registry_code: ClassVar[int]


@error
class UnknownSubject(Refusal):
    code, status, registry_code = "REG-0301", 404, 40401
    subject: str

    def message(self) -> str:
        return f'subject "{self.subject}" does not exist'


@error
class UnknownVersion(Refusal):
    code, status, registry_code = "REG-0302", 404, 40402
    subject: str
    version: int

    def message(self) -> str:
        return f'version {self.version} of subject "{self.subject}" does not exist'


@error
class UnknownSchemaId(Refusal):
    code, status, registry_code = "REG-0303", 404, 40403
    schema_id: int

    def message(self) -> str:
        return f"schema {self.schema_id} does not exist"


@error
class SchemaNotInSubject(Refusal):
    code, status, registry_code = "REG-0304", 404, 40403
    subject: str

    def message(self) -> str:
        return f'subject "{self.subject}" has no version with this schema'


@error
class SubjectAlreadyDeleted(Refusal):
    code, status, registry_code = "REG-0305", 404, 40404
    subject: str

    def message(self) -> str:
        return f'subject "{self.subject}" is deleted already; permanent=true removes it for good'


@error
class SubjectNotDeleted(Refusal):
    code, status, registry_code = "REG-0306", 404, 40405
    subject: str

    def message(self) -> str:
        return f'subject "{self.subject}" cannot be deleted permanently before it is deleted'


@error
class VersionAlreadyDeleted(Refusal):
    code, status, registry_code = "REG-0307", 404, 40406
    subject: str
    version: int

    def message(self) -> str:
        return f'version {self.version} of subject "{self.subject}" is deleted already; permanent=true removes it for good'


@error
class VersionNotDeleted(Refusal):
    code, status, registry_code = "REG-0308", 404, 40407
    subject: str
    version: int

    def message(self) -> str:
        return f'version {self.version} of subject "{self.subject}" cannot be deleted permanently before it is deleted'


@error
class NoLevelOfItsOwn(Refusal):
    code, status, registry_code = "REG-0309", 404, 40408
    subject: str

    def message(self) -> str:
        return f'subject "{self.subject}" has no compatibility level of its own'


@error
class NoModeOfItsOwn(Refusal):
    code, status, registry_code = "REG-0310", 404, 40409
    subject: str

    def message(self) -> str:
        return f'subject "{self.subject}" has no mode of its own'


@error
class Incompatible(Refusal):
    code, status, registry_code = "REG-0311", 409, 409
    subject: str
    level: str
    reasons: tuple[str, ...]

    def message(self) -> str:
        reasons = "; ".join(self.reasons)
        return f'schema is incompatible with an earlier version of subject "{self.subject}" at level {self.level}: {reasons}'


@error
class InvalidSchema(Refusal):
    code, status, registry_code = "REG-0312", 422, 42201
    problem: str

    def message(self) -> str:
        return self.problem


@error
class InvalidVersion(Refusal):
    code, status, registry_code = "REG-0313", 422, 42202
    version: str

    def message(self) -> str:
        return f'"{self.version[:40]}" is no version; write a number from 1 to 2147483647, or latest'


@error
class InvalidLevel(Refusal):
    code, status, registry_code = "REG-0314", 422, 42203
    level: str

    def message(self) -> str:
        return (
            f'"{self.level[:40]}" is no compatibility level; write BACKWARD, BACKWARD_TRANSITIVE, FORWARD, '
            "FORWARD_TRANSITIVE, FULL, FULL_TRANSITIVE or NONE"
        )


@error
class InvalidMode(Refusal):
    code, status, registry_code = "REG-0315", 422, 42204
    mode: str

    def message(self) -> str:
        return f'"{self.mode[:40]}" is no mode; write READWRITE, READONLY, READONLY_OVERRIDE (global only) or IMPORT'


@error
class NotPermitted(Refusal):
    code, status, registry_code = "REG-0316", 422, 42205
    problem: str

    def message(self) -> str:
        return self.problem


@error
class ReferencedElsewhere(Refusal):
    code, status, registry_code = "REG-0317", 422, 42206
    subject: str
    version: int
    by: tuple[int, ...]

    def message(self) -> str:
        ids = ", ".join(str(i) for i in self.by)
        return f'version {self.version} of subject "{self.subject}" is referred to by schema {ids}'


@error
class IdTaken(Refusal):
    code, status, registry_code = "REG-0318", 422, 42207
    schema_id: int

    def message(self) -> str:
        return f"schema id {self.schema_id} belongs to another schema"


@error
class InvalidSubject(Refusal):
    code, status, registry_code = "REG-0319", 422, 42208
    subject: str
    problem: str

    def message(self) -> str:
        return f'"{self.subject[:80]}" cannot be the name of a subject: {self.problem}'


@error
class UnreadableRequest(Refusal):
    code, status, registry_code = "REG-0320", 400, 400
    problem: str

    def message(self) -> str:
        return self.problem


@error
class BodyTooLarge(Refusal):
    code, status, registry_code = "REG-0321", 413, 413
    limit: int

    def message(self) -> str:
        return f"request body is larger than {self.limit // 1_000_000} MB"


@error
class UnknownContentType(Refusal):
    code, status, registry_code = "REG-0322", 415, 415
    content_type: str

    def message(self) -> str:
        return f'content type "{self.content_type[:80]}" is not understood; send application/vnd.schemaregistry.v1+json'


@error
class NoAcceptableType(Refusal):
    code, status, registry_code = "REG-0323", 406, 406
    accept: str

    def message(self) -> str:
        return (
            f'no answer in "{self.accept[:80]}" can be given; accept application/vnd.schemaregistry.v1+json'
        )


@error
class NotSignedIn(Refusal):
    code, status, registry_code = "REG-0324", 401, 401

    def message(self) -> str:
        return "user name or password is missing or wrong"


@error
class ReadOnlyUser(Refusal):
    code, status, registry_code = "REG-0325", 403, 403
    user: str

    def message(self) -> str:
        return f'user "{self.user}" may only read'


@error
class StoreFailed(Refusal):
    code, status, registry_code = "REG-0326", 500, 50001
    problem: str

    def message(self) -> str:
        return f"the registry's store failed: {self.problem}"


@error
class Failed(Refusal):
    """A bug of the registry. What it was stands in its log, not in the answer."""

    code, status, registry_code = "REG-0327", 500, 500

    def message(self) -> str:
        return "the registry failed; its log says more"


@error
class StoreUnusable(RegistryError):
    code = "REG-0341"
    path: str
    problem: str

    def message(self) -> str:
        return f'registry data in "{self.path}" cannot be used: {self.problem}'

    def hint(self) -> str:
        return "Give --data an empty folder, or one that this version of the registry wrote."


@error
class PortTaken(RegistryError):
    code = "REG-0342"
    host: str
    port: int

    def message(self) -> str:
        return f"could not listen on {self.host}:{self.port}"

    def hint(self) -> str:
        return "Another process has the port, or the address is not of this machine; choose another one, or --port 0 for any free port."


@error
class UserFileUnusable(RegistryError):
    code = "REG-0343"
    path: str
    problem: str

    def message(self) -> str:
        return f'user file "{self.path}" cannot be used: {self.problem}'

    def hint(self) -> str:
        return 'One user per line, "read-write NAME PASSWORD" or "read-only NAME PASSWORD", in a file that only its owner can read.'


@error
class OpenToTheNetwork(RegistryError):
    code = "REG-0344"
    host: str

    def message(self) -> str:
        return f'registry without users cannot listen on "{self.host}"'

    def hint(self) -> str:
        return "Listen on 127.0.0.1, or give a --user-file."
