"""How the mapping that an index should have differs from the one that it has."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from headgate.plan.indexes import Mapped

_NUMBERS = frozenset({"byte", "short", "integer", "long", "unsigned_long", "half_float", "float", "double", "scaled_float"})  # fmt: skip
_TEXTS = frozenset({"text", "keyword", "wildcard", "match_only_text", "search_as_you_type", "ip", "version"})
_DATES = frozenset({"date", "date_nanos"})
DEFAULT_FIELD_LIMIT = 1000
# OpenSearch has two more fields for the names and the values of a flat object.
_COUNTED = {"flat_object": 3}


@dataclass(frozen=True, slots=True)
class Changed:
    """A field whose type in the index is not the wanted one, by its path with dots."""

    path: str
    held: str
    wanted: str

    @property
    def same_json(self) -> bool:
        """Whether every JSON value of the held type is the right one for the wanted type too."""
        return any(self.held in kinds and self.wanted in kinds for kinds in (_NUMBERS, _TEXTS, _DATES))


@dataclass(frozen=True, slots=True)
class Difference:
    """What an index lacks: properties that it does not have, and fields that have other types."""

    added: Mapped
    changed: tuple[Changed, ...]


def difference(held: Mapping[str, Any], wanted: Mapping[str, Any], *, foreign: bool = False) -> Difference:
    """``foreign`` says that only types count: the owner of an index may format dates and analyse texts in another way."""
    changed: list[Changed] = []
    added = _added(held.get("properties", {}), wanted.get("properties", {}), "", changed, foreign)
    known = _templates(held)
    for path, want in _templates(wanted).items():
        if path in known and known[path] != want:
            changed.append(Changed(path, known[path], want))
    return Difference(added, tuple(changed))


def _templates(mapping: Mapping[str, Any]) -> dict[str, str]:
    """The types of the values of maps, by the pattern of their paths."""
    all_ = [one for template in mapping.get("dynamic_templates", []) for one in template.values()]
    return {one["path_match"]: _kind(one["mapping"]) for one in all_ if "path_match" in one and "mapping" in one}


def _added(
    held: Mapping[str, Any], wanted: Mapping[str, Any], above: str, changed: list[Changed], foreign: bool
) -> Mapped:
    """The properties to add below a path. Fields of other types are added to ``changed``."""
    found: Mapped = {}
    for name, want in wanted.items():
        path, have = f"{above}{name}", held.get(name)
        if have is None:
            found[name] = want
        elif _kind(have) != _kind(want) or (not foreign and _form(have) != _form(want)):
            changed.append(Changed(path, _kind(have), _kind(want)))
        elif "properties" in want:
            inner = _added(have.get("properties", {}), want["properties"], f"{path}.", changed, foreign)
            if inner:
                found[name] = {**({"type": "nested"} if _kind(want) == "nested" else {}), "properties": inner}
    return found


def _kind(field: Mapping[str, Any]) -> str:
    return str(field.get("type", "object"))


def _form(field: Mapping[str, Any]) -> tuple[Any, ...]:
    factor = field.get("scaling_factor")
    return field.get("format"), None if factor is None else float(factor)


def merged(held: Mapping[str, Any], wanted: Mapping[str, Any]) -> Mapped:
    """The mapping of an index that has all fields of both. A field of both has the wanted type."""
    made = deepcopy(dict(held))
    made.update(
        {name: deepcopy(part) for name, part in wanted.items() if name not in ("properties", "dynamic_templates")}
    )
    made["properties"] = _merged_properties(held.get("properties", {}), wanted.get("properties", {}))
    if templates := merged_templates(held, wanted):
        made["dynamic_templates"] = templates
    return made


def field_count(mapping: Mapping[str, Any]) -> int:
    """How many fields a server counts in a mapping: objects and sub-fields are fields too."""
    found = 0
    for field in mapping.get("properties", {}).values():
        found += _COUNTED.get(_kind(field), 1) + len(field.get("fields", {})) + field_count(field)
    return found


def field_limit(mapping: Mapping[str, Any], held: Mapping[str, Any] | None = None) -> int | None:
    """The limit of fields that an index with these settings needs for a mapping; None if it has enough. All fields of the mapping are
    wanted, so that the limit that servers have by default is left for the keys of maps."""
    count = field_count(mapping)
    given = None if held is None else held.get("mapping", {}).get("total_fields", {}).get("limit", DEFAULT_FIELD_LIMIT)
    return DEFAULT_FIELD_LIMIT + count if given is None or int(given) < count else None


def merged_templates(held: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[Any]:
    """The templates of both. One of the same name is the wanted one: a put replaces the whole list."""
    own: list[Any] = wanted.get("dynamic_templates", [])
    names = {name for template in own for name in template}
    return [template for template in held.get("dynamic_templates", []) if not names & template.keys()] + own


def _merged_properties(held: Mapping[str, Any], wanted: Mapping[str, Any]) -> Mapped:
    made = deepcopy(dict(held))
    for name, want in wanted.items():
        have = made.get(name)
        if have is not None and "properties" in want and "properties" in have:
            made[name] = {**want, "properties": _merged_properties(have["properties"], want["properties"])}
        else:
            made[name] = deepcopy(want)
    return made
