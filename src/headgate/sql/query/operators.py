"""Operators: the types of their operands and results, and how those that Spark lacks are written for it.

`->` and `->>` take a part of a JSON value, as JSON or as text. A chain of them becomes one look-up. Numbers must keep
their digits, and Spark's get_json_object changes them. So every scalar of the document is first turned into a string
with a marker letter in front: `s` for a string, `n` for a number, `z` for a null. The look-up then returns a marked
string, and the marker is removed from the result. All of it is built from Spark's own functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headgate.schema import types as t
from headgate.schema.render import print_type
from headgate.sql.errors import IncompatibleBranches, NotIndexable, NotJson, UnsupportedQuery, WrongType
from headgate.sql.query.casts import cast_to
from headgate.sql.query.clock import type_time_words
from headgate.sql.query.scope import Scope, Visitor, call, identifier, text
from headgate.sql.query.types import NULL, Typed, arithmetic, boolean, common, common_type, field_of, is_text
from headgate.text.cursor import Identifier

# The operators as errors and typing rules name them.
ARITHMETIC: dict[type, str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "DIV"}
LOGIC: dict[type, str] = {exp.And: "AND", exp.Or: "OR", exp.Not: "NOT"}
COMPARISONS: dict[type, str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.Between: "BETWEEN",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM", exp.NullSafeNEQ: "IS DISTINCT FROM",
}  # fmt: skip
MATCHES = (exp.Like, exp.ILike, exp.RegexpLike)
BITWISE = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
SHIFTS = (exp.BitwiseLeftShift, exp.BitwiseRightShift)


def numbers(visitor: Visitor, node: exp.Binary, scope: Scope) -> Typed:
    """+ - * / % and DIV."""
    operands = [visitor.visit(node.this, scope), visitor.visit(node.expression, scope)]
    type_time_words([node.this, node.expression], operands)
    for flag in ("typed", "safe"):  # Spark's division, not PostgreSQL's: 7 / 2 is 3.5
        node.set(flag, None)
    return arithmetic(ARITHMETIC[type(node)], *operands)


def bits(visitor: Visitor, node: exp.Binary, scope: Scope) -> Typed:
    """& | and ^ on whole numbers."""
    return common(visitor.children(node, scope)) or Typed(None)


def shift(visitor: Visitor, node: exp.Binary, scope: Scope) -> Typed:
    """<< and >>, whose result has the type of the left operand."""
    left, right = visitor.children(node, scope)
    return Typed(left.type, left.nullable or right.nullable)


def same_type(visitor: Visitor, node: exp.Unary, scope: Scope) -> Typed:
    """~, whose result has the type of its operand."""
    typed = visitor.visit(node.this, scope)
    return Typed(typed.type, typed.nullable)


def require_boolean(typed: Typed, what: str) -> Typed:
    """Refuse an operand of another type than boolean. One of unknown type is left to Spark."""
    if typed.type is not None and not isinstance(typed.type, t.Boolean):
        raise WrongType(what, "a boolean", print_type(typed.type))
    return typed


def logic(visitor: Visitor, node: exp.Expr, scope: Scope) -> Typed:
    """AND, OR and NOT."""
    operands = visitor.children(node, scope)
    for operand in operands:
        require_boolean(operand, LOGIC[type(node)])
    return boolean(*operands)


def condition(visitor: Visitor, node: exp.Where | exp.Having | exp.Qualify, scope: Scope) -> Typed:
    """WHERE, HAVING and QUALIFY."""
    return require_boolean(visitor.visit(node.this, scope), type(node).__name__.upper())


def comparison(visitor: Visitor, node: exp.Expr, scope: Scope) -> Typed:
    """=, <, BETWEEN and the like. IS [NOT] DISTINCT FROM is never NULL."""
    if node.args.get("symmetric"):
        raise UnsupportedQuery("BETWEEN SYMMETRIC", "Write least and greatest around its bounds.")
    operands = visitor.children(node, scope)
    type_time_words(list(node.iter_expressions()), operands)
    require_comparable(COMPARISONS[type(node)], operands)
    if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
        return Typed(t.Boolean(), False)
    return compared(operands)


def compared(operands: list[Typed]) -> Typed:
    """A text that is compared with another type is parsed. Spark takes the result as nullable."""
    texts = {is_text(operand.type) for operand in operands if operand.type is not None}
    return Typed(t.Boolean(), len(texts) > 1 or any(operand.nullable for operand in operands))


def require_comparable(operator: str, operands: list[Typed]) -> None:
    """Refuse operands that Spark cannot compare."""
    known = [operand.type for operand in operands if operand.type is not None]
    for other in known:
        if isinstance(other, t.Map):
            raise UnsupportedQuery(f"{operator} on maps", "Compare map_entries or the values by key.")
        if not _comparable(known[0], other):
            types = print_type(known[0]), print_type(other)
            raise IncompatibleBranches(f"the operands of {operator}", *types)


def _comparable(left: t.Type, right: t.Type) -> bool:
    """Whether Spark compares values of the two types. It parses a text to compare it with a scalar."""
    if is_text(left) or is_text(right):
        return not isinstance(left, t.Array | t.Map | t.Record) and not isinstance(right, t.Array | t.Map | t.Record)
    if isinstance(left, t.Record) and isinstance(right, t.Record):  # by position, whatever the names
        pairs = zip(left.fields, right.fields, strict=False)
        return len(left.fields) == len(right.fields) and all(_comparable(a.type, b.type) for a, b in pairs)
    return common_type(left, right) is not None


def matches(visitor: Visitor, node: exp.Expr, scope: Scope) -> Typed:
    """LIKE, ILIKE and RLIKE."""
    return boolean(*visitor.children(node, scope))


def matches_any_case(visitor: Visitor, node: exp.RegexpILike, scope: Scope) -> Typed:
    """`~*`: a pattern in any case. Spark has no such operator, so the pattern gets the flag `(?i)`."""
    typed = boolean(visitor.visit(node.this, scope), visitor.visit(node.expression, scope))
    pattern = exp.DPipe(this=text("(?i)"), expression=exp.Paren(this=node.expression.copy()))
    node.replace(exp.RegexpLike(this=node.this.copy(), expression=exp.Paren(this=pattern)))
    return typed


def is_(visitor: Visitor, node: exp.Is, scope: Scope) -> Typed:
    """IS NULL, IS TRUE and IS FALSE."""
    operand = visitor.visit(node.this, scope)
    if isinstance(node.expression, exp.Boolean):
        require_boolean(operand, f"IS {node.expression.sql()}")
    elif not isinstance(node.expression, exp.Null):
        raise UnsupportedQuery(f"IS {node.expression.sql()}")
    return Typed(t.Boolean(), False)


def any_of(visitor: Visitor, node: exp.Any | exp.All, scope: Scope) -> Typed:
    """`x = ANY (array)` and `x LIKE ANY ('a', 'b')`; the type is that of one element."""
    word, inner = type(node).__name__.upper(), node.this.unnest()
    if isinstance(inner, exp.Tuple) and isinstance(node.parent, exp.Like | exp.ILike):
        visitor.children(inner, scope)
        return Typed(t.Text())
    if isinstance(inner, exp.Query) or isinstance(node, exp.All) or not isinstance(node.parent, exp.EQ):
        raise UnsupportedQuery(f"{word} like this", "Write IN, EXISTS or an aggregate.")
    typed = visitor.visit(node.this, scope)
    if typed.type is None:
        return Typed(None)
    if not isinstance(typed.type, t.Array):
        raise WrongType(word, "an array", print_type(typed.type))
    return Typed(typed.type.element)


def membership(visitor: Visitor, node: exp.In, scope: Scope) -> Typed:
    """IN with a list or a subquery. Before a subquery, values in parentheses are compared column by column."""
    query = node.args.get("query")
    if query is not None and isinstance(node.this, exp.Tuple):
        left = boolean(*visitor.children(node.this, scope))
    else:
        left = visitor.visit(node.this, scope)
    if query is not None:
        visitor.stateful = True
        columns = visitor.subquery(query.this if isinstance(query, exp.Subquery) else query, scope)
        return Typed(t.Boolean(), left.nullable or any(c.nullable for c in columns))
    operands = [left, *(visitor.visit(e, scope) for e in list(node.expressions))]
    type_time_words([node.this, *node.expressions], operands)
    require_comparable("IN", operands)
    return compared(operands)


def concatenation(visitor: Visitor, node: exp.DPipe, scope: Scope) -> Typed:
    """|| of texts, bytes or arrays."""
    left, right = visitor.visit(node.this, scope), visitor.visit(node.expression, scope)
    node.set("safe", None)
    nullable = left.nullable or right.nullable
    kinds = [side.type for side in (left, right) if side.type is not None]
    if not any(isinstance(kind, t.Array | t.Map | t.Record) for kind in kinds):
        both_bytes = bool(kinds) and all(isinstance(kind, t.Bytes) for kind in kinds)
        return Typed(t.Bytes() if both_bytes else t.Text(), nullable)
    shared = common([left, right])
    if shared is None or isinstance(shared.type, t.Map | t.Record):
        raise IncompatibleBranches("the operands of ||", print_type(kinds[0]), print_type(kinds[-1]))
    return Typed(shared.type, nullable)


def case(visitor: Visitor, node: exp.Case, scope: Scope) -> Typed:
    """CASE with or without a subject. The result has the common type of the branches."""
    subject = None if node.this is None else visitor.visit(node.this, scope)
    branches = []
    for branch in list(node.args["ifs"]):
        when = visitor.visit(branch.this, scope)
        if subject is None:
            require_boolean(when, "WHEN")
        else:
            pair = [subject, when]
            type_time_words([node.this, branch.this], pair)
            require_comparable("CASE", pair)
        branches.append(visitor.visit(branch.args["true"], scope))
    default = node.args.get("default")
    branches.append(NULL if default is None else visitor.visit(default, scope))
    results = [*(branch.args["true"] for branch in node.args["ifs"]), *filter(None, [node.args.get("default")])]
    type_time_words(results, branches)
    return shared_type("CASE", branches)


def shared_type(what: str, branches: list[Typed]) -> Typed:
    """The common type of several values. Raises IncompatibleBranches if there is none."""
    shared = common(branches)
    if shared is None:
        known = [print_type(b.type) for b in branches if b.type is not None]
        raise IncompatibleBranches(what, known[0], next(k for k in known if k != known[0]))
    return shared


def bracket(visitor: Visitor, node: exp.Bracket, scope: Scope) -> Typed:
    """value[index]: an element of an array, a value of a map, or a field of a record."""
    owner = visitor.visit(node.this, scope)
    (index,) = node.expressions
    if isinstance(index, exp.Slice):
        raise UnsupportedQuery("a slice of an array", "Write slice(array, start, length).")
    visitor.visit(index, scope)
    index = node.expressions[0]
    match owner.type:
        case t.Record() if isinstance(index, exp.Literal) and index.is_string:
            name, typed = field_of(Identifier(index.name, True), owner)
            node.replace(exp.Dot(this=node.this.copy(), expression=identifier(name)))
            return typed
        case t.Array(element, _):
            node.set("expressions", [_from_zero(index)])
            return Typed(element)
        case t.Map(value, _):
            return Typed(value)
        case None:
            node.set("expressions", [_from_zero(index)])
            return Typed(None)
        case other:
            raise NotIndexable(print_type(other))


def _from_zero(index: exp.Expr) -> exp.Expr:
    """Undo what sqlglot does to an index: it takes it as PostgreSQL's, from 1, and subtracts 1. Ours are Spark's, from
    0."""
    if isinstance(index, exp.Literal) and not index.is_string:
        return exp.Literal.number(int(index.name) + 1)
    if isinstance(index, exp.Neg) and isinstance(index.this, exp.Literal):
        value = 1 - int(index.this.name)
        return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))
    return index


def array(visitor: Visitor, node: exp.Array, scope: Scope) -> Typed:
    """ARRAY[…]."""
    if any(isinstance(inner, exp.Query) for inner in node.expressions):
        raise UnsupportedQuery("ARRAY of a subquery", "Write (SELECT collect_list(x) FROM …).")
    shared = shared_type("ARRAY", visitor.children(node, scope))
    return Typed(None if shared.type is None else t.Array(shared.type, shared.nullable), False)


def row(visitor: Visitor, node: exp.Anonymous | exp.Tuple, scope: Scope) -> Typed:
    """ROW(a, b), also written (a, b): a record with fields f1, f2, …"""
    values = [visitor.visit(value, scope) for value in list(node.expressions)]
    names = [f"f{number}" for number in range(1, len(values) + 1)]
    pairs = [part for name, value in zip(names, node.expressions, strict=True) for part in (text(name), value.copy())]
    node.replace(call("named_struct", *pairs))
    fields = [t.Field(n, v.type, v.nullable) for n, v in zip(names, values, strict=True) if v.type is not None]
    return Typed(t.Record(tuple(fields)) if len(fields) == len(values) else None, False)


def time_zone(visitor: Visitor, node: exp.AtTimeZone, scope: Scope) -> Typed:
    """AT TIME ZONE turns an instant into local time of the zone, and local time of the zone into an instant."""
    typed = visitor.visit(node.this, scope)
    visitor.visit(node.args["zone"], scope)
    zone, utc, operand = node.args["zone"].copy(), text("UTC"), node.this.copy()
    if isinstance(typed.type, t.Timestamp):
        node.replace(cast_to(call("convert_timezone", zone, utc, operand), t.TimestampTz()))
        return Typed(t.TimestampTz(), typed.nullable)
    if typed.type is not None and not isinstance(typed.type, t.TimestampTz):
        raise WrongType("AT TIME ZONE", "a timestamp", print_type(typed.type))
    node.replace(call("convert_timezone", utc, zone, cast_to(operand, t.Timestamp())))
    return Typed(t.Timestamp(), typed.nullable)


# JSON access


def json_access(visitor: Visitor, node: exp.Expr, scope: Scope) -> Typed:
    """`->` and `->>`. A chain of them is read from its end, which is the outermost node."""
    as_text = isinstance(node, exp.JSONExtractScalar)
    steps, inner = _steps(node.expression), node
    while isinstance(inner.this, exp.JSONExtract | exp.JSONExtractScalar):
        inner = inner.this
        if isinstance(inner, exp.JSONExtractScalar):
            raise NotJson("text")
        steps = _steps(inner.expression) + steps
    owner = visitor.visit(inner.this, scope)
    if owner.type is not None and not isinstance(owner.type, t.Json):
        raise NotJson(print_type(owner.type))
    operand = inner.this.copy()  # read again, because the visit may have replaced the node
    node.replace(part_as_text(operand, steps) if as_text else part_as_json(operand, steps))
    return Typed(t.Text() if as_text else t.Json())


def _steps(key: exp.Expr) -> list[Step]:
    """The steps of a JSON path. A member is a name, an element a number."""
    if isinstance(key, exp.JSONPath):
        return [_part(part) for part in key.expressions[1:]]
    if isinstance(key, exp.Literal):
        return [key.name if key.is_string else int(key.name)]
    raise UnsupportedQuery("a JSON key that is not a literal", "Write the key as a string or a number from 0.")


def _part(part: exp.Expr) -> Step:
    """One step of a path that sqlglot has read from the key."""
    found = part.this
    if isinstance(part, exp.JSONPathKey | exp.JSONPathSubscript) and isinstance(found, str | int):
        return found
    raise UnsupportedQuery("this JSON path", "Write one `->` for each member.")


def from_lambda(node: exp.Lambda) -> exp.Expr:
    """Turn `f(a -> 'b')` back into an access. sqlglot reads every arrow in a call as a lambda, and what follows as its
    body."""
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
# Parameters of lambdas. Users do not write such names.
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
        "substr", listed, exp.Literal.number(2), exp.Sub(this=_length(listed), expression=exp.Literal.number(2))
    )
    return _decode_result(_found(document, steps), {"s": inside, "n": _without_marker(found), "z": text("null")})


def _found(document: exp.Expr, steps: Sequence[Step]) -> exp.Expr:
    """The part of a marked document that the steps lead to, with its marker."""
    found, path = _mark_scalars(document), ""
    for step in steps:
        if isinstance(step, str) and _UNFIT & set(step):
            members = call("from_json", _looked_up(found, path), text("map<string,string>"))
            found, path = call("try_element_at", members, text("s" + step)), ""
        else:
            path += f"[{step}]" if isinstance(step, int) else f"['s{step}']"
    return _looked_up(found, path)


def _looked_up(document: exp.Expr, path: str) -> exp.Expr:
    """The part at a path of get_json_object."""
    return call("get_json_object", document, text("$" + path)) if path else document


def _mark_scalars(document: exp.Expr) -> exp.Expr:
    """The document with a marker in every scalar. Numbers and nulls become strings by that."""
    part = exp.column(_PART)
    numbers = call("regexp_replace", part, text(_NUMBER), text('"n$1"'))
    outside = call("replace", numbers, text("null"), text('"z"'))
    return _by_strings(document, outside, call("concat", text("s"), part), '"')


def _unmark_scalars(document: exp.Expr) -> exp.Expr:
    """The marked document as it was."""
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
    """Decode what was found by its marker. True, false and nested values have none. A lambda computes the look-up only
    once."""
    decoded = _by_marker(exp.column(_FOUND), scalars, _unmark_scalars(exp.column(_FOUND)))
    each = exp.Lambda(this=decoded, expressions=[exp.to_identifier(_FOUND)])
    return call("element_at", call("transform", call("array", found), each), exp.Literal.number(1))


def _by_marker(value: exp.Expr, cases: dict[str, exp.Expr], otherwise: exp.Expr) -> exp.Expr:
    """A CASE over the marker of a value."""
    case = exp.Case(this=call("left", value.copy(), exp.Literal.number(1)), default=otherwise)
    for letter, result in cases.items():
        case = case.when(text(letter), result, copy=False)
    return case


def _without_marker(value: exp.Expr) -> exp.Expr:
    return call("substr", value.copy(), exp.Literal.number(2))


def _length(value: exp.Expr) -> exp.Expr:
    return call("length", value.copy())
