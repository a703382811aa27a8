"""Pairs of JSON Schemas with every change from the older to the newer, checked by eye against Confluent's rules.

One row: a claim, the older schema, the newer one, the incompatible changes as path and kind, and the compatible ones.
A schema without ``$schema`` is of draft 7.
"""

from __future__ import annotations

from typing import NamedTuple

from headgate.schema.written import Json

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"

Changes = tuple[tuple[str, str], ...]


class Case(NamedTuple):
    claim: str
    old: Json
    new: Json
    incompatible: Changes = ()
    compatible: Changes = ()


def text(**more: Json) -> Json:
    return {"type": "string", **more}


def number(**more: Json) -> Json:
    return {"type": "number", **more}


def array(**more: Json) -> Json:
    return {"type": "array", **more}


def opened(_properties: dict[str, Json] | None = None, **more: Json) -> Json:
    return {"type": "object", "properties": {**(_properties or {})}, **more}


def closed(_properties: dict[str, Json] | None = None, **more: Json) -> Json:
    return opened(_properties, additionalProperties=False, **more)


def at_2020(schema: Json) -> Json:
    assert isinstance(schema, dict)
    return {"$schema": DRAFT_2020, **schema}


S: Json = text()
N: Json = number()
I: Json = {"type": "integer"}  # noqa: E741 - the table reads better so
B: Json = {"type": "boolean"}

ITSELF = (
    Case("nothing changed", opened({"a": S}), opened({"a": S})),
    Case("a title is no constraint", text(title="x"), text(title="y"), (), (("/", "TITLE_CHANGED"),)),
    Case("a description is none", S, text(description="y"), (), (("/", "DESCRIPTION_CHANGED"),)),
    Case("a default is none", text(default="a"), text(default="b"), (), (("/", "DEFAULT_CHANGED"),)),
    Case(
        "an id is none",
        text(**{"$id": "http://x/a"}),
        text(**{"$id": "http://x/b"}),
        (),
        (("/", "ID_CHANGED"),),
    ),
    Case("keys may change places", {"type": "string", "minLength": 1}, {"minLength": 1, "type": "string"}),
)

TYPES = (
    Case("a type must stay", S, N, (("/", "TYPE_CHANGED"),)),
    Case("an integer may become a number", I, N, (), (("/", "TYPE_EXTENDED"),)),
    Case("a number must not become an integer", N, I, (("/", "TYPE_NARROWED"),)),
    Case("anything may take its place", S, {}),
    Case("true is anything", S, True),
    Case("it may take the place of nothing", False, S),
    Case("it must not take the place of anything", {}, S, (("/", "TYPE_CHANGED"),)),
    Case("nothing must not take its place", S, False, (("/", "TYPE_CHANGED"),)),
    Case("a type may become one of several", S, {"type": ["string", "null"]}, (), (("/", "SUM_TYPE_EXTENDED"),)),
    Case(
        "one of several must not become the only one",
        {"type": ["string", "null"]},
        S,
        (("/", "TYPE_CHANGED"),),
    ),
    Case(
        "types may come",
        {"type": ["string"]},
        {"type": ["null", "string"]},
        (),
        (("/", "SUM_TYPE_EXTENDED"),),
    ),
    Case("types must not go", {"type": ["null", "string"]}, {"type": ["string"]}, (("/", "SUM_TYPE_NARROWED"),)),
    Case(
        "what Connect calls bytes is alike",
        text(**{"connect.type": "bytes"}),
        number(**{"connect.type": "bytes"}),
    ),
    Case("demanding a type that was implied is let pass", {"minLength": 1}, {"type": "string", "minLength": 1}),
)

