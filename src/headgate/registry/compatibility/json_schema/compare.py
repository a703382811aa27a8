"""Two JSON Schemas compared: all differences, and those that keep the new one from reading what the old one wrote.

Known to be too kind, as Confluent's registry is: ``if``, ``then`` and ``else`` do not count, and two schemas that
Kafka Connect marks as bytes are alike whatever their type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from headgate.registry.compatibility import Incompatibility
from headgate.registry.compatibility.json_schema.arrays import compare_arrays
from headgate.registry.compatibility.json_schema.combined import (
    compare_combined,
    compare_negations,
    into_sum,
    out_of_product,
)
from headgate.registry.compatibility.json_schema.kinds import REFUTED, Difference, all_compatible, changed
from headgate.registry.compatibility.json_schema.load import Loader
from headgate.registry.compatibility.json_schema.nodes import (
    Anything,
    Array,
    Combined,
    Common,
    Const,
    Enum,
    Node,
    Not,
    Nothing,
    Number,
    Object,
    Reference,
    String,
    describe,
)
from headgate.registry.compatibility.json_schema.objects import compare_objects
from headgate.registry.compatibility.json_schema.pairs import Pairs
from headgate.registry.compatibility.json_schema.scalars import (
    compare_constants,
    compare_enums,
    compare_numbers,
    compare_strings,
)
from headgate.registry.parsing.json_documents import Documents
from headgate.registry.schemas import ParsedSchema
from headgate.schema.formats.documents import Json

Key = tuple[int, int, bool]


def incompatibilities(reader: ParsedSchema, writer: ParsedSchema) -> tuple[Incompatibility, ...]:
    """Every change from ``writer`` to ``reader`` that Confluent's registry calls incompatible under BACKWARD."""
    verdicts = Verdicts(_loader(writer), _loader(reader))
    found = (change for change in Report(verdicts, skips_compatible=True).run() if not change.is_compatible)
    named = (Incompatibility(change.pointer, change.kind, change.message()) for change in found)
    return tuple(dict.fromkeys(named))


def differences(old: ParsedSchema, new: ParsedSchema) -> tuple[Difference, ...]:
    """Every change from ``old`` to ``new``, compatible or not."""
    return Report(Verdicts(_loader(old), _loader(new)), skips_compatible=False).run()


def _loader(parsed: ParsedSchema) -> Loader:
    others = [(other.name, cast(Json, other.definition)) for other in parsed.dependencies]
    return Loader(Documents(cast(Json, parsed.definition), others))


class Sides:
    """The two webs of documents, and which side is which: inside a ``not`` they have changed places."""

    def __init__(self, old: Loader, new: Loader) -> None:
        self.old, self.new = old, new
        self.turned = False

    def follow(self, old: Node, new: Node) -> tuple[Node, Node, Key]:
        """References on either side resolved, each in its own documents, and what the pair is remembered by."""
        first, second = (self.new, self.old) if self.turned else (self.old, self.new)
        old = first.target(old) if isinstance(old, Reference) else old
        new = second.target(new) if isinstance(new, Reference) else new
        return old, new, (id(old), id(new), self.turned)


class Verdicts:
    """Which pairs of nodes are incompatible, for all pairs that the roots lead to.

    Every pair is taken as compatible until it is refuted; a pair that rests on a refuted one is asked again. So
    schemas that contain themselves or one another get the right answer, without recursion.
    """

    def __init__(self, old: Loader, new: Loader) -> None:
        self.sides = Sides(old, new)
        self.refuted: set[Key] = set()
        # Asked in rounds, so that a pair is asked again after most of what it rests on has been answered.
        self._waiting: dict[Key, None] = {}
        self._known: dict[Key, tuple[Node, Node]] = {}
        self._askers: dict[Key, set[Key]] = {}
        self._asking: Key | None = None
        self.compare(old.root(), new.root())
        while self._waiting:
            waiting, self._waiting = self._waiting, {}
            for key in waiting:
                self._ask(key)

    def compare(self, old: Node | None, new: Node | None) -> list[Difference]:
        """For the comparison of an outer pair: compatible, or :data:`REFUTED`, as far as is known."""
        if old is None or new is None:
            return _there_or_not(old, new)
        old, new, key = self.sides.follow(old, new)
        if self._asking is not None:
            self._askers.setdefault(key, set()).add(self._asking)
        if key not in self._known:
            self._known[key] = (old, new)
            self._waiting[key] = None
        return [REFUTED] if key in self.refuted else []

    def _ask(self, key: Key) -> None:
        if key in self.refuted:
            return
        self._asking, self.sides.turned = key, key[2]
        if not all_compatible(changes(*self._known[key], self, self.sides)):
            self.refuted.add(key)
            self._waiting.update(dict.fromkeys(self._askers.pop(key, ())))


