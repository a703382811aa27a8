"""The JSON of requests and answers: what a client sends as values, and versions as JSON."""

from __future__ import annotations

import base64

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from headgate.registry.schemas import ParsedSchema, Reference, Schema
from headgate.registry.server import requests as names
from headgate.registry.server import rules as settings
from headgate.registry.server.errors import InvalidSchema, UnreadableRequest
from headgate.registry.server.requests import Json
from headgate.registry.server.rules import Config, PostedSchema
from headgate.registry.server.store import StoredVersion
from headgate.registry.wire import MAX_ID
from headgate.schema.written import SchemaFormat

# Data contracts: taking them and not applying them would be worse than saying so.
_NOT_KEPT = (
    "metadata",
    "ruleSet",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
)


def schema_request(body: dict[str, Json]) -> PostedSchema:
    _refuse_contracts(body)
    text = body.get("schema")
    if not isinstance(text, str) or not text.strip():
        raise InvalidSchema("the schema is empty")
    schema = Schema(text, _schema_type(body.get("schemaType")), _references(body.get("references")))
    return PostedSchema(schema, _number(body, "id"), _number(body, "version"))


def config_change(body: dict[str, Json]) -> Config:
    """Other settings of Confluent's registry (alias, compatibilityGroup, …) are accepted and not applied."""
    _refuse_contracts(body)
    level, normalize = body.get("compatibility"), body.get("normalize")
    if level is not None and not isinstance(level, str):
        raise UnreadableRequest('"compatibility" is not text')
    if normalize is not None and not isinstance(normalize, bool):
        raise UnreadableRequest('"normalize" is neither true nor false')
    return Config(None if level is None else settings.level(level), normalize)


def mode_change(body: dict[str, Json]) -> settings.Mode:
    return settings.mode(str(body.get("mode")))


def version_answer(version: StoredVersion, text: str) -> dict[str, Json]:
    answer: dict[str, Json] = {
        "subject": version.subject,
        "version": version.version,
        "id": version.schema_id,
    }
    return {**answer, **schema_answer(version.schema, text)}


def schema_answer(schema: Schema, text: str) -> dict[str, Json]:
    """As Confluent's registry does it: Avro is the type that is not named, and no references are left out."""
    answer: dict[str, Json] = {}
    if schema.type is not SchemaFormat.AVRO:
        answer["schemaType"] = schema.type.value
    if schema.references:
        answer["references"] = [
            {"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references
        ]
    return {**answer, "schema": text}


def config_answer(config: Config, level_name: str) -> dict[str, Json]:
    """The level has one name in what was asked to be set, and another in what is set."""
    answer: dict[str, Json] = {level_name: config.level} if config.level is not None else {}
    return answer if config.normalize is None else {**answer, "normalize": config.normalize}


def serialized(parsed: ParsedSchema) -> str:
    """A Protobuf schema as its file descriptor, in base64."""
    if not isinstance(parsed.definition, FileDescriptorProto):
        raise InvalidSchema(f"a schema of type {parsed.schema.type} has no serialized form")
    return base64.b64encode(parsed.definition.SerializeToString()).decode()


def _schema_type(value: Json) -> SchemaFormat:
    if value is None:
        return SchemaFormat.AVRO
    try:
        return SchemaFormat(str(value).upper())
    except ValueError:
        raise InvalidSchema(
            f'"{str(value)[:40]}" is no type of schema; write AVRO, JSON or PROTOBUF'
        ) from None


def _references(value: Json) -> tuple[Reference, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidSchema("references are not a list")
    return tuple(_reference(item) for item in value)


def _reference(item: Json) -> Reference:
    match item:
        case {"name": str(name), "subject": str(subject), "version": int(version)}:
            return Reference(name, names.subject(subject), names.version(str(version)))
        case _:
            raise InvalidSchema("a reference needs a name, a subject and a version")


def _number(body: dict[str, Json], name: str) -> int | None:
    """Clients send -1 for an id, and 0 or -1 for a version, that they do not give."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value > MAX_ID:
        raise UnreadableRequest(f'"{name}" is not a number that an {name} can have')
    lowest = 0 if name == "id" else 1
    return value if value >= lowest else None


def _refuse_contracts(body: dict[str, Json]) -> None:
    for name in _NOT_KEPT:
        if body.get(name):
            raise InvalidSchema(f'this registry keeps no data contracts: leave out "{name}"')