STRINGS = (
    Case(
        "maxLength may go up",
        text(maxLength=5),
        text(maxLength=6),
        (),
        (("/maxLength", "MAX_LENGTH_INCREASED"),),
    ),
    Case(
        "maxLength must not go down",
        text(maxLength=5),
        text(maxLength=4),
        (("/maxLength", "MAX_LENGTH_DECREASED"),),
    ),
    Case("maxLength may go", text(maxLength=5), S, (), (("/maxLength", "MAX_LENGTH_REMOVED"),)),
    Case("maxLength must not come", S, text(maxLength=5), (("/maxLength", "MAX_LENGTH_ADDED"),)),
    Case(
        "minLength must not go up",
        text(minLength=1),
        text(minLength=2),
        (("/minLength", "MIN_LENGTH_INCREASED"),),
    ),
    Case(
        "minLength may go down",
        text(minLength=2),
        text(minLength=1),
        (),
        (("/minLength", "MIN_LENGTH_DECREASED"),),
    ),
    Case("minLength may go", text(minLength=2), S, (), (("/minLength", "MIN_LENGTH_REMOVED"),)),
    Case("minLength must not come", S, text(minLength=2), (("/minLength", "MIN_LENGTH_ADDED"),)),
    Case("a pattern may go", text(pattern="a"), S, (), (("/pattern", "PATTERN_REMOVED"),)),
    Case("a pattern must not come", S, text(pattern="a"), (("/pattern", "PATTERN_ADDED"),)),
    Case("a pattern must stay", text(pattern="a"), text(pattern="a|b"), (("/pattern", "PATTERN_CHANGED"),)),
    Case("a format is not looked at", S, text(format="date")),
)

NUMBERS = (
    Case("maximum may go up", number(maximum=5), number(maximum=5.5), (), (("/maximum", "MAXIMUM_INCREASED"),)),
    Case("maximum must not go down", number(maximum=5), number(maximum=4), (("/maximum", "MAXIMUM_DECREASED"),)),
    Case("maximum must not come", N, number(maximum=4), (("/maximum", "MAXIMUM_ADDED"),)),
    Case("maximum may go", number(maximum=4), N, (), (("/maximum", "MAXIMUM_REMOVED"),)),
    Case("5 and 5.0 are one maximum", number(maximum=5), number(maximum=5.0)),
    Case("minimum may go down", number(minimum=5), number(minimum=4), (), (("/minimum", "MINIMUM_DECREASED"),)),
    Case("minimum must not go up", number(minimum=5), number(minimum=6), (("/minimum", "MINIMUM_INCREASED"),)),
    Case("minimum must not come", N, number(minimum=4), (("/minimum", "MINIMUM_ADDED"),)),
    Case(
        "exclusiveMaximum must not go down",
        number(exclusiveMaximum=5),
        number(exclusiveMaximum=4),
        (("/exclusiveMaximum", "EXCLUSIVE_MAXIMUM_DECREASED"),),
    ),
    Case(
        "exclusiveMinimum may go down",
        number(exclusiveMinimum=5),
        number(exclusiveMinimum=4),
        (),
        (("/exclusiveMinimum", "EXCLUSIVE_MINIMUM_DECREASED"),),
    ),
    Case(
        "a bound that becomes exclusive is one that went and one that came",
        number(maximum=5),
        number(exclusiveMaximum=5),
        (("/exclusiveMaximum", "EXCLUSIVE_MAXIMUM_ADDED"),),
        (("/maximum", "MAXIMUM_REMOVED"),),
    ),
    Case(
        "multipleOf must not grow",
        number(multipleOf=2),
        number(multipleOf=4),
        (("/multipleOf", "MULTIPLE_OF_EXPANDED"),),
    ),
    Case(
        "multipleOf may be divided",
        number(multipleOf=4),
        number(multipleOf=2),
        (),
        (("/multipleOf", "MULTIPLE_OF_REDUCED"),),
    ),
    Case(
        "fractions count exactly",
        number(multipleOf=0.3),
        number(multipleOf=0.1),
        (),
        (("/multipleOf", "MULTIPLE_OF_REDUCED"),),
    ),
    Case(
        "multipleOf must not change",
        number(multipleOf=4),
        number(multipleOf=3),
        (("/multipleOf", "MULTIPLE_OF_CHANGED"),),
    ),
    Case("multipleOf must not come", N, number(multipleOf=2), (("/multipleOf", "MULTIPLE_OF_ADDED"),)),
    Case(
        "draft 4's boolean bound is not looked at",
        {"$schema": DRAFT_4, "type": "number", "maximum": 5},
        {"$schema": DRAFT_4, "type": "number", "maximum": 5, "exclusiveMaximum": True},
    ),
)

