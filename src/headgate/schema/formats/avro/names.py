"""The full names that the records, enums and fixeds of one generated Avro schema get."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headgate.schema.formats.avro.annotations import PRIMITIVES
from headgate.schema.formats.documents import Resolve
from headgate.schema.names import avro_name
from headgate.schema.types import Array, Enum, Map, Named, Record, Type

NAMESPACE = "com.headgate.sink"

# A name of Avro's own would be read as that type wherever it stands without its namespace.
_AVROS_OWN = frozenset((*PRIMITIVES, "null", "record", "error", "enum", "array", "map", "fixed", "union"))


class TypeNames:
    """A name for each named type that is met, in the order in which they are met.

    A type of the catalog is called by the last part of its SQL name, an imported one keeps its full name, any other
    is numbered. A clash gets the smallest free number; an imported name is never taken by one of ours, also if the
    type that brings it comes later.
    """

    def __init__(self, outermost: str, frozen: Mapping[tuple[str, ...], str]) -> None:
        self.by_type: dict[tuple[str, ...], str] = {}
        self._frozen = frozen
        self._taken = {outermost}
        self._foreign = set(frozen.values())
        self._imported: dict[str, list[tuple[Record | Enum, str]]] = {}
        self._fixeds: dict[int, str] = {}
        self._next: dict[str, int] = {}

    def reserve(self, type_: Type, resolve: Resolve) -> None:
        """Keep free the names that the types inside this one bring with them."""
        waiting, seen = [type_], set[tuple[str, ...]]()
        while waiting:
            match waiting.pop():
                case Named(parts) as named if parts not in seen:
                    seen.add(parts)
                    waiting.append(resolve(named))
                case Record(fields, name):
                    self._foreign.update([_valid(name)] if name else [])
                    waiting.extend(field.type for field in fields)
                case Enum(name=str(name)):
                    self._foreign.add(_valid(name))
                case Array(inner, _) | Map(inner, _):
                    waiting.append(inner)
                case _:
                    pass

    def of(self, type_: Record | Enum | Named, is_record: bool, enclosing: str | None) -> tuple[str, bool]:
        """The full name of a type, and whether it is defined already; otherwise it must be now."""
        if isinstance(type_, Named):
            return self._of_catalog(type_)
        if type_.name is None:
            return self._numbered("record" if is_record else "enum"), False
        return self._of_import(type_, type_.name, enclosing)

    def fixed(self, length: int) -> tuple[str, bool]:
        if length in self._fixeds:
            return self._fixeds[length], True
        self._fixeds[length] = self._take(f"{NAMESPACE}.fixed{length}", self._foreign)
        return self._fixeds[length], False

    def _of_catalog(self, type_: Named) -> tuple[str, bool]:
        if type_.parts in self.by_type:
            return self.by_type[type_.parts], True
        if type_.parts in self._frozen:
            full = self._take(self._frozen[type_.parts])
        else:
            full = self._take(f"{NAMESPACE}.{avro_name(type_.parts[-1])}", self._foreign)
        self.by_type[type_.parts] = full
        return full, False

    def _of_import(self, type_: Record | Enum, name: str, enclosing: str | None) -> tuple[str, bool]:
        wanted = _valid(name)
        if "." not in wanted and enclosing is not None:
            # Inside a namespace, Avro cannot refer to a name that has none.
            wanted = f"{enclosing}.{wanted}"
        known = self._imported.setdefault(wanted, [])
        for same_name, full in known:
            if same_name == type_:
                return full, True
        full = self._take(wanted)
        known.append((type_, full))
        return full, False

    def _numbered(self, kind: str) -> str:
        number = self._next.get(kind, 0)
        while (full := f"{NAMESPACE}.{kind}{number}") in self._taken or full in self._foreign:
            number += 1
        self._next[kind] = number + 1
        return self._take(full)

    def _take(self, wanted: str, avoid: Collection[str] = ()) -> str:
        full, number = wanted, 0
        while full in self._taken or full in avoid or full.rpartition(".")[2] in _AVROS_OWN:
            number += 1
            full = f"{wanted}{number}"
        self._taken.add(full)
        return full


def _valid(full_name: str) -> str:
    return ".".join(avro_name(part) for part in full_name.split("."))
