"""Types of operators, by Spark's rules (ANSI mode): arithmetic, comparison, the common type of branches.

Every rule is checked against Spark's own analysis in `tests/sql/query/test_agrees_with_spark.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.errors import similar_names
from headgate.schema import types as t
from headgate.schema.names import Ambiguous, Found, find
from headgate.schema.render import print_type
from headgate.sql import errors
from headgate.text.cursor import Identifier

if TYPE_CHECKING:
    from headgate.sql.query.scope import Column

MIN_SCALE_KEPT = 6  # Spark gives up scale for digits before the point, but keeps so much of it


@dataclass(frozen=True, slots=True)
class Typed:
    """The type of an expression. ``type`` is None if only Spark knows it. ``null`` marks the literal NULL, which takes
    any type."""

    type: t.Type | None
    nullable: bool = True
    null: bool = False
    literal: int | None = None  # value of an integer literal, which counts with its own number of digits
    interval: bool = False  # a span of time, which is no type of a column
    doc: str | None = None  # of the field of a record that the expression takes
    column: Column | None = field(default=None, compare=False)  # that the expression passes on unchanged


UNKNOWN = Typed(None)
NULL = Typed(None, True, null=True)

# The order in which numbers widen. A decimal has rules of its own.
_RANK: dict[type, int] = {t.Integer: 0, t.Bigint: 1, t.Real: 3, t.Double: 4}
# The decimals that Spark turns whole numbers into. It gives a bigint 20 digits, although it has at most 19.
_DIGITS: dict[type, int] = {t.Integer: 10, t.Bigint: 20}


def field_of(part: Identifier, owner: Typed) -> tuple[str, Typed]:
    """The exact name and the type of a field of a record."""
    if owner.type is None:
        return part.name, UNKNOWN
    if not isinstance(owner.type, t.Record):
        raise errors.NotARecord(part.name, print_type(owner.type))
    field = owner.type.field(part.name)
    if field is None:
        names = [each.name for each in owner.type.fields]
        match find(part.name, part.quoted, names):
            case Found(exact):
                field = owner.type.field(exact)
            case Ambiguous(candidates):
                raise errors.UnknownField(part.name, "the record", candidates)
    if field is None:
        raise errors.UnknownField(part.name, "the record", similar_names(part.name, names))
    return field.name, _of_field(field, owner)


def fields_of(owner: Typed, record: t.Record) -> list[tuple[str, Typed]]:
    """The names and types of all fields of a record."""
    return [(field.name, _of_field(field, owner)) for field in record.fields]


def _of_field(field: t.Field, owner: Typed) -> Typed:
    """A field of a record. It is nullable if the record is, because a NULL record has NULL fields."""
    return Typed(field.type, field.nullable or owner.nullable, doc=field.doc)


def is_numeric(type_: t.Type | None) -> bool:
    return isinstance(type_, t.Integer | t.Bigint | t.Real | t.Double | t.Decimal)


def is_text(type_: t.Type | None) -> bool:
    """Types that are strings in Spark."""
    return isinstance(type_, t.Text | t.Enum | t.Uuid | t.Json)


def as_decimal(operand: Typed) -> t.Decimal | None:
    """The decimal into which Spark turns an exact number."""
    match operand.type:
        case t.Decimal():
            return operand.type
        case t.Integer() | t.Bigint() if operand.literal is not None:
            return t.Decimal(max(1, len(str(abs(operand.literal)))), 0)
        case t.Integer() | t.Bigint():
            return t.Decimal(_DIGITS[type(operand.type)], 0)
        case _:
            return None


def arithmetic(operator: str, left: Typed, right: Typed) -> Typed:
    """The type of `left operator right` for + - * / % and DIV. Unknown for a date and an interval, which Spark
    types."""
    nullable = left.nullable or right.nullable or operator in ("/", "%", "DIV")
    if (moment := _moved(operator, left, right)) is not None:
        return Typed(moment, nullable)
    if left.null and right.null:
        return UNKNOWN
    if left.null or right.null:
        left, right = (right, right) if left.null else (left, left)
    if not (is_numeric(left.type) and is_numeric(right.type)):
        return Typed(None, nullable)
    if operator == "DIV":
        return Typed(t.Bigint(), nullable)
    exact = isinstance(left.type, t.Decimal) or isinstance(right.type, t.Decimal)
    if exact and not isinstance(left.type, t.Real | t.Double) and not isinstance(right.type, t.Real | t.Double):
        return Typed(_decimal(operator, left, right), nullable)
    if operator == "/":
        return Typed(t.Double(), nullable)
    assert left.type is not None
    assert right.type is not None
    return Typed(_common_number(left.type, right.type), nullable)


def _moved(operator: str, left: Typed, right: Typed) -> t.Type | None:
    """The type of a timestamp plus an interval, or a date plus days. Unknown for a date and an interval, which Spark
    types."""
    if operator == "+" and left.interval:
        left, right = right, left
    if operator not in ("+", "-"):
        return None
    if isinstance(left.type, t.Timestamp | t.TimestampTz) and right.interval:
        return left.type
    if isinstance(left.type, t.Date) and isinstance(right.type, t.Integer):
        return left.type
    return None


def _decimal(operator: str, left: Typed, right: Typed) -> t.Type | None:
    """The result of an operator on decimals, as Spark's DecimalPrecision has it."""
    a, b = as_decimal(left), as_decimal(right)
    if a is None or b is None:
        return None
    whole_a, whole_b = a.precision - a.scale, b.precision - b.scale
    larger = max(a.scale, b.scale)
    match operator:
        case "+" | "-":
            return bounded(max(whole_a, whole_b) + larger + 1, larger)
        case "*":
            return bounded(a.precision + b.precision + 1, a.scale + b.scale)
        case "/":
            scale = max(MIN_SCALE_KEPT, a.scale + b.precision + 1)
            return bounded(whole_a + b.scale + scale, scale)
        case "%":
            return bounded(min(whole_a, whole_b) + larger, larger)
        case _:
            return None


