"""Texts that a synopsis allows: its shortest form, and that form with each optional part and each choice in turn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_TOKEN = re.compile(r"\s*(\[, \.\.\.\]|->|<[^<>]+>|'[^']*'|[\[\]{}|]|[(),=.]|[^\s\[\]{}|(),=.<]+)")

FILLED = {
    "name": "n", "new name": "m", "column": "c", "schema": "s", "database": "d", "string": "'x'", "number": "3",
    "boolean": "FALSE", "interval": "'2 seconds'", "map": "MAP['k' => 'v']", "type": "integer", "pointer": "'/p'",
    "query": "SELECT 1", "expression": "a + 1", "option name": "PASSWORD", "alter statement": "ALTER VIEW v RENAME TO w",
    "create statement": "CREATE DATABASE d", "create or replace statement": "CREATE OR REPLACE VIEW v AS SELECT 1",
    "create sink statement": "CREATE SINK FROM v INTO KAFKA CONNECTION k (TOPIC 't') FORMAT JSON",
    "insert statement": "INSERT INTO n VALUES (1)",
}  # fmt: skip

Variants = list[str]


@dataclass
class Expander:
    """Reads a synopsis and answers all its variants, the shortest first."""

    rules: Mapping[str, str]

    def expand(self, synopsis: str) -> Variants:
        tokens = _TOKEN.findall(synopsis)
        variants, end = self._choice(tokens, 0)
        assert end == len(tokens), f"cannot read {tokens[end:]} of {synopsis}"
        return variants

    def _choice(self, tokens: list[str], index: int) -> tuple[Variants, int]:
        variants, index = self._sequence(tokens, index)
        while index < len(tokens) and tokens[index] == "|":
            more, index = self._sequence(tokens, index + 1)
            variants = variants + more
        return variants, index

    def _sequence(self, tokens: list[str], index: int) -> tuple[Variants, int]:
        elements: list[Variants] = []
        while index < len(tokens) and tokens[index] not in ("|", "]", "}"):
            if tokens[index] == "[, ...]":
                # The item before the repetition reaches back to the opening parenthesis or the last keyword.
                elements.append(["", f", {self._item(elements)}"])
                index += 1
                continue
            element, index = self._element(tokens, index)
            elements.append(element)
        return _combined(elements), index

    def _item(self, elements: list[Variants]) -> str:
        item: list[str] = []
        for variants in reversed(elements):
            if variants[0] == "(" or (variants[0].isupper() and len(variants) == 1) or variants[0] in ("=", "TO"):
                break
            item.insert(0, variants[-1])  # another one than before: options may not be repeated
        return " ".join(item)

    def _element(self, tokens: list[str], index: int) -> tuple[Variants, int]:
        token = tokens[index]
        if token in ("[", "{"):
            inner, index = self._choice(tokens, index + 1)
            return (["", *inner] if token == "[" else inner), index + 1
        if token.startswith("<") and token.endswith(">"):
            name = token[1:-1]
            return ([FILLED[name]] if name in FILLED else self.expand(self.rules[name])), index + 1
        return [token], index + 1


def _combined(elements: list[Variants]) -> Variants:
    """All elements at their shortest, then each element's other variants with the rest at their shortest."""
    shortest = [variants[0] for variants in elements]
    texts = [_joined(shortest)]
    for index, variants in enumerate(elements):
        others = [[*shortest[:index], variant, *shortest[index + 1 :]] for variant in variants[1:]]
        texts += [_joined(parts) for parts in others]
    return texts


def _joined(parts: list[str]) -> str:
    return " ".join(part for part in parts if part)
