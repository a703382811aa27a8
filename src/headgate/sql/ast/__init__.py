"""Statements as values: what the parser makes, what purify fills in, what the catalog stores.

One file per family of statements, plus the parts they share: ``names`` (identifiers and slices of the text),
``values`` (literals and options), ``formats`` and ``kafka``. All are frozen dataclasses; two statements are equal if
they mean the same, wherever they stood: places in the text are kept but never compared. Imports only
``headgate.errors`` and ``headgate.schema.types``.
"""
