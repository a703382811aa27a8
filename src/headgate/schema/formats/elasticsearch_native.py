"""Fields of an index with a type in the index's own words: AS 'keyword', and names that an index may have."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headgate.schema import errors, types as t
from headgate.schema.formats.elasticsearch import MOST_SCALED_DIGITS, IndexMapping
from headgate.schema.render import print_type

# An index gets a suffix: `-v` and a number for the index itself, `--w` and an epoch of up to 19 digits for its writer.
LONGEST_NAME = 255 - len("--w") - 19
_FORBIDDEN = re.compile(r'[\\/*?"<>| ,#:\x00-\x1f]')

# The types of an index that hold every value of a type of ours without changing it.
_NATIVE: Mapping[type, frozenset[str]] = {
    t.Boolean: frozenset({"boolean", "keyword"}),
    t.Integer: frozenset({"byte", "short", "integer", "long", "double"}),
    t.Bigint: frozenset({"byte", "short", "integer", "long"}),
    t.Real: frozenset({"float", "double"}),
    t.Double: frozenset({"double"}),
    t.Decimal: frozenset({"keyword", "scaled_float"}),
    t.Text: frozenset({"text", "keyword", "wildcard", "match_only_text", "search_as_you_type", "ip", "version"}),
    t.Enum: frozenset({"keyword", "text", "wildcard"}),
    t.Uuid: frozenset({"keyword", "text"}),
    t.Time: frozenset({"keyword"}),
    t.Date: frozenset({"date"}),
    t.Timestamp: frozenset({"date", "date_nanos"}),
    t.TimestampTz: frozenset({"date", "date_nanos"}),
    t.Record: frozenset({"object", "nested"}),
    t.Json: frozenset({"flat_object", "flattened"}),
}


def native_field(plain: IndexMapping, type_: t.Type, native: str, path: str) -> IndexMapping:
    """The mapping of a field of a type in the index's own words. ``plain`` is its mapping without them.

    A type that holds fewer values, such as `short` for integers, is allowed: the index refuses the others one by one. Raises
    UnsupportedType for a type that would change values.
    """
    element = type_
    while isinstance(element, t.Array):
        element = element.element
    known = _NATIVE.get(type(element), frozenset())
    if native not in known:
        why = f"AS '{native}' does not hold its values"
        instead = " or ".join(f"AS '{name}'" for name in sorted(known)) or "the field without AS"
        raise errors.UnsupportedType(path, "elasticsearch", print_type(type_), why, instead)
    match element:
        case t.Decimal() if native == "scaled_float":
            return _scaled(element, path)
        case t.Record():
            return plain if native == "object" else {**plain, "type": "nested"}
        case t.Date() | t.Timestamp() | t.TimestampTz():
            return {**plain, "type": native}
        case _:
            return plain if plain.get("type") == native else {"type": native}


def _scaled(type_: t.Decimal, path: str) -> IndexMapping:
    if type_.precision > MOST_SCALED_DIGITS:
        why = f"scaled numbers are exact up to {MOST_SCALED_DIGITS} digits"
        raise errors.UnsupportedType(path, "elasticsearch", print_type(type_), why, "AS 'keyword'")
    return {"type": "scaled_float", "scaling_factor": 10**type_.scale}


def index_name_problem(name: str) -> str | None:
    """Why an index cannot have a name, as a clause; None if it can."""
    if not name:
        return "it is empty"
    if name != name.lower():
        return "it has capital letters"
    if _FORBIDDEN.search(name):
        return 'it has a space or one of \\ / * ? " < > | , # :'
    if name[0] in "-_+" or name in (".", ".."):
        return "it begins with -, _ or +, or is only dots"
    if len(name.encode()) > LONGEST_NAME:
        return f"it is longer than {LONGEST_NAME} bytes"
    return None