VALUES = (
    Case("an enum may grow", {"enum": ["a"]}, {"enum": ["a", "b"]}, (), (("/enum", "ENUM_ARRAY_EXTENDED"),)),
    Case("an enum must not shrink", {"enum": ["a", "b"]}, {"enum": ["a"]}, (("/enum", "ENUM_ARRAY_NARROWED"),)),
    Case(
        "an enum must not be exchanged",
        {"enum": ["a", "b"]},
        {"enum": ["a", "c"]},
        (("/enum", "ENUM_ARRAY_CHANGED"),),
    ),
    Case("the order of an enum does not count", {"enum": ["a", "b"]}, {"enum": ["b", "a"]}),
    Case("1 is not true", {"enum": [1]}, {"enum": [True]}, (("/enum", "ENUM_ARRAY_CHANGED"),)),
    Case("a constant must stay", {"const": 1}, {"const": 2}, (("/const", "ENUM_ARRAY_CHANGED"),)),
    Case("1 and 1.0 are one constant", {"const": 1}, {"const": 1.0}),
    Case("an enum of texts may become text", text(enum=["a"]), S, (), (("/", "PRODUCT_TYPE_NARROWED"),)),
    Case("text must not become an enum", S, text(enum=["a"]), (("/", "TYPE_CHANGED"),)),
)

