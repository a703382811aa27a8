"""Formats, and where on Kafka they are read or written."""

from __future__ import annotations

from typing import assert_never

from headgate.sql.ast.formats import (
    AvroInline,
    BytesFormat,
    CsvFormat,
    DocOn,
    DocTarget,
    Format,
    FormatOption,
    Formats,
    IdStrategy,
    InlineStrategy,
    JsonFormat,
    LatestStrategy,
    ProtobufInline,
    RegexFormat,
    RegistryFormat,
    RegistryUrl,
    SchemaStrategy,
    SeedSchema,
    TextFormat,
)
from headgate.sql.ast.kafka import Kafka, KafkaBroker, KafkaConnection
from headgate.sql.ast.values import Option
from headgate.sql.render.values import block, identifiers, map_, name, option, options, string, words


def kafka(node: Kafka) -> str:
    match node:
        case KafkaConnection(connection, given):
            return f"KAFKA CONNECTION {name(connection)} {options(given)}"
        case KafkaBroker(broker, topic, given):
            return words(
                f"KAFKA BROKER {string(broker)} TOPIC {string(topic)}", options(given) if given else ""
            )
        case _:
            assert_never(node)


def formats(node: Formats) -> str:
    if node.key is None:
        return f"FORMAT {format_(node.value)}"
    return f"KEY FORMAT {format_(node.key)}\nVALUE FORMAT {format_(node.value)}"


def format_(node: Format) -> str:
    match node:
        case TextFormat():
            return "TEXT"
        case BytesFormat():
            return "BYTES"
        case JsonFormat():
            return "JSON"
        case CsvFormat():
            return _csv(node)
        case RegexFormat(pattern):
            return f"REGEX {string(pattern)}"
        case AvroInline(schema, given):
            return words(f"AVRO USING SCHEMA {string(schema)}", options(given) if given else "")
        case ProtobufInline(message, schema):
            return f"PROTOBUF MESSAGE {string(message)} USING SCHEMA {string(schema)}"
        case RegistryFormat():
            return _registry_format(node)
        case _:
            assert_never(node)


def _csv(node: CsvFormat) -> str:
    columns = f"WITH {node.columns} COLUMNS" if node.columns is not None else ""
    header = f"WITH HEADER {identifiers(node.header)}" if node.header is not None else ""
    delimiter = f"DELIMITED BY {string(node.delimiter)}" if node.delimiter is not None else ""
    return words("CSV", columns, header, delimiter)


def _registry_format(node: RegistryFormat) -> str:
    message = f"MESSAGE {string(node.message)}" if node.message is not None else ""
    registry = (
        string(node.registry.url)
        if isinstance(node.registry, RegistryUrl)
        else f"CONNECTION {name(node.registry)}"
    )
    listed = block([format_option(given) for given in node.options]) if node.options else ""
    return words(node.kind, message, "USING CONFLUENT SCHEMA REGISTRY", registry, listed)


def format_option(node: FormatOption) -> str:
    match node:
        case Option():
            return option(node)
        case DocOn():
            return doc_on(node)
        case SchemaStrategy(side, strategy):
            return f"{side} STRATEGY = {_strategy(strategy)}"
        case SeedSchema(side, number, schema, references):
            seed = f"SEED {side} SCHEMA ID {number} {string(schema)}"
            return words(seed, f"REFERENCES {map_(references)}" if references else "")
        case _:
            assert_never(node)


def _strategy(node: LatestStrategy | IdStrategy | InlineStrategy) -> str:
    match node:
        case LatestStrategy():
            return "LATEST"
        case IdStrategy(number):
            return f"ID {number}"
        case InlineStrategy(schema):
            return f"INLINE {string(schema)}"
        case _:
            assert_never(node)


def doc_on(node: DocOn) -> str:
    return f"{doc_target(node.target)} = {string(node.doc)}"


def doc_target(node: DocTarget) -> str:
    return words(node.side or "", f"DOC ON {node.on} {name(node.name)}")