def bounded(precision: int, scale: int) -> t.Decimal:
    """Spark's DecimalType.adjustPrecisionScale."""
    if precision <= t.MAX_PRECISION:
        return t.Decimal(precision, scale)
    whole = precision - scale
    return t.Decimal(t.MAX_PRECISION, max(t.MAX_PRECISION - whole, min(scale, MIN_SCALE_KEPT)))


def common(branches: Iterable[Typed]) -> Typed | None:
    """The common type of CASE branches, COALESCE arguments, array elements or UNION sides. None if there is none."""
    result: Typed | None = None
    for branch in branches:
        if result is None or result.null:
            nullable = branch.nullable or (result is not None and result.null)
            result = Typed(branch.type, nullable, branch.null, branch.literal)
            continue
        if branch.null:
            result = Typed(result.type, True, False, result.literal)
            continue
        nullable = result.nullable or branch.nullable
        if result.type is None or branch.type is None:
            result = Typed(None, nullable)
            continue
        type_ = common_type(result.type, branch.type)
        if type_ is None:
            return None
        result = Typed(type_, nullable)
    return result or NULL


def common_type(left: t.Type, right: t.Type) -> t.Type | None:
    """The least type that both fit in, by Spark's rules, or None."""
    if left == right:
        return left
    if is_numeric(left) and is_numeric(right):
        return _common_number(left, right)
    match left, right:
        case ((t.Text() | t.Enum() | t.Uuid() | t.Json()), (t.Text() | t.Enum() | t.Uuid() | t.Json())):
            return t.Text()
        case t.Bytes(), t.Bytes():
            return t.Bytes()
        case (t.Date(), t.Timestamp() | t.TimestampTz()) | (t.Timestamp() | t.TimestampTz(), t.Date()):
            return right if isinstance(left, t.Date) else left
        case (t.Timestamp(), t.TimestampTz()) | (t.TimestampTz(), t.Timestamp()):
            return t.TimestampTz()
        case t.Array(), t.Array():
            element = common_type(left.element, right.element)
            return None if element is None else t.Array(element, left.element_nullable or right.element_nullable)
        case t.Map(), t.Map():
            value = common_type(left.value, right.value)
            return None if value is None else t.Map(value, left.value_nullable or right.value_nullable)
        case t.Record(), t.Record():
            return _common_record(left, right)
        case _:
            return None


def _common_number(left: t.Type, right: t.Type) -> t.Type:
    """The least type that both numbers fit in."""
    if isinstance(left, t.Decimal) or isinstance(right, t.Decimal):
        a, b = as_decimal(Typed(left)), as_decimal(Typed(right))
        if a is None or b is None:
            return t.Double()
        scale = max(a.scale, b.scale)
        whole = max(a.precision - a.scale, b.precision - b.scale)
        if whole + scale > t.MAX_PRECISION:
            return bounded(whole + scale, scale)
        return t.Decimal(whole + scale, scale)
    wider = left if _RANK[type(left)] >= _RANK[type(right)] else right
    # In ANSI mode a bigint meets a real in a double, because a real cannot hold its digits.
    if isinstance(wider, t.Real) and (
        isinstance(left, t.Integer | t.Bigint) or isinstance(right, t.Integer | t.Bigint)
    ):
        return t.Double()
    return wider


def _common_record(left: t.Record, right: t.Record) -> t.Type | None:
    """The common type of two records with the same names in the same order."""
    if len(left.fields) != len(right.fields):
        return None
    fields = []
    for a, b in zip(left.fields, right.fields, strict=True):
        type_ = common_type(a.type, b.type) if a.name == b.name else None
        if type_ is None:
            return None
        fields.append(t.Field(a.name, type_, a.nullable or b.nullable))
    return t.Record(tuple(fields))


def boolean(*operands: Typed) -> Typed:
    """The type of a comparison. It is nullable if an operand is."""
    return Typed(t.Boolean(), any(o.nullable for o in operands))
