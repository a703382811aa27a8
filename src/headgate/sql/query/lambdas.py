"""Functions that take lambdas: of what type the variables are, and what comes out."""

from __future__ import annotations

from headgate.schema.types import Array, Integer, Map, Text
from headgate.sql.query.typing import UNKNOWN, Typed


def variables(function: str, before: list[Typed]) -> list[Typed]:
    """The variables of the next lambda, from the arguments before it."""
    first = before[0] if before else UNKNOWN
    match function:
        case "aggregate" | "reduce":
            state = Typed(before[1].type) if len(before) > 1 else UNKNOWN
            return [state, _element(first)] if len(before) == 2 else [state]
        case "zip_with":
            return [Typed(_element(side).type) for side in before[:2]]
        case "map_zip_with":
            return [Typed(Text(), False), *(Typed(_value(side).type) for side in before[:2])]
        case "array_sort":
            return [_element(first), _element(first)]
        case "map_filter" | "transform_keys" | "transform_values":
            return [Typed(Text(), False), _value(first)]
        case _:
            return [_element(first), Typed(Integer(), False)]


def result_of_lambda(function: str, arguments: list[Typed]) -> Typed | None:
    """The type of a call, or None if the table of signatures says it or Spark must."""
    match function, arguments:
        case "transform", [Typed(type=Array()) as array, body] if body.type is not None:
            return Typed(Array(body.type, body.nullable), array.nullable)
        case "zip_with", [left, right, body] if body.type is not None:
            return Typed(Array(body.type, body.nullable), left.nullable or right.nullable)
        case "transform_values", [map_, body] if body.type is not None:
            return Typed(Map(body.type, body.nullable), map_.nullable)
        case "transform_keys", [Typed(type=Map()) as map_, Typed(type=Text())]:
            return map_
        case "map_zip_with", [left, right, body] if body.type is not None:
            return Typed(Map(body.type, body.nullable), left.nullable or right.nullable)
        case (("aggregate" | "reduce"), [_, state, step]) if step.type == state.type:
            return Typed(step.type)
        case (("aggregate" | "reduce"), [_, _, _, finish]):
            return Typed(finish.type)
        case _:
            return None


def _element(typed: Typed) -> Typed:
    match typed.type:
        case Array(element, nullable):
            return Typed(element, nullable)
        case _:
            return UNKNOWN


def _value(typed: Typed) -> Typed:
    match typed.type:
        case Map(value, nullable):
            return Typed(value, nullable)
        case _:
            return UNKNOWN
