"""A part of a JSON text, with its numbers as they are written. Built of Spark's own functions, which know no such look-up:
all of them send numbers through a double, 1.50 becomes 1.5 and 1e400 a string.

So numbers and nulls are made strings first, and every string gets a letter that tells what it was: `{"a": 1.50}` is looked
into as `{"sa": "n1.50"}`. A document that is split at its quotes has what is outside of strings at the even places; to split
it there, escaped quotes are hidden behind control characters, which JSON does not allow in a text.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headgate.sql.query.visitor import call, text

Step = str | int

_NUMBER = "(-?[0-9][-+.0-9eE]*)"
_UNFIT = frozenset("'?")  # what the paths of get_json_object cannot hold in a key
_PART, _AT, _FOUND = "hg_part", "hg_at", "hg_found"
_BACKSLASH = call("chr", exp.Literal.number(92))
_ESCAPED = (  # and what hides it
    (call("concat", _BACKSLASH, _BACKSLASH), call("chr", exp.Literal.number(1))),
    (call("concat", _BACKSLASH, text('"')), call("chr", exp.Literal.number(2))),
)


def part_as_text(document: exp.Expr, steps: Sequence[Step]) -> exp.Expr:
    """`->>`: a string without its quotes, NULL for a null, the JSON text of anything else."""
    found = exp.column(_FOUND)
    return _told(_found(document, steps), {"s": _rest(found), "n": _rest(found), "z": exp.Null()})


def part_as_json(document: exp.Expr, steps: Sequence[Step]) -> exp.Expr:
    """`->`: JSON text, also of strings and of a null; NULL only where there is no such part."""
    found = exp.column(_FOUND)
    listed = call("to_json", call("array", _rest(found)))
    inside = call(
        "substr",
        listed,
        exp.Literal.number(2),
        exp.Sub(this=_length(listed), expression=exp.Literal.number(2)),
    )
    return _told(_found(document, steps), {"s": inside, "n": _rest(found), "z": text("null")})  # fmt: skip


def _found(document: exp.Expr, steps: Sequence[Step]) -> exp.Expr:
    found, path = _marked(document), ""
    for step in steps:
        if isinstance(step, str) and _UNFIT & set(step):
            members = call("from_json", _looked_up(found, path), text("map<string,string>"))
            found, path = call("try_element_at", members, text("s" + step)), ""
        else:
            path += f"[{step}]" if isinstance(step, int) else f"['s{step}']"
    return _looked_up(found, path)


def _looked_up(document: exp.Expr, path: str) -> exp.Expr:
    return call("get_json_object", document, text("$" + path)) if path else document


def _marked(document: exp.Expr) -> exp.Expr:
    part = exp.column(_PART)
    numbers = call("regexp_replace", part, text(_NUMBER), text('"n$1"'))
    outside = call("replace", numbers, text("null"), text('"z"'))
    return _by_strings(document, outside, call("concat", text("s"), part), '"')


def _unmarked(document: exp.Expr) -> exp.Expr:
    part = exp.column(_PART)
    string = call("concat", text('"'), _rest(part), text('"'))
    inside = _by_letter(part, {"s": string, "n": _rest(part), "z": text("null")}, exp.Null())
    return _by_strings(document, part, inside, "")


def _by_strings(document: exp.Expr, outside: exp.Expr, inside: exp.Expr, quote: str) -> exp.Expr:
    """The document with its parts outside and inside of strings changed, put together with ``quote`` between them."""
    even = exp.EQ(
        this=exp.Mod(this=exp.column(_AT), expression=exp.Literal.number(2)), expression=exp.Literal.number(0)
    )
    each = exp.Lambda(
        this=call("if", even, outside, inside), expressions=[exp.to_identifier(_PART), exp.to_identifier(_AT)]
    )
    for escaped, hidden in _ESCAPED:
        document = call("replace", document, escaped.copy(), hidden.copy())
    changed: exp.Expr = call(
        "array_join", call("transform", call("split", document, text('"')), each), text(quote)
    )
    for escaped, hidden in _ESCAPED:
        changed = call("replace", changed, hidden.copy(), escaped.copy())
    return changed


def _told(found: exp.Expr, scalars: dict[str, exp.Expr]) -> exp.Expr:
    """What was found, looked at once and told by its first letter; true, false and nested values have none of ours."""
    told = _by_letter(exp.column(_FOUND), scalars, _unmarked(exp.column(_FOUND)))
    each = exp.Lambda(this=told, expressions=[exp.to_identifier(_FOUND)])
    return call("element_at", call("transform", call("array", found), each), exp.Literal.number(1))


def _by_letter(value: exp.Expr, cases: dict[str, exp.Expr], otherwise: exp.Expr) -> exp.Expr:
    case = exp.Case(this=call("left", value.copy(), exp.Literal.number(1)), default=otherwise)
    for letter, result in cases.items():
        case = case.when(text(letter), result, copy=False)
    return case


def _rest(value: exp.Expr) -> exp.Expr:
    return call("substr", value.copy(), exp.Literal.number(2))


def _length(value: exp.Expr) -> exp.Expr:
    return call("length", value.copy())