OBJECTS = (
    Case(
        "a property must not come to an open model: other data may be there",
        opened(),
        opened({"a": S}),
        (("/properties/a", "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"),),
    ),
    Case(
        "unless it says nothing",
        opened(),
        opened({"a": {}}),
        (),
        (("/properties/a", "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL"),),
    ),
    Case(
        "least of all a required one",
        opened(),
        opened({"a": S}, required=["a"]),
        (("/properties/a", "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"),),
    ),
    Case(
        "nor does a default help there",
        opened(),
        opened({"a": text(default="x")}, required=["a"]),
        (("/properties/a", "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL"),),
    ),
    Case(
        "an optional property may come to a closed model",
        closed(),
        closed({"a": S}),
        (),
        (("/properties/a", "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"),),
    ),
    Case(
        "a required one must not",
        closed(),
        closed({"a": S}, required=["a"]),
        (("/properties/a", "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"),),
    ),
    Case(
        "unless it has a default",
        closed(),
        closed({"a": text(default="x")}, required=["a"]),
        (),
        (("/properties/a", "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL"),),
    ),
    Case(
        "a property may go from an open model",
        opened({"a": S}),
        opened(),
        (),
        (("/properties/a", "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL"),),
    ),
    Case(
        "a property must not go from a closed model",
        closed({"a": S}),
        closed(),
        (("/properties/a", "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"),),
    ),
    Case(
        "unless it was forbidden",
        closed({"a": False}),
        closed(),
        (),
        (("/properties/a", "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL"),),
    ),
    Case(
        "a property may go where the rest accepts it",
        opened({"a": I}, additionalProperties=N),
        opened(additionalProperties=N),
        (),
        (
            ("/properties/a", "TYPE_EXTENDED"),
            ("/properties/a", "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"),
        ),
    ),
    Case(
        "it must not where the rest does not",
        opened({"a": S}, additionalProperties=N),
        opened(additionalProperties=N),
        (
            ("/properties/a", "TYPE_CHANGED"),
            ("/properties/a", "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"),
        ),
    ),
    Case(
        "a property may come that accepts what the rest was",
        opened(additionalProperties=I),
        opened({"a": N}, additionalProperties=I),
        (),
        (
            ("/properties/a", "TYPE_EXTENDED"),
            ("/properties/a", "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"),
            ("/properties/a", "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"),
        ),
    ),
    Case(
        "the rest of a name is what its pattern says",
        closed(patternProperties={"^x": S}),
        closed({"x1": N}, patternProperties={"^x": S}),
        (
            ("/properties/x1", "TYPE_CHANGED"),
            ("/properties/x1", "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"),
        ),
        (("/properties/x1", "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"),),
    ),
    Case(
        "a property's type is looked at",
        closed({"a": S}),
        closed({"a": N}),
        (("/properties/a", "TYPE_CHANGED"),),
    ),
    Case(
        "objects nest",
        closed({"a": closed({"b": text(maxLength=2)})}),
        closed({"a": closed({"b": text(maxLength=1)})}),
        (("/properties/a/properties/b/maxLength", "MAX_LENGTH_DECREASED"),),
    ),
    Case(
        "a property may be released",
        opened({"a": S}, required=["a"]),
        opened({"a": S}),
        (),
        (("/required/a", "REQUIRED_ATTRIBUTE_REMOVED"),),
    ),
    Case(
        "a property must not become required",
        opened({"a": S}),
        opened({"a": S}, required=["a"]),
        (("/required/a", "REQUIRED_ATTRIBUTE_ADDED"),),
    ),
    Case(
        "unless it has a default then",
        opened({"a": S}),
        opened({"a": text(default="x")}, required=["a"]),
        (),
        (("/required/a", "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED"), ("/properties/a", "DEFAULT_CHANGED")),
    ),
    Case("a requirement without a property is not looked at", opened(), opened(required=["a"])),
    Case(
        "a model may open",
        closed(),
        opened(),
        (),
        (("/additionalProperties", "ADDITIONAL_PROPERTIES_ADDED"),),
    ),
    Case(
        "a model must not close",
        opened(),
        closed(),
        (("/additionalProperties", "ADDITIONAL_PROPERTIES_REMOVED"),),
    ),
    Case(
        "the rest must not be narrowed",
        opened(),
        opened(additionalProperties=S),
        (("/additionalProperties", "ADDITIONAL_PROPERTIES_NARROWED"),),
    ),
    Case(
        "the rest may be extended",
        opened(additionalProperties=S),
        opened(),
        (),
        (("/additionalProperties", "ADDITIONAL_PROPERTIES_EXTENDED"),),
    ),
    Case(
        "the rest is looked into",
        opened(additionalProperties=S),
        opened(additionalProperties=N),
        (("/additionalProperties", "TYPE_CHANGED"),),
    ),
    Case(
        "maxProperties must not go down",
        opened(maxProperties=2),
        opened(maxProperties=1),
        (("/maxProperties", "MAX_PROPERTIES_DECREASED"),),
    ),
    Case(
        "minProperties must not come",
        opened(),
        opened(minProperties=1),
        (("/minProperties", "MIN_PROPERTIES_ADDED"),),
    ),
    Case(
        "minProperties may go down",
        opened(minProperties=2),
        opened(minProperties=1),
        (),
        (("/minProperties", "MIN_PROPERTIES_DECREASED"),),
    ),
    Case("names of properties are not looked at", opened(), opened(propertyNames={"maxLength": 1})),
    Case(
        "a dependency must not come",
        opened(),
        opened(dependencies={"a": ["b"]}),
        (("/dependencies/a", "DEPENDENCY_ARRAY_ADDED"),),
    ),
    Case(
        "a dependency must not grow",
        opened(dependencies={"a": ["b"]}),
        opened(dependencies={"a": ["b", "c"]}),
        (("/dependencies/a", "DEPENDENCY_ARRAY_EXTENDED"),),
    ),
    Case(
        "a dependency may shrink",
        opened(dependencies={"a": ["b", "c"]}),
        opened(dependencies={"a": ["b"]}),
        (),
        (("/dependencies/a", "DEPENDENCY_ARRAY_NARROWED"),),
    ),
    Case(
        "a dependency must not be exchanged",
        opened(dependencies={"a": ["b"]}),
        opened(dependencies={"a": ["c"]}),
        (("/dependencies/a", "DEPENDENCY_ARRAY_CHANGED"),),
    ),
    Case(
        "a dependency on a schema must not come",
        opened(),
        opened(dependencies={"a": {"required": ["b"]}}),
        (("/dependencies/a", "DEPENDENCY_SCHEMA_ADDED"),),
    ),
    Case(
        "a dependency on a schema may go",
        opened(dependencies={"a": {"required": ["b"]}}),
        opened(),
        (),
        (("/dependencies/a", "DEPENDENCY_SCHEMA_REMOVED"),),
    ),
    Case(
        "since 2019-09 dependencies have other names",
        {"$schema": DRAFT_2019, "type": "object"},
        {"$schema": DRAFT_2019, "type": "object", "dependentRequired": {"a": ["b"]}},
        (("/dependencies/a", "DEPENDENCY_ARRAY_ADDED"),),
    ),
    Case(
        "a model must not close to what is unevaluated",
        at_2020(opened()),
        at_2020(opened(unevaluatedProperties=False)),
        (("/unevaluatedProperties", "UNEVALUATED_PROPERTIES_REMOVED"),),
    ),
    Case(
        "it may open to it",
        at_2020(opened(unevaluatedProperties=False)),
        at_2020(opened(unevaluatedProperties=S)),
        (),
        (("/unevaluatedProperties", "UNEVALUATED_PROPERTIES_ADDED"),),
    ),
    Case(
        "a model closed to the unevaluated takes new properties",
        at_2020(opened(unevaluatedProperties=False)),
        at_2020(opened({"a": S}, unevaluatedProperties=False)),
        (),
        (("/properties/a", "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"),),
    ),
)

