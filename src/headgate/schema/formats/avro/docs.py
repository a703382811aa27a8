"""Docs in an Avro schema, which is JSON: they do not show in the bytes."""

from __future__ import annotations


def without_docs(schema: object) -> object:
    """The schema without any doc, at every depth."""
    match schema:
        case dict():
            return {key: without_docs(value) for key, value in schema.items() if key != "doc"}
        case list():
            return [without_docs(item) for item in schema]
        case _:
            return schema
