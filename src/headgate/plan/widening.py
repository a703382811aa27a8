"""Which types of PostgreSQL a column can be changed to where it stands (DESIGN §6), and how. Pure.

Types are texts of `format_type`. A column may also be wider than what is written to it: narrowing never happens by itself.
"""

from __future__ import annotations

import re

from headgate.plan.indexes import narrowed_fields
from headgate.plan.target_definitions import IndexDefinition, MaterializationDefinition, TableDefinition

_NUMERIC = re.compile(r"numeric(?:\((\d+),(\d+)\))?\Z")
_INTEGERS = ("smallint", "integer", "bigint")
_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}
_TEXT = re.compile(r"(?:text|character varying|varchar)\Z")
_VARYING = re.compile(r"(?:character varying|varchar)\((\d+)\)\Z")
# The text that the value has in JSON, as the writer of json has it.
_MOMENT = "to_char({column}, 'YYYY-MM-DD\"T\"HH24:MI:SS.US')"
_AS_TEXT = {
    "timestamp without time zone": _MOMENT,
    "timestamp with time zone": "to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
}


def widening(old: str, new: str) -> str | None:
    """The expression over ``{column}`` that turns values of the old type into the new one without loss; None if there is none.

    bigint to double is refused here: whether its values are exact in a double is a question to the table.
    """
    if old == new:
        return "{column}"
    if new == "jsonb":
        return "to_jsonb({column})"
    if _TEXT.match(new):
        return None if old.endswith("[]") or old == "bytea" else _AS_TEXT.get(old, "to_jsonb({column}) #>> '{{}}'")
    if _widens_number(old, new):
        # A double goes to numeric through its text: `::numeric` would keep 15 digits.
        return "{column}::text::numeric" if old in ("double precision", "real") else "{column}"
    before, after = _VARYING.match(old), _VARYING.match(new)
    if before and after and int(before[1]) <= int(after[1]):
        return "{column}"
    return None


def _widens_number(old: str, new: str) -> bool:
    if old in _INTEGERS and new in _INTEGERS:
        return _INTEGERS.index(old) < _INTEGERS.index(new)
    if new == "double precision":
        return old in ("smallint", "integer", "real")
    number = _NUMERIC.match(new)
    if number is None:
        return False
    if number[1] is None:
        return old in (*_INTEGERS, "real", "double precision") or _NUMERIC.match(old) is not None
    whole, scale = int(number[1]) - int(number[2]), int(number[2])
    if old in _INTEGERS:
        return whole >= _DIGITS[old]
    before = _NUMERIC.match(old)
    if before is None or before[1] is None:
        return False
    return int(before[2]) <= scale and int(before[1]) - int(before[2]) <= whole


def narrowed_columns(old: MaterializationDefinition, new: MaterializationDefinition) -> tuple[str, ...]:
    """The columns that both definitions have and whose values the new one may not hold, each with its types."""
    if isinstance(old, IndexDefinition) and isinstance(new, IndexDefinition):
        return narrowed_fields(old, new)
    if not isinstance(old, TableDefinition) or not isinstance(new, TableDefinition):
        return ()
    known = dict(old.all_columns())
    found = []
    for name, column in new.all_columns():
        was = known.get(name)
        if was is None:
            continue
        if widening(was.postgres, column.postgres) is None and (was.postgres, column.postgres) != (
            "bigint",
            "double precision",
        ):
            found.append(f"{name} from {was.postgres} to {column.postgres}")
        elif was.nullable and not column.nullable:
            found.append(f"{name} to NOT NULL")
    return tuple(found)