ARRAYS = (
    Case("items are looked into", array(items=S), array(items=N), (("/items", "TYPE_CHANGED"),)),
    Case("items may be let go", array(items=S), array(), (), (("/items", "SCHEMA_REMOVED"),)),
    Case("items must not come", array(), array(items=S), (("/items", "SCHEMA_ADDED"),)),
    Case("maxItems must not come", array(), array(maxItems=1), (("/maxItems", "MAX_ITEMS_ADDED"),)),
    Case(
        "maxItems may go up",
        array(maxItems=1),
        array(maxItems=2),
        (),
        (("/maxItems", "MAX_ITEMS_INCREASED"),),
    ),
    Case(
        "minItems must not go up",
        array(minItems=1),
        array(minItems=2),
        (("/minItems", "MIN_ITEMS_INCREASED"),),
    ),
    Case(
        "items must not become unique",
        array(),
        array(uniqueItems=True),
        (("/uniqueItems", "UNIQUE_ITEMS_ADDED"),),
    ),
    Case(
        "items may become equal",
        array(uniqueItems=True),
        array(),
        (),
        (("/uniqueItems", "UNIQUE_ITEMS_REMOVED"),),
    ),
    Case(
        "a place of a tuple is looked into",
        array(items=[S]),
        array(items=[N]),
        (("/items/0", "TYPE_CHANGED"),),
    ),
    Case(
        "a place must not come to an open tuple",
        array(items=[S]),
        array(items=[S, S]),
        (("/items/1", "ITEM_ADDED_TO_OPEN_CONTENT_MODEL"),),
    ),
    Case(
        "a place may come to a closed tuple",
        array(items=[S], additionalItems=False),
        array(items=[S, S], additionalItems=False),
        (),
        (("/items/1", "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL"),),
    ),
    Case(
        "a place may go from an open tuple",
        array(items=[S, S]),
        array(items=[S]),
        (),
        (("/items/1", "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL"),),
    ),
    Case(
        "a place must not go from a closed tuple",
        array(items=[S, S], additionalItems=False),
        array(items=[S], additionalItems=False),
        (("/items/1", "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"),),
    ),
    Case(
        "a place may go where the rest accepts it",
        array(items=[S, I], additionalItems=N),
        array(items=[S], additionalItems=N),
        (),
        (
            ("/items/1", "TYPE_EXTENDED"),
            ("/items/1", "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"),
        ),
    ),
    Case(
        "a tuple must not close",
        array(items=[S]),
        array(items=[S], additionalItems=False),
        (("/additionalItems", "ADDITIONAL_ITEMS_REMOVED"),),
    ),
    Case(
        "2020-12 writes a tuple otherwise",
        at_2020(array(prefixItems=[S], items=False)),
        at_2020(array(prefixItems=[N], items=False)),
        (("/items/0", "TYPE_CHANGED"),),
    ),
    Case(
        "and its rest",
        at_2020(array(prefixItems=[S])),
        at_2020(array(prefixItems=[S], items=N)),
        (("/additionalItems", "ADDITIONAL_ITEMS_NARROWED"),),
    ),
    Case(
        "what an array contains is not looked at, how often is",
        at_2020(array(contains=S, minContains=1)),
        at_2020(array(contains=N, minContains=2)),
        (("/minContains", "MIN_CONTAINS_INCREASED"),),
    ),
    Case(
        "a tuple must not take the place of items for all, whatever it accepts",
        array(items=S),
        array(items=[S]),
        (("/items/0", "ITEM_ADDED_TO_OPEN_CONTENT_MODEL"),),
        (("/items", "SCHEMA_REMOVED"),),
    ),
    Case("draft 7 knows no prefixItems", array(prefixItems=[S]), array(prefixItems=[N])),
)

