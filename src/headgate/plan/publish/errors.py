"""What is wrong with the formats of a sink: PLN-035x."""

from __future__ import annotations

from headgate.plan.errors import PlanError


class InvalidMessageName(PlanError, code="PLN-0350"):
    """A FULLNAME cannot be the name of a Protobuf message."""

    name: str
    option: str
    MESSAGE = '"{name}" of {option} cannot be the name of a Protobuf message'
    HINT = "Write a package and a name, each of letters, digits and _ and not beginning with a digit, such as 'com.shop.Order'."


class OptionOfOtherFormat(PlanError, code="PLN-0351"):
    """An option of a sink's format has a meaning only in another format."""

    option: str
    format: str
    only: str
    MESSAGE = "{option} has no meaning for FORMAT {format}"
    DETAIL = "Only schemas of {only} have it."
    HINT = "Leave the option out."


class SchemaIdExcludes(PlanError, code="PLN-0355"):
    """An option would change the schema that a sink is told to write with by its id."""

    option: str
    id_option: str
    MESSAGE = "{option} and {id_option} exclude each other"
    HINT = "Leave {option} out: records are written with the schema as it is registered."


class OptionOfOtherSide(PlanError, code="PLN-0353"):
    """An option for values is written in KEY FORMAT, or one for keys in VALUE FORMAT."""

    option: str
    side: str
    other: str
    MESSAGE = "{option} stands in {side} FORMAT"
    HINT = "Write it in {other} FORMAT."


class TypeNotBytes(PlanError, code="PLN-0354"):
    """FORMAT BYTES of a sink is used for a column that has no bytes of its own."""

    sink: str
    side: str
    column: str
    type: str
    MESSAGE = 'BYTES cannot write column "{column}" of type {type} as the {side} of sink "{sink}"'
    DETAIL = "It writes bytes as they are, and text, json, uuid and enum in UTF-8."
    HINT = "Use TEXT, or cast the column to text in a view."
