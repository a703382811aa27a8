"""Result types of Spark's functions: a table of rules, one line per function or family of functions.

A line of `signatures.txt` is `names : arguments -> result [null rule]`. Arguments are kinds (`num`, `int`, `text`,
`array`, `map`, `any`, …), `?` after one makes it optional and `*` repeats it. A result is a type as we print it, or
refers to an argument: `$1` is the type of the first one, `element($1)`, `key($1)`, `value($1)` and `array($1)` are made
from it, `common` is the common type of all and `arrayof` an array of that. The null rule says when the result can be
NULL: if `any` argument can (the default), if `all` can, `never`, or `always`. Spark types functions that are not in the
table when a statement is purified.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from headgate.schema import types as t
from headgate.schema.parse import parse_type
from headgate.sql.query.types import UNKNOWN, Typed, common, is_numeric, is_text

# The kinds that signatures name. `num`, `text` and `any` are tested by functions.
KINDS: dict[str, tuple[type, ...]] = {
    "bool": (t.Boolean,),
    "int": (t.Integer,),
    "integral": (t.Integer, t.Bigint),
    "float": (t.Real, t.Double),
    "decimal": (t.Decimal,),
    "bytes": (t.Bytes,),
    "date": (t.Date,),
    "ntz": (t.Timestamp,),
    "ltz": (t.TimestampTz,),
    "timestamp": (t.Timestamp, t.TimestampTz),
    "datetime": (t.Date, t.Timestamp, t.TimestampTz),
    "time": (t.Time,),
    "array": (t.Array,),
    "map": (t.Map,),
    "record": (t.Record,),
}


@dataclass(frozen=True, slots=True)
class Signature:
    """One line of the table, for one of its names."""

    name: str
    arguments: tuple[str, ...]
    result: str
    nulls: str

    def accepts(self, arguments: Sequence[Typed]) -> bool:
        """Whether the arguments fit the kinds, in number and type."""
        kinds = list(self.arguments)
        if kinds and kinds[-1].endswith("*"):
            kinds[-1:] = [kinds[-1][:-1]] * max(0, len(arguments) - len(kinds) + 1)
        required = sum(not kind.endswith("?") for kind in kinds)
        if not required <= len(arguments) <= len(kinds):
            return False
        return all(accepts(argument, kind.rstrip("?")) for argument, kind in zip(arguments, kinds, strict=False))


def accepts(argument: Typed, kind: str) -> bool:
    """Whether an argument is of a kind. NULL and an argument of unknown type may be of any kind."""
    if argument.type is None or kind == "any":
        return True
    if kind == "num":
        return is_numeric(argument.type)
    if kind == "text":
        return is_text(argument.type)
    return isinstance(argument.type, KINDS[kind])


@cache
def spark_functions() -> frozenset[str]:
    """The names of all functions of Spark, also of those that are not in the table."""
    return frozenset((files("headgate.sql.query") / "spark_functions.txt").read_text("utf-8").split())


@cache
def signatures() -> dict[str, tuple[Signature, ...]]:
    """The table by function, read once. A function with several lines has them in order: the first that fits counts."""
    table: dict[str, tuple[Signature, ...]] = {}
    text = (files("headgate.sql.query") / "signatures.txt").read_text("utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            for signature in _read(line):
                table[signature.name] = (*table.get(signature.name, ()), signature)
    return table


def _read(line: str) -> list[Signature]:
    """The signatures of one line, one for each name."""
    match = re.fullmatch(r"([\w ]+?) *: *(.*?) *-> *(.+?)(?: +\[(any|all|never|always)\])?", line)
    assert match is not None, line
    names, arguments, result, nulls = match.groups()
    kinds = tuple(arguments.split(", ")) if arguments else ()
    return [Signature(name, kinds, result, nulls or "any") for name in names.split()]


def result_type(function: str, arguments: Sequence[Typed]) -> Typed | None:
    """The type of a call, or None if the table does not know it."""
    for signature in signatures().get(function, ()):
        if signature.accepts(arguments):
            type_ = _result(signature.result, arguments)
            return None if type_ is None else Typed(type_, _nullable(signature.nulls, arguments))
    return None


def _nullable(rule: str, arguments: Sequence[Typed]) -> bool:
    """Whether the result can be NULL, by the null rule of the signature."""
    match rule:
        case "never":
            return False
        case "always":
            return True
        case "all":
            return all(argument.nullable for argument in arguments)
        case _:
            return any(argument.nullable for argument in arguments)


_REFERENCE = re.compile(r"(?:(\w+)\()?\$(\d)\)?")


def _result(rule: str, arguments: Sequence[Typed]) -> t.Type | None:
    """The type that the result of a signature stands for, given the arguments; None if it cannot be known."""
    if rule in ("common", "arrayof"):
        shared = common(arguments)
        if shared is None or shared.type is None:
            return None
        return shared.type if rule == "common" else t.Array(shared.type, shared.nullable)
    match = _REFERENCE.fullmatch(rule)
    if match is None:
        return _parsed(rule)
    argument = arguments[int(match[2]) - 1] if int(match[2]) <= len(arguments) else None
    return None if argument is None or argument.type is None else _of(match[1], argument)


@cache  # the table has few types
def _parsed(type_: str) -> t.Type:
    return parse_type(type_)


def _of(what: str | None, argument: Typed) -> t.Type | None:
    """The type that is made from the type of an argument."""
    match what, argument.type:
        case None, type_:
            return type_
        case "array", type_:
            assert type_ is not None
            return t.Array(type_, argument.nullable)
        case "list", type_:  # aggregates leave NULLs out
            assert type_ is not None
            return t.Array(type_, False)
        case "element", t.Array(element, _):
            return element
        case "value", t.Map(value, _):
            return value
        case "keys", t.Map():
            return t.Array(t.Text(), False)
        case "values", t.Map(value, nullable):
            return t.Array(value, nullable)
        case "sum", t.Decimal(precision, scale):
            return t.Decimal(min(38, precision + 10), scale)
        case "avg", t.Decimal(precision, scale):
            return t.Decimal(min(38, precision + 4), min(38, scale + 4))
        case _:
            return None


_AGGREGATES = """
any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine
array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg bool_and bool_or
collect_list collect_set corr count count_if count_min_sketch covar_pop covar_samp every first first_value
grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double
kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis last last_value
listagg max max_by mean measure median min min_by mode percentile percentile_approx percentile_cont
percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
skewness some std stddev stddev_pop stddev_samp string_agg sum theta_intersection_agg theta_sketch_agg
theta_union_agg try_avg try_sum tuple_intersection_agg_double tuple_intersection_agg_integer
tuple_sketch_agg_double tuple_sketch_agg_integer tuple_union_agg_double tuple_union_agg_integer var_pop var_samp
variance
"""
_HIGHER_ORDER = """
aggregate array_sort exists filter forall map_filter map_zip_with reduce transform transform_keys transform_values
zip_with
"""
_GENERATORS = """
explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple variant_explode
variant_explode_outer
"""
_RANDOM = """
rand random randn randstr uniform uuid shuffle monotonically_increasing_id spark_partition_id input_file_name
input_file_block_start input_file_block_length java_method reflect try_reflect
"""
_CLOCK = """
now current_timestamp current_date current_time curdate localtimestamp unix_timestamp today tomorrow yesterday
"""
_WINDOWS = "row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value"

# Windows of the time, which are not windows of rows. One row may be in several of them.
TIME_WINDOWS = frozenset(("window", "session_window"))
AGGREGATES = frozenset(_AGGREGATES.split())
HIGHER_ORDER = frozenset(_HIGHER_ORDER.split())
GENERATORS = frozenset(_GENERATORS.split())
# Functions that need OVER (...).
WINDOWS = frozenset(_WINDOWS.split())
# Results that differ from one run to the next, so that a replayed batch would not compute the same rows.
RANDOM = frozenset(_RANDOM.split())
# Results that depend on the time of the run: unix_timestamp does without an argument, and the last three and now are
# words that Spark reads as a time where a literal is cast to one.
CLOCK = frozenset(_CLOCK.split())


def lambda_parameter_types(function: str, before: list[Typed]) -> list[Typed]:
    """The types of the parameters of the next lambda, given the arguments before it."""
    first = before[0] if before else UNKNOWN
    match function:
        case "aggregate" | "reduce":
            state = Typed(before[1].type) if len(before) > 1 else UNKNOWN
            return [state, _element(first)] if len(before) == 2 else [state]
        case "zip_with":
            return [Typed(_element(side).type) for side in before[:2]]
        case "map_zip_with":
            return [Typed(t.Text(), False), *(Typed(_value(side).type) for side in before[:2])]
        case "array_sort":
            return [_element(first), _element(first)]
        case "map_filter" | "transform_keys" | "transform_values":
            return [Typed(t.Text(), False), _value(first)]
        case _:
            return [_element(first), Typed(t.Integer(), False)]


def result_of_lambda(function: str, arguments: list[Typed]) -> Typed | None:
    """The type of a call with lambdas, or None if no rule here covers it."""
    match function, arguments:
        case "transform", [Typed(type=t.Array()) as array, body] if body.type is not None:
            return Typed(t.Array(body.type, body.nullable), array.nullable)
        case "zip_with", [left, right, body] if body.type is not None:
            return Typed(t.Array(body.type, body.nullable), left.nullable or right.nullable)
        case "transform_values", [map_, body] if body.type is not None:
            return Typed(t.Map(body.type, body.nullable), map_.nullable)
        case "transform_keys", [Typed(type=t.Map()) as map_, Typed(type=t.Text())]:
            return map_
        case "map_zip_with", [left, right, body] if body.type is not None:
            return Typed(t.Map(body.type, body.nullable), left.nullable or right.nullable)
        case (("aggregate" | "reduce"), [_, state, step]) if step.type == state.type:
            return Typed(step.type)
        case (("aggregate" | "reduce"), [_, _, _, finish]):
            return Typed(finish.type)
        case _:
            return None


def _element(typed: Typed) -> Typed:
    match typed.type:
        case t.Array(element, nullable):
            return Typed(element, nullable)
        case _:
            return UNKNOWN


def _value(typed: Typed) -> Typed:
    match typed.type:
        case t.Map(value, nullable):
            return Typed(value, nullable)
        case _:
            return UNKNOWN