COMBINED = (
    Case("a sum may grow", {"oneOf": [S]}, {"oneOf": [N, S]}, (), (("/", "SUM_TYPE_EXTENDED"),)),
    Case("a sum must not shrink", {"oneOf": [N, S]}, {"oneOf": [S]}, (("/", "SUM_TYPE_NARROWED"),)),
    Case("its members may change places", {"anyOf": [N, S]}, {"anyOf": [S, N]}),
    Case("a member may widen", {"anyOf": [S, I]}, {"anyOf": [S, N]}, (), (("/anyOf/1", "TYPE_EXTENDED"),)),
    Case(
        "a member must not narrow",
        {"anyOf": [S, N]},
        {"anyOf": [S, I]},
        (("/", "COMBINED_TYPE_SUBSCHEMAS_CHANGED"),),
    ),
    Case("equal members count once", {"anyOf": [S, S]}, {"anyOf": [S]}),
    Case("a schema may become a member of a sum", S, {"oneOf": [N, S]}, (), (("/", "SUM_TYPE_EXTENDED"),)),
    Case("not of one without it", S, {"oneOf": [N, B]}, (("/", "TYPE_CHANGED"),)),
    Case(
        "a product must not grow",
        {"allOf": [S]},
        {"allOf": [S, {"maxLength": 1}]},
        (("/", "PRODUCT_TYPE_EXTENDED"),),
    ),
    Case(
        "a product may shrink",
        {"allOf": [S, {"enum": ["a"]}]},
        {"allOf": [S]},
        (),
        (("/", "PRODUCT_TYPE_NARROWED"),),
    ),
    Case(
        "a product may become its member",
        {"allOf": [S, {"enum": ["a"]}]},
        S,
        (),
        (("/", "PRODUCT_TYPE_NARROWED"),),
    ),
    Case("a product of one is the one", S, {"allOf": [S]}),
    Case("the one is a product of one", {"allOf": [S]}, S),
    Case(
        "one of may become any of",
        {"oneOf": [S, N]},
        {"anyOf": [S, N]},
        (),
        (("/", "COMBINED_TYPE_EXTENDED"),),
    ),
    Case(
        "any of must not become one of",
        {"anyOf": [S, N]},
        {"oneOf": [S, N]},
        (("/", "COMBINED_TYPE_CHANGED"),),
    ),
    Case(
        "any of must not become all of",
        {"anyOf": [S, N]},
        {"allOf": [S, N]},
        (("/", "COMBINED_TYPE_CHANGED"),),
    ),
    Case("less may be forbidden", {"not": N}, {"not": I}, (), (("/not", "NOT_TYPE_NARROWED"),)),
    Case("more must not be forbidden", {"not": I}, {"not": N}, (("/not", "NOT_TYPE_EXTENDED"),)),
    Case(
        "conditions are not looked at",
        {"if": S, "then": {"minLength": 1}},
        {"if": S, "then": {"minLength": 2}},
    ),
)


def of(schema: Json, reference: str = "#/definitions/x", bucket: str = "definitions", **more: Json) -> Json:
    return {"properties": {"a": {"$ref": reference}}, "type": "object", bucket: {"x": schema}, **more}


def tree(label: Json) -> Json:
    children = array(items={"$ref": "#"})
    return closed({"label": label, "children": children})


REFERENCES = (
    Case("a reference is followed", of(S), of(N), (("/properties/a", "TYPE_CHANGED"),)),
    Case(
        "a definition that nobody uses is not looked at",
        opened(definitions={"x": S}),
        opened(definitions={"x": N}),
    ),
    Case("a definition may be written out", of(S), opened({"a": S})),
    Case("$defs and definitions are alike", of(S), of(S, "#/$defs/x", "$defs")),
    Case("$defs is found in definitions", of(S), of(S, "#/$defs/x")),
    Case(
        "an anchor is found",
        of({"$id": "#b", "type": "string"}, "#b"),
        of(N, "#/definitions/x"),
        (("/properties/a", "TYPE_CHANGED"),),
    ),
    Case("a schema may contain itself", tree(S), tree(S)),
    Case(
        "a change inside such a one is found once",
        tree(text(maxLength=2)),
        tree(text(maxLength=1)),
        (("/properties/label/maxLength", "MAX_LENGTH_DECREASED"),),
    ),
    Case(
        "up to draft 7 what stands beside a reference is silent",
        of(S, maxProperties=1),
        of(S, maxProperties=1),
    ),
    Case(
        "since 2019-09 it counts",
        at_2020(opened({"a": {"$ref": "#/$defs/x"}}, **{"$defs": {"x": S}})),
        at_2020(opened({"a": {"$ref": "#/$defs/x", "maxLength": 1}}, **{"$defs": {"x": S}})),
        (("/properties/a", "TYPE_CHANGED"),),
    ),
    Case("a reference to a meta-schema is anything", opened({"a": S}), opened({"a": {"$ref": DRAFT_4}})),
)

CASES = (*ITSELF, *TYPES, *STRINGS, *NUMBERS, *VALUES, *OBJECTS, *ARRAYS, *COMBINED, *REFERENCES)
