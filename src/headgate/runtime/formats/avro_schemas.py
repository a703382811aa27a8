"""Avro schemas as trees: how many writers are read at once, and which reader has room for all that was followed.

One `from_avro` per writer costs code: with some twenty of them Java no longer compiles what Spark generates. But Avro has
a type for "written with one of these": the union. So writers become the branches of one union, each record gets the
number of its branch before it, and Avro itself goes by that number. Two records of a union may not have the same name,
so records are renamed, which Avro does not mind; enums and fixed are compared by name, so theirs stay.

In a tree every name stands for itself: it is replaced by what it names, wherever it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from headgate.schema.formats.avro.read import PRIMITIVES, connect_decimal

NAMED = ("record", "error", "enum", "fixed")
# What makes other values of the same bytes; all else in a schema is for people.
MEANING = ("logicalType", "precision", "scale", "connect.name", "connect.parameters")
WIDER = {
    frozenset(("int", "long")): "long",
    frozenset(("int", "float")): "double",
    frozenset(("int", "double")): "double",
    frozenset(("float", "double")): "double",
}

Tree = Any  # JSON: a name, a list of branches, or an object


def tree(schema: Tree, references: Sequence[Tree] = ()) -> Tree:
    known: dict[str, Tree] = {}
    for reference in references:
        for part in reference if isinstance(reference, list) else [reference]:
            _tree(part, known, "")
    return _tree(schema, known, "")


def _tree(node: Tree, known: dict[str, Tree], namespace: str) -> Tree:
    match node:
        case str():
            full = _full_name(node, namespace)
            return known.get(full, known.get(node, node))
        case list():
            return [_tree(branch, known, namespace) for branch in node]
        case {"type": str(kind)} if kind in NAMED:
            full = _full_name(str(node["name"]), node.get("namespace", namespace) or "")
            made = {key: value for key, value in node.items() if key not in ("namespace", "doc")}
            made["name"] = full
            if "fields" in node:
                inside = full.rpartition(".")[0]
                made["fields"] = [{**f, "type": _tree(f["type"], known, inside)} for f in node["fields"]]
            known[full] = made
            return made
        case {"type": dict() | list() as inner}:
            return _tree(inner, known, namespace)
        case {"type": "null"}:
            return "null"
        case {"type": str(kind)}:
            made = {key: value for key, value in said(node).items() if key != "doc"}
            for key in ("items", "values"):
                if key in node:
                    made[key] = _tree(node[key], known, namespace)
            found = _tree(kind, known, namespace)
            return made if found == kind else found
        case _:
            return node


def said(node: Mapping[str, Tree]) -> dict[str, Tree]:
    """A node in words that Spark knows: with Connect's decimals as Avro's; and without what makes a string of Java of the
    bytes, with another character for those that are wrong."""
    made = {key: value for key, value in node.items() if key != "avro.java.string"}
    precision, scale = connect_decimal(node) if node.get("type") == "bytes" else (None, None)
    if precision is None or scale is None or "logicalType" in node:
        return made
    return {**made, "logicalType": "decimal", "precision": precision, "scale": scale}


def _full_name(name: str, namespace: str) -> str:
    return f"{namespace}.{name}" if namespace and "." not in name else name


def is_simple(node: Tree) -> bool:
    """Whether the names of its records do not matter: nothing has an alias, no union has two types besides null, and no
    record holds itself."""
    match node:
        case list():
            return len([b for b in node if b != "null"]) == 1 and all(map(is_simple, node))
        case dict():
            parts = [node.get("items"), node.get("values"), *(f["type"] for f in node.get("fields", ()))]
            aliased = "aliases" in node or any("aliases" in field for field in node.get("fields", ()))
            return not aliased and all(map(is_simple, parts))
        case str():
            return node in PRIMITIVES or node == "null"
        case _:
            return True


# what Spark takes for one number

_NOTHING = "headgate.nothing"


def apart(schema: Tree) -> Tree:
    """The schema with one more branch, which nothing is written with, in every union of just two sizes of a number: Spark
    makes one column of such a union, and does not tell which of both it was."""
    return _apart(schema, [])


def _apart(node: Tree, made: list[Tree]) -> Tree:
    match node:
        case list():
            branches = [_apart(branch, made) for branch in node]
            if {kind_of(b) for b in node} - {"null"} in ({"int", "long"}, {"float", "double"}):
                made.append(_NOTHING if made else {"type": "fixed", "name": _NOTHING, "size": 1})
                branches.append(made[-1])
            return branches
        case dict():
            parts = {k: _apart(node[k], made) for k in ("type", "items", "values") if k in node}
            fields = [_apart(field, made) for field in node["fields"]] if "fields" in node else None
            return {**node, **parts} if fields is None else {**node, **parts, "fields": fields}
        case _:
            return node


# many writers in one schema


def together(trees: Sequence[Tree]) -> tuple[str, list[int]]:
    """One union of the trees, and the numbers of those that are its branches: not those that define an enum or a fixed
    otherwise than one before them."""
    branches: list[Tree] = []
    members: list[int] = []
    defined: dict[str, Tree] = {}
    for number, one in enumerate(trees):
        names = dict(defined)
        try:
            branches.append(_renamed(one, names, [0], f"headgate_{number}"))
        except DefinedOtherwise:
            continue
        members.append(number)
        defined = names
    return json.dumps(branches), members


def varint(number: int) -> bytes:
    """As Avro writes a number that is not negative, before which a sign was put as its lowest bit."""
    head = b""
    while number > 0x7F:
        head, number = head + bytes((number & 0x7F | 0x80,)), number >> 7
    return head + bytes((number,))


def alone(one: Tree) -> str:
    """The text of a tree, in which every name is defined but once."""
    return json.dumps(_renamed(one, {}, [0], "headgate"))


def written_out(one: Tree) -> str:
    """The text of a tree with the names that it has, or `DefinedOtherwise`."""
    return json.dumps(defined_once(one))


def defined_once(one: Tree) -> Tree:
    return _once(one, {})


def _once(node: Tree, defined: dict[str, Tree]) -> Tree:
    match node:
        case list():
            return [_once(branch, defined) for branch in node]
        case {"type": str(kind), "name": str(name)} if kind in NAMED:
            if name in defined and defined[name] != node:
                raise DefinedOtherwise
            if name in defined:
                return name
            defined[name] = node
            # Without a namespace of its own it would be in that of what is around it.
            made = node if "." in name else {**node, "namespace": ""}
            fields = [{**f, "type": _once(f["type"], defined)} for f in node.get("fields", ())]
            return {**made, "fields": fields} if fields else made
        case dict():
            return {**node, **{k: _once(node[k], defined) for k in ("items", "values") if k in node}}
        case _:
            return node


class DefinedOtherwise(Exception):
    """A name would stand for two things."""


def _renamed(node: Tree, defined: dict[str, Tree], count: list[int], prefix: str) -> Tree:
    match node:
        case list():
            return [_renamed(branch, defined, count, prefix) for branch in node]
        case {"fields": list(fields)}:
            count[0] += 1
            name = f"{prefix}_{count[0]}"
            inner = [{**f, "type": _renamed(f["type"], defined, count, prefix)} for f in fields]
            return {**node, "name": name, "fields": inner}
        case {"type": "enum" | "fixed", "name": str(name)}:
            if name not in defined:
                defined[name] = node
                return node
            if _bytes_of(defined[name]) != _bytes_of(node):
                raise DefinedOtherwise
            return name
        case dict():
            parts = {k: _renamed(node[k], defined, count, prefix) for k in ("items", "values") if k in node}
            return {**node, **parts}
        case _:
            return node


def _bytes_of(node: Mapping[str, Tree]) -> Tree:
    return [node["type"], node.get("symbols"), node.get("size"), meaning(node)]


# one reader for all that was followed


def grown(trees: Sequence[Tree]) -> Tree | None:
    """A reader for the values of all: what one of them lacks is null. None if Avro cannot resolve them to one type."""
    return reduce(lambda a, b: None if a is None else _grown(a, b), trees[1:], _without_defaults(trees[0]))


def _grown(a: Tree, b: Tree) -> Tree | None:
    (old, old_null), (new, new_null) = _place(a), _place(b)
    made = _grown_type(old, new)
    return None if made is None else ["null", made] if old_null or new_null else made


def _grown_type(old: Tree, new: Tree) -> Tree | None:
    if kind_of(old) != kind_of(new):
        return _wider(old, new)
    match kind_of(old):
        case "record":
            return _grown_record(old, new)
        case "array" | "map" as kind:
            part = "items" if kind == "array" else "values"
            inner = _grown(old[part], new[part])
            return None if inner is None else {**old, part: inner}
        case "enum" if old["name"] == new["name"]:
            return {
                **old,
                "symbols": [*old["symbols"], *(s for s in new["symbols"] if s not in old["symbols"])],
            }
        case _:
            return old if resolves(new, old) else None


def _grown_record(old: Tree, new: Tree) -> Tree | None:
    theirs = {field["name"]: field["type"] for field in new["fields"]}
    fields = []
    for field in old["fields"]:
        name, type_ = field["name"], field["type"]
        made = _grown(type_, theirs[name]) if name in theirs else type_
        if made is None:
            return None
        optional = "default" in field or name not in theirs
        fields.append(_optional(name, made) if optional else {"name": name, "type": made})
    ours = {field["name"] for field in fields}
    fields += [
        _optional(name, _without_defaults(type_)) for name, type_ in theirs.items() if name not in ours
    ]
    return {**old, "fields": fields}


def _optional(name: str, type_: Tree) -> Tree:
    return {"name": name, "type": ["null", _place(type_)[0]], "default": None}


def _without_defaults(node: Tree) -> Tree:
    match node:
        case list():
            return [_without_defaults(branch) for branch in node]
        case {"fields": list(fields)}:
            bare = [{"name": f["name"], "type": _without_defaults(f["type"])} for f in fields]
            return {**node, "fields": bare}
        case dict():
            made = {key: value for key, value in node.items() if key != "default"}
            return {**made, **{k: _without_defaults(made[k]) for k in ("items", "values") if k in made}}
        case _:
            return node


def resolves(writer: Tree, reader: Tree) -> bool:
    """Whether Avro reads every value of the writer as the reader's type, without another meaning."""
    (have, have_null), (want, want_null) = _place(writer), _place(reader)
    if have_null and not want_null:
        return False
    if kind_of(have) != kind_of(want):
        return _wider(have, want) == kind_of(want)
    match kind_of(have):
        case "record":
            theirs = {field["name"]: field["type"] for field in have["fields"]}
            return all(
                resolves(theirs[f["name"]], f["type"]) if f["name"] in theirs else "default" in f
                for f in want["fields"]
            )
        case "array":
            return resolves(have["items"], want["items"])
        case "map":
            return resolves(have["values"], want["values"])
        case "enum":
            return bool(have["name"] == want["name"]) and set(have["symbols"]) <= set(want["symbols"])
        case "fixed":
            return bool(have["name"] == want["name"]) and _bytes_of(have) == _bytes_of(want)
        case _:
            return meaning(have) == meaning(want)


def _wider(a: Tree, b: Tree) -> str | None:
    """The number that holds both numbers."""
    return None if meaning(a) or meaning(b) else WIDER.get(frozenset((kind_of(a), kind_of(b))))


def _place(node: Tree) -> tuple[Tree, bool]:
    """The type of a place, and whether it may be null. Only of what is simple."""
    if not isinstance(node, list):
        return node, False
    return next(branch for branch in node if branch != "null"), "null" in node


def kind_of(node: Tree) -> str:
    kind = node["type"] if isinstance(node, dict) else node
    return "record" if kind == "error" else str(kind)


def meaning(node: Tree) -> dict[str, Tree]:
    return {key: node[key] for key in MEANING if key in node} if isinstance(node, dict) else {}
