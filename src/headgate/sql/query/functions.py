"""Result types of Spark's functions: a table of rules, one line per function or family of functions.

A line of `signatures.txt` is `names : arguments -> result [null rule]`. Arguments are kinds (`num`, `int`, `text`,
`array`, `map`, `any`, …), `?` after one makes it optional and `*` repeats it. Results are types as we print them, or
refer to an argument: `$1` the type of the first, `element($1)`, `key($1)`, `value($1)`, `array($1)`, `common` the
common type of all and `arrayof` an array of it. The null rule says when the result can be NULL: `any` argument is (the default), `all` are,
`never`, `always`. Functions that are not in the table are asked of Spark when a statement is purified.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from headgate.schema.parse import parse_type
from headgate.schema.types import (
    Array,
    Bigint,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Double,
    Integer,
    Map,
    Real,
    Record,
    Text,
    Time,
    Timestamp,
    TimestampTz,
    Type,
)
from headgate.sql.query.typing import Typed, common, is_numeric, is_text

KINDS: dict[str, tuple[type, ...]] = {
    "bool": (Boolean,),
    "int": (Integer,),
    "integral": (Integer, Bigint),
    "float": (Real, Double),
    "decimal": (Decimal,),
    "bytes": (Bytes,),
    "date": (Date,),
    "ntz": (Timestamp,),
    "ltz": (TimestampTz,),
    "timestamp": (Timestamp, TimestampTz),
    "datetime": (Date, Timestamp, TimestampTz),
    "time": (Time,),
    "array": (Array,),
    "map": (Map,),
    "record": (Record,),
}


@dataclass(frozen=True, slots=True)
class Signature:
    name: str
    arguments: tuple[str, ...]
    result: str
    nulls: str

    def accepts(self, arguments: Sequence[Typed]) -> bool:
        kinds = list(self.arguments)
        if kinds and kinds[-1].endswith("*"):
            kinds[-1:] = [kinds[-1][:-1]] * max(0, len(arguments) - len(kinds) + 1)
        required = sum(not kind.endswith("?") for kind in kinds)
        if not required <= len(arguments) <= len(kinds):
            return False
        return all(fits(argument, kind.rstrip("?")) for argument, kind in zip(arguments, kinds, strict=False))


def fits(argument: Typed, kind: str) -> bool:
    """Whether an argument is of a kind; one that is not known, or NULL, may be of any."""
    if argument.type is None or kind == "any":
        return True
    if kind == "num":
        return is_numeric(argument.type)
    if kind == "text":
        return is_text(argument.type)
    return isinstance(argument.type, KINDS[kind])


@cache
def spark_functions() -> frozenset[str]:
    """Every function that Spark has, whether or not we know its type."""
    return frozenset((files("headgate.sql.query") / "spark_functions.txt").read_text("utf-8").split())


@cache
def signatures() -> dict[str, tuple[Signature, ...]]:
    table: dict[str, tuple[Signature, ...]] = {}
    text = (files("headgate.sql.query") / "signatures.txt").read_text("utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            for signature in _read(line):
                table[signature.name] = (*table.get(signature.name, ()), signature)
    return table


def _read(line: str) -> list[Signature]:
    match = re.fullmatch(r"([\w ]+?) *: *(.*?) *-> *(.+?)(?: +\[(any|all|never|always)\])?", line)
    assert match is not None, line
    names, arguments, result, nulls = match.groups()
    kinds = tuple(arguments.split(", ")) if arguments else ()
    return [Signature(name, kinds, result, nulls or "any") for name in names.split()]


def result_of(function: str, arguments: Sequence[Typed]) -> Typed | None:
    """The type of a call, or None if the table does not know it."""
    for signature in signatures().get(function, ()):
        if signature.accepts(arguments):
            type_ = _result(signature.result, arguments)
            return None if type_ is None else Typed(type_, _nullable(signature.nulls, arguments))
    return None


def _nullable(rule: str, arguments: Sequence[Typed]) -> bool:
    match rule:
        case "never":
            return False
        case "always":
            return True
        case "all":
            return all(argument.nullable for argument in arguments)
        case _:
            return any(argument.nullable for argument in arguments)


def _result(rule: str, arguments: Sequence[Typed]) -> Type | None:
    if rule in ("common", "arrayof"):
        shared = common(arguments)
        if shared is None or shared.type is None:
            return None
        return shared.type if rule == "common" else Array(shared.type, shared.nullable)
    match = re.fullmatch(r"(?:(\w+)\()?\$(\d)\)?", rule)
    if match is None:
        return parse_type(rule)
    argument = arguments[int(match[2]) - 1] if int(match[2]) <= len(arguments) else None
    return None if argument is None or argument.type is None else _of(match[1], argument)


def _of(what: str | None, argument: Typed) -> Type | None:
    match what, argument.type:
        case None, type_:
            return type_
        case "array", type_:
            assert type_ is not None
            return Array(type_, argument.nullable)
        case "list", type_:  # aggregates leave NULLs out
            assert type_ is not None
            return Array(type_, False)
        case "element", Array(element, _):
            return element
        case "value", Map(value, _):
            return value
        case "keys", Map():
            return Array(Text(), False)
        case "values", Map(value, nullable):
            return Array(value, nullable)
        case "sum", Decimal(precision, scale):
            return Decimal(min(38, precision + 10), scale)
        case "avg", Decimal(precision, scale):
            return Decimal(min(38, precision + 4), min(38, scale + 4))
        case _:
            return None
