"""What is wrong with a schema that a stream or table is given: PLN-0746."""

from __future__ import annotations

from headgate.resolve.stream_errors import StreamError


class MessageInImport(StreamError, code="PLN-0746"):
    """The named Protobuf message stands in a file that the newest schema of the subject imports. The frame of a record can only
    name messages of the schema itself."""

    side: str
    proto: str
    subject: str
    id: int
    MESSAGE = 'message "{proto}" of {kind} "{name}" stands in a schema that subject "{subject}" only imports'
    HINT = "Write {side}_schema_id = {id}: this is the schema in which the message stands."
