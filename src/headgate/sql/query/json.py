"""`->` and `->>`: a part of a JSON value, as JSON or as text. A chain of them becomes one look-up.

Numbers must keep their digits, and Spark's get_json_object changes them. So every scalar of the document is first turned into
a string with a marker letter in front: `s` for a string, `n` for a number, `z` for a null. The look-up then returns a marked
string, and the marker is removed from the result. All of it is built from Spark's own functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headgate.schema.render import print_type
from headgate.schema.types import Json, Text
from headgate.sql.errors import NotJson, UnsupportedQuery
from headgate.sql.query.scope import Scope, Visitor, call, text
from headgate.sql.query.types import Typed


def json_access(visitor: Visitor, node: exp.Expr, scope: Scope) -> Typed:
    as_text = isinstance(node, exp.JSONExtractScalar)
    steps, inner = _steps(node.expression), node
    while isinstance(inner.this, exp.JSONExtract | exp.JSONExtractScalar):
        inner = inner.this
        if isinstance(inner, exp.JSONExtractScalar):
            raise NotJson("text")
        steps = _steps(inner.expression) + steps
    owner = visitor.visit(inner.this, scope)
    if owner.type is not None and not isinstance(owner.type, Json):
        raise NotJson(print_type(owner.type))
    operand = inner.this.copy()  # read again: a visit may replace its node
    node.replace(part_as_text(operand, steps) if as_text else part_as_json(operand, steps))
    return Typed(Text() if as_text else Json())


def _steps(key: exp.Expr) -> list[Step]:
    """The steps of a JSON path. A member is a name, an element a number."""
    if isinstance(key, exp.JSONPath):
        return [_part(part) for part in key.expressions[1:]]
    if isinstance(key, exp.Literal):
        return [key.name if key.is_string else int(key.name)]
    raise UnsupportedQuery("a JSON key that is not a literal", "Write the key as a string or a number from 0.")


def _part(part: exp.Expr) -> Step:
    found = part.this
    if isinstance(part, exp.JSONPathKey | exp.JSONPathSubscript) and isinstance(found, str | int):
        return found
    raise UnsupportedQuery("this JSON path", "Write one `->` for each member.")


def from_lambda(node: exp.Lambda) -> exp.Expr:
    """Turn `f(a -> 'b')` back into an access. sqlglot reads every arrow in a call as a lambda, and what follows as its body."""
    left = node.expressions[0]
    column = exp.column(left.copy()) if isinstance(left, exp.Identifier) else left.copy()
    body = exp.Paren(this=node.this.copy())
    key: exp.Expr = body.this
    while not isinstance(key, exp.Literal | exp.JSONPath) and isinstance(key.this, exp.Expr):
        key = key.this
    key.replace(exp.JSONExtract(this=column, expression=key.copy()))
    made: exp.Expr = body.this
    node.replace(made)
    return made


Step = str | int

_NUMBER = "(-?[0-9][-+.0-9eE]*)"
_UNFIT = frozenset("'?")  # characters that a key in a path of get_json_object cannot contain
_PART, _AT, _FOUND = "hg_part", "hg_at", "hg_found"
_BACKSLASH = call("chr", exp.Literal.number(92))
_ESCAPED = (  # escapes inside strings, and the characters that stand for them while the text is split at quotes
    (call("concat", _BACKSLASH, _BACKSLASH), call("chr", exp.Literal.number(1))),
    (call("concat", _BACKSLASH, text('"')), call("chr", exp.Literal.number(2))),
)


def part_as_text(document: exp.Expr, steps: Sequence[Step]) -> exp.Expr:
    """`->>`: a string without its quotes, NULL for a null, the JSON text of anything else."""
    found = exp.column(_FOUND)
    return _decode_result(
        _found(document, steps), {"s": _without_marker(found), "n": _without_marker(found), "z": exp.Null()}
    )


def part_as_json(document: exp.Expr, steps: Sequence[Step]) -> exp.Expr:
    """`->`: JSON text, also of strings and of a null; NULL only where there is no such part."""
    found = exp.column(_FOUND)
    listed = call("to_json", call("array", _without_marker(found)))
    inside = call(
        "substr",
        listed,
        exp.Literal.number(2),
        exp.Sub(this=_length(listed), expression=exp.Literal.number(2)),
    )
    return _decode_result(_found(document, steps), {"s": inside, "n": _without_marker(found), "z": text("null")})  # fmt: skip


def _found(document: exp.Expr, steps: Sequence[Step]) -> exp.Expr:
    found, path = _mark_scalars(document), ""
    for step in steps:
        if isinstance(step, str) and _UNFIT & set(step):
            members = call("from_json", _looked_up(found, path), text("map<string,string>"))
            found, path = call("try_element_at", members, text("s" + step)), ""
        else:
            path += f"[{step}]" if isinstance(step, int) else f"['s{step}']"
    return _looked_up(found, path)


def _looked_up(document: exp.Expr, path: str) -> exp.Expr:
    return call("get_json_object", document, text("$" + path)) if path else document


def _mark_scalars(document: exp.Expr) -> exp.Expr:
    part = exp.column(_PART)
    numbers = call("regexp_replace", part, text(_NUMBER), text('"n$1"'))
    outside = call("replace", numbers, text("null"), text('"z"'))
    return _by_strings(document, outside, call("concat", text("s"), part), '"')


def _unmark_scalars(document: exp.Expr) -> exp.Expr:
    part = exp.column(_PART)
    string = call("concat", text('"'), _without_marker(part), text('"'))
    inside = _by_marker(part, {"s": string, "n": _without_marker(part), "z": text("null")}, exp.Null())
    return _by_strings(document, part, inside, "")


def _by_strings(document: exp.Expr, outside: exp.Expr, inside: exp.Expr, quote: str) -> exp.Expr:
    """Change the parts of the document outside and inside of strings, and join them with ``quote``."""
    even = exp.EQ(
        this=exp.Mod(this=exp.column(_AT), expression=exp.Literal.number(2)), expression=exp.Literal.number(0)
    )
    each = exp.Lambda(
        this=call("if", even, outside, inside), expressions=[exp.to_identifier(_PART), exp.to_identifier(_AT)]
    )
    for escaped, hidden in _ESCAPED:
        document = call("replace", document, escaped.copy(), hidden.copy())
    changed: exp.Expr = call("array_join", call("transform", call("split", document, text('"')), each), text(quote))
    for escaped, hidden in _ESCAPED:
        changed = call("replace", changed, hidden.copy(), escaped.copy())
    return changed


def _decode_result(found: exp.Expr, scalars: dict[str, exp.Expr]) -> exp.Expr:
    """Decode what was found by its marker. True, false and nested values have none. A lambda computes the look-up only once."""
    decoded = _by_marker(exp.column(_FOUND), scalars, _unmark_scalars(exp.column(_FOUND)))
    each = exp.Lambda(this=decoded, expressions=[exp.to_identifier(_FOUND)])
    return call("element_at", call("transform", call("array", found), each), exp.Literal.number(1))


def _by_marker(value: exp.Expr, cases: dict[str, exp.Expr], otherwise: exp.Expr) -> exp.Expr:
    case = exp.Case(this=call("left", value.copy(), exp.Literal.number(1)), default=otherwise)
    for letter, result in cases.items():
        case = case.when(text(letter), result, copy=False)
    return case


def _without_marker(value: exp.Expr) -> exp.Expr:
    return call("substr", value.copy(), exp.Literal.number(2))


def _length(value: exp.Expr) -> exp.Expr:
    return call("length", value.copy())
