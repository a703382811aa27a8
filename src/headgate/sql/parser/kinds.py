"""The kinds of objects, as keywords."""

from __future__ import annotations

from typing import get_args

from headgate.sql.ast.show import Listing
from headgate.sql.ast.statement import ObjectKind
from headgate.text.cursor import Cursor


def _longest_first(words: tuple[str, ...]) -> tuple[str, ...]:
    """SINK POLICY before SINK: a phrase must be tried before its own beginnings."""
    return tuple(sorted(words, key=lambda phrase: -phrase.count(" ")))


_KINDS: dict[str, ObjectKind] = {kind: kind for kind in get_args(ObjectKind)}
_LISTINGS: dict[str, Listing] = {listing: listing for listing in get_args(Listing)}
_KIND_PHRASES = _longest_first(tuple(_KINDS))
_LISTING_PHRASES = _longest_first(tuple(_LISTINGS))

RULES = {"kind": "{" + " | ".join(_KINDS) + "}", "listing": "{" + " | ".join(_LISTINGS) + "}"}


def kind(cursor: Cursor) -> ObjectKind:
    """The kind that must come next. ``SINK policy`` is a policy only if a name follows, otherwise a sink called so."""
    if cursor.at("SINK", "POLICY") and not cursor.at_name(2):
        cursor.step()
        return "SINK"
    found = cursor.choose(*_KIND_PHRASES)
    if found is None:
        raise cursor.unexpected()
    return _KINDS[found]


def kind_before_name(cursor: Cursor) -> ObjectKind | None:
    """A kind, if a name follows it; alone, the word is itself the name: ``DESCRIBE source``."""
    for phrase in _KIND_PHRASES:
        words = phrase.split(" ")
        if cursor.at(*words) and cursor.at_name(len(words)):
            cursor.index += len(words)
            return _KINDS[phrase]
    return None


def take_listing(cursor: Cursor) -> Listing | None:
    found = cursor.choose(*_LISTING_PHRASES)
    return None if found is None else _LISTINGS[found]
