"""Identifiers: how a name is written, how it is found, and how it is changed to fit the rules of a format.

Names keep the case they were written in. A name without quotes matches a candidate in any case if there is only one;
otherwise it must match exactly. A name in quotes always matches exactly.

The path of a part of a type is made of names: `$.a.b` is a field, `$.a[]` the elements of an array, `$.m{}` the values
of a map. Code that takes a path apart uses `Path`, a tuple of steps. Code that only shows paths makes their text step
by step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from headgate.errors import similar_names

POSTGRES_LIMIT = 63  # bytes of UTF-8; PostgreSQL cuts longer identifiers without an error

# Words that are not read as a column in an expression, here or in PostgreSQL. Such a name is printed in quotes.
_RESERVED = """
all alter and any array as asc between both by case cast check collate column constraint create cross
current_date current_time current_timestamp current_user default desc distinct drop else end except exists
false fetch for foreign from full grant group having in inner insert intersect into is join lateral leading
left like limit natural not null on or order outer primary references right select session_user some table
then to trailing true union unique user using values when where with
"""
RESERVED = frozenset(_RESERVED.split())

_INTERNAL = "hg:"

# Upper case is allowed, because names keep their case.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NOT_AVRO = re.compile(r"[^A-Za-z0-9_]")


def internal_name(name: str) -> str:
    """The name of a column that travels beside the columns of a relation. No relation has a column of that name: the catalog
    refuses it (`is_internal`)."""
    return _INTERNAL + name


WEIGHT = internal_name("weight")
"""The column of a signed bag: positive for rows that came, negative for rows that went."""


def is_internal(name: str) -> bool:
    """Whether a name is kept for columns beside those of a relation. Some parts of Spark and Delta do not see the case of names."""
    return name.lower().startswith(_INTERNAL)


def needs_quotes(name: str, reserved: frozenset[str] = RESERVED) -> bool:
    """Whether the name must be quoted to be read back. Upper case needs no quotes, because names keep their case."""
    return _PLAIN.match(name) is None or name.lower() in reserved


def quote_identifier(name: str, reserved: frozenset[str] = RESERVED) -> str:
    """The name as it is printed in SQL: without quotes if possible."""
    return force_quotes(name) if needs_quotes(name, reserved) else name


def force_quotes(name: str) -> str:
    """The name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """A string literal of standard SQL. Only the single quote is special."""
    return "'" + text.replace("'", "''") + "'"


def print_name(parts: Sequence[str], reserved: frozenset[str] = RESERVED) -> str:
    """A dotted name, each part quoted if necessary."""
    return ".".join(quote_identifier(part, reserved) for part in parts)


@dataclass(frozen=True, slots=True)
class Found:
    """`name` is the candidate, in its own case."""

    name: str


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Several candidates differ from the name only in case, and none is equal to it."""

    candidates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotFound:
    """No candidate is meant.

    The similar ones are computed when an error needs them. To compare texts is slow, and a name that an inner scope
    lacks is often found in the outer one.
    """

    name: str
    by_folded: Mapping[str, Sequence[str]]

    @property
    def similar(self) -> tuple[str, ...]:
        """Candidates that differ in case alone, or otherwise those that resemble the name."""
        same = tuple(self.by_folded.get(self.name.lower(), ()))
        return same or similar_names(self.name, (c for others in self.by_folded.values() for c in others))


Lookup = Found | Ambiguous | NotFound


def find(name: str, quoted: bool, candidates: Iterable[str]) -> Lookup:
    """The candidate that the name means. For many look-ups among the same candidates use a `NameIndex`."""
    listed = list(candidates)
    return Found(name) if name in listed else NameIndex(listed).find(name, quoted)


class NameIndex:
    """Candidates prepared for look-up in constant time. Only the similar names of a miss need all of them."""

    def __init__(self, candidates: Iterable[str]) -> None:
        self._by_folded: dict[str, list[str]] = {}
        for candidate in candidates:
            same = self._by_folded.setdefault(candidate.lower(), [])
            if candidate not in same:
                same.append(candidate)

    def find(self, name: str, quoted: bool) -> Lookup:
        """The candidate that the name means."""
        same = self._by_folded.get(name.lower(), [])
        if name in same:
            return Found(name)
        if not quoted and len(same) == 1:
            return Found(same[0])
        if not quoted and same:
            return Ambiguous(tuple(sorted(same)))
        return NotFound(name, self._by_folded)


def avro_names(names: Sequence[str], published: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Each name in a form that is valid in Avro, in order, without duplicates.

    A name in ``published`` keeps the form that it has there. Of the others, a valid one that is not taken stays as it is.
    Invalid characters become `_`, and a leading digit gets a `_` in front. A name that clashes with another one gets the
    smallest free number; names that come later count as well.
    """
    made = dict(published or {})
    taken = set(made.values())
    made |= {name: name for name in names if name not in made and name not in taken and avro_name(name) == name}
    taken.update(made.values())
    for name in names:
        if name not in made:
            made[name] = _free(avro_name(name), taken)
            taken.add(made[name])
    return tuple(made[name] for name in names)


def published_names(
    names: Sequence[str], path: tuple[str, ...], renames: Mapping[tuple[str, ...], str]
) -> tuple[str | None, ...]:
    """The names that the fields of a record at a path have in a published schema, if the schema has them. ``renames`` are
    the fields whose names there are other ones. None for a field whose own name another field has: it came later."""
    given = [renames.get((*path, name)) for name in names]
    taken = set(given)
    return tuple(other or (None if name in taken else name) for name, other in zip(names, given, strict=True))


def avro_name(name: str) -> str:
    """One name in a form that is valid in Avro. Two names may become the same: see `avro_names`."""
    valid = _NOT_AVRO.sub("_", name)
    return "_" + valid if not valid or valid[0].isdigit() else valid


def _free(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    number = 1
    while f"{name}{number}" in taken:
        number += 1
    return f"{name}{number}"


def postgres_too_long(name: str) -> bool:
    """Whether PostgreSQL would cut the name."""
    return len(name.encode("utf-8", "surrogatepass")) > POSTGRES_LIMIT


FieldNames: TypeAlias = tuple[tuple[tuple[str, ...], str], ...]
"""Names of fields in a schema, each with the SQL names that lead to the field from the outermost record on."""


# Paths


ROOT = "$"


class Step(Enum):
    """A step into a value that is not a record."""

    ELEMENT = "[]"
    VALUE = "{}"


Path: TypeAlias = tuple[str | Step, ...]
"""From the outermost value inwards. A text is the name of a field."""


def print_path(path: Path) -> str:
    """The path as text."""
    text = ROOT
    for step in path:
        text = text + step.value if isinstance(step, Step) else field_path(text, step)
    return text


def field_path(path: str, name: str) -> str:
    """The path of a field. A name that could be misread is quoted."""
    return f"{path}.{name}" if name.isidentifier() else f"{path}.{force_quotes(name)}"


def element_path(path: str) -> str:
    return path + Step.ELEMENT.value


def value_path(path: str) -> str:
    return path + Step.VALUE.value
