"""Identifiers: how a name is written, how it is found, and how it is made to fit a format's own rules.

Names keep the case they were written in. Written without quotes, a name finds its candidate whatever the case if
there is exactly one, and must otherwise match exactly; written in quotes it always matches exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headgate.errors import similar_names

POSTGRES_LIMIT = 63  # bytes of UTF-8 in an identifier; PostgreSQL cuts longer ones in silence

# Words that mean something else than a column where an expression may stand, here or in PostgreSQL. A name equal to
# one of them is printed in quotes.
_RESERVED = """
all alter and any array as asc between both by case cast check collate column constraint create cross
current_date current_time current_timestamp current_user default desc distinct drop else end except exists
false fetch for foreign from full grant group having in inner insert intersect into is join lateral leading
left like limit natural not null on or order outer primary references right select session_user some table
then to trailing true union unique user using values when where with
"""
RESERVED = frozenset(_RESERVED.split())

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NOT_AVRO = re.compile(r"[^A-Za-z0-9_]")


def needs_quotes(name: str, reserved: frozenset[str] = RESERVED) -> bool:
    """Whether the name is read back as itself only in quotes. Upper case alone needs none: names keep their case."""
    return _PLAIN.match(name) is None or name.lower() in reserved


def quote_identifier(name: str, reserved: frozenset[str] = RESERVED) -> str:
    """The name as it is printed in SQL: bare where possible, otherwise in double quotes."""
    return force_quotes(name) if needs_quotes(name, reserved) else name


def force_quotes(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """A string literal of standard SQL: only the single quote is special."""
    return "'" + text.replace("'", "''") + "'"


def print_name(parts: Sequence[str], reserved: frozenset[str] = RESERVED) -> str:
    """A dotted name, each part quoted where it must be."""
    return ".".join(quote_identifier(part, reserved) for part in parts)


@dataclass(frozen=True, slots=True)
class Found:
    name: str


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Several candidates differ only in case, and none is written as the name was."""

    candidates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotFound:
    similar: tuple[str, ...]


Lookup = Found | Ambiguous | NotFound


def find(name: str, quoted: bool, candidates: Iterable[str]) -> Lookup:
    """Which candidate the name means. For many look-ups among the same candidates, keep a `NameIndex`."""
    return NameIndex(candidates).find(name, quoted)


class NameIndex:
    """Candidates prepared for look-up in constant time; only the near names of a miss look at all of them."""

    def __init__(self, candidates: Iterable[str]) -> None:
        self._by_folded: dict[str, list[str]] = {}
        for candidate in candidates:
            same = self._by_folded.setdefault(candidate.lower(), [])
            if candidate not in same:
                same.append(candidate)

    def find(self, name: str, quoted: bool) -> Lookup:
        same = self._by_folded.get(name.lower(), [])
        if name in same:
            return Found(name)
        if not quoted and len(same) == 1:
            return Found(same[0])
        if not quoted and same:
            return Ambiguous(tuple(sorted(same)))
        return NotFound(
            tuple(same) or similar_names(name, (c for all_ in self._by_folded.values() for c in all_))
        )


def avro_names(names: Sequence[str]) -> tuple[str, ...]:
    """Each name made valid for Avro, in order, no two alike.

    Invalid characters become `_`, a leading digit gets `_`. A name that is valid already is never changed; another
    that would clash gets the smallest number that is free, also among the names that come later.
    """
    taken = {name for name in names if avro_name(name) == name}
    made: list[str] = []
    for name in names:
        valid = avro_name(name)
        if valid != name:
            valid = _free(valid, taken)
            taken.add(valid)
        made.append(valid)
    return tuple(made)


def avro_name(name: str) -> str:
    """One name made valid for Avro; two different names may become the same, which `avro_names` cures."""
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
    return len(name.encode("utf-8", "surrogatepass")) > POSTGRES_LIMIT