class Report:
    """Where two schemas differ. A pair that is met inside itself is reported at its outer place only."""

    def __init__(self, verdicts: Verdicts, *, skips_compatible: bool) -> None:
        self._verdicts, self._sides = verdicts, verdicts.sides
        self._skips_compatible = skips_compatible
        self._answers: dict[Key, list[Difference]] = {}
        self._open: set[Key] = set()

    def run(self) -> tuple[Difference, ...]:
        self._sides.turned = False
        found = self.compare(self._sides.old.root(), self._sides.new.root())
        return tuple(change for change in found if change.kind != REFUTED.kind)

    def compare(self, old: Node | None, new: Node | None) -> list[Difference]:
        if old is None or new is None:
            return _there_or_not(old, new)
        old, new, key = self._sides.follow(old, new)
        is_refuted = key in self._verdicts.refuted
        if key in self._open or (self._skips_compatible and not is_refuted):
            return [REFUTED] if is_refuted else []
        if key not in self._answers:
            self._open.add(key)
            self._answers[key] = changes(old, new, self, self._sides)
            self._open.remove(key)
        return self._answers[key]


def changes(old: Node, new: Node, pairs: Pairs, sides: Sides) -> list[Difference]:
    """How one node differs from another, the nodes inside being left to ``pairs``."""
    absorbed = None
    if isinstance(new, Combined) and not isinstance(old, Combined):
        absorbed = into_sum(old, new, pairs)
    elif isinstance(old, Combined) and not isinstance(new, Combined):
        absorbed = out_of_product(old, new, pairs)
    if absorbed is not None:
        return absorbed
    if type(old) is not type(new):
        return [*_type_change(old, new)]
    return [*_about_itself(old.common, new.common), *_inside(old, new, pairs, sides)]


def _inside(old: Node, new: Node, pairs: Pairs, sides: Sides) -> Iterator[Difference]:
    match old, new:
        case String(), String():
            yield from compare_strings(old, new)
        case Number(), Number():
            yield from compare_numbers(old, new)
        case Const(), Const():
            yield from compare_constants(old, new)
        case Enum(), Enum():
            yield from compare_enums(old, new)
        case Combined(), Combined():
            yield from compare_combined(old, new, pairs)
        case Not(), Not():
            sides.turned = not sides.turned
            found = [*compare_negations(old, new, pairs)]
            sides.turned = not sides.turned
            yield from found
        case Object(), Object():
            yield from compare_objects(old, new, pairs)
        case Array(), Array():
            yield from compare_arrays(old, new, pairs)


def _there_or_not(old: Node | None, new: Node | None) -> list[Difference]:
    if old is None and new is None:
        return []
    return [changed("SCHEMA_ADDED" if old is None else "SCHEMA_REMOVED")]


def _type_change(old: Node, new: Node) -> Iterator[Difference]:
    if isinstance(old, Nothing) or isinstance(new, Anything):
        return
    if old.common.is_connect_bytes and new.common.is_connect_bytes:
        return
    yield changed("TYPE_CHANGED", detail=f"{describe(old)} to {describe(new)}")


def _about_itself(old: Common, new: Common) -> Iterator[Difference]:
    if old.identity != new.identity:
        yield changed("ID_CHANGED")
    if old.title != new.title:
        yield changed("TITLE_CHANGED")
    if old.description != new.description:
        yield changed("DESCRIPTION_CHANGED")
    if old.default != new.default:
        yield changed("DEFAULT_CHANGED")
