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
from headgate.sql.ast.names import block, print_identifiers, print_name, print_string, words
from headgate.sql.ast.values import Option
from headgate.sql.render.values import print_map, print_option, print_options


def print_kafka(node: Kafka) -> str:
    match node:
        case KafkaConnection(connection, given):
            return f"KAFKA CONNECTION {print_name(connection)} {print_options(given)}"
        case KafkaBroker(broker, topic, given):
            return words(
                f"KAFKA BROKER {print_string(broker)} TOPIC {print_string(topic)}",
                print_options(given) if given else "",
            )
        case _:
            assert_never(node)


def print_formats(node: Formats) -> str:
    if node.key is None:
        return f"FORMAT {print_format(node.value)}"
    return f"KEY FORMAT {print_format(node.key)}\nVALUE FORMAT {print_format(node.value)}"


def print_format(node: Format) -> str:
    match node:
        case TextFormat():
            return "TEXT"
        case BytesFormat():
            return "BYTES"
        case JsonFormat():
            return "JSON"
        case CsvFormat():
            return _print_csv(node)
        case RegexFormat(pattern):
            return f"REGEX {print_string(pattern)}"
        case AvroInline(schema, given):
            return words(f"AVRO USING SCHEMA {print_string(schema)}", print_options(given) if given else "")
        case ProtobufInline(message, schema):
            return f"PROTOBUF MESSAGE {print_string(message)} USING SCHEMA {print_string(schema)}"
        case RegistryFormat():
            return _print_registry_format(node)
        case _:
            assert_never(node)


def _print_csv(node: CsvFormat) -> str:
    columns = f"WITH {node.columns} COLUMNS" if node.columns is not None else ""
    header = f"WITH HEADER {print_identifiers(node.header)}" if node.header is not None else ""
    delimiter = f"DELIMITED BY {print_string(node.delimiter)}" if node.delimiter is not None else ""
    return words("CSV", columns, header, delimiter)


def _print_registry_format(node: RegistryFormat) -> str:
    message = f"MESSAGE {print_string(node.message)}" if node.message is not None else ""
    registry = (
        print_string(node.registry.url)
        if isinstance(node.registry, RegistryUrl)
        else f"CONNECTION {print_name(node.registry)}"
    )
    listed = block([print_format_option(given) for given in node.options]) if node.options else ""
    return words(node.kind, message, "USING CONFLUENT SCHEMA REGISTRY", registry, listed)


def print_format_option(node: FormatOption) -> str:
    match node:
        case Option():
            return print_option(node)
        case DocOn():
            return print_doc_on(node)
        case SchemaStrategy(side, strategy):
            return f"{side} STRATEGY = {_print_strategy(strategy)}"
        case SeedSchema(side, number, schema, references):
            seed = f"SEED {side} SCHEMA ID {number} {print_string(schema)}"
            return words(seed, f"REFERENCES {print_map(references)}" if references else "")
        case _:
            assert_never(node)


def _print_strategy(node: LatestStrategy | IdStrategy | InlineStrategy) -> str:
    match node:
        case LatestStrategy():
            return "LATEST"
        case IdStrategy(number):
            return f"ID {number}"
        case InlineStrategy(schema):
            return f"INLINE {print_string(schema)}"
        case _:
            assert_never(node)


def print_doc_on(node: DocOn) -> str:
    return f"{print_doc_target(node.target)} = {print_string(node.doc)}"


def print_doc_target(node: DocTarget) -> str:
    return words(node.side or "", f"DOC ON {node.on} {print_name(node.name)}")
