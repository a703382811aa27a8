"""Two JSON Schemas compared: the differences that keep the new one from reading what the old one wrote.

The kinds of differences are those of Confluent's registry, because clients rely on its answers; those that it calls
compatible are not looked for. Drafts 4 to 2020-12 are read. Known to be too lenient, like Confluent's registry: `if`, `then` and `else` do not
count, and two schemas that Kafka Connect marks as bytes are the same whatever their type.

Members of `allOf` (a product), `anyOf` and `oneOf` (sums) are matched regardless of their order: as many members as the
shorter side has must find a partner that accepts everything they accepted. Known to be too lenient as well: a `oneOf` may
gain a member that overlaps with another one, after which a value may match both and be refused; and an `allOf` whose
members contradict each other is compared by its members.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from headgate.registry.compatibility import json_members as members, json_nodes as n
from headgate.registry.compatibility.json_load import Loader
from headgate.registry.errors import Incompatibility
from headgate.registry.json_documents import Documents
from headgate.registry.schemas import ParsedSchema
from headgate.schema.written import Json

Key = tuple[int, int, bool]


def incompatibilities(reader: ParsedSchema, writer: ParsedSchema) -> tuple[Incompatibility, ...]:
    """Every change from `writer` to `reader` that Confluent's registry calls incompatible under BACKWARD."""
    results = PairResults(_loader(writer), _loader(reader))
    found = Differences(results).run()
    named = (Incompatibility(change.pointer, change.kind, change.message()) for change in found)
    return tuple(dict.fromkeys(named))


def _loader(parsed: ParsedSchema) -> Loader:
    others = [(other.name, cast(Json, other.definition)) for other in parsed.dependencies]
    return Loader(Documents(cast(Json, parsed.definition), others))


class Sides:
    """The documents of both schemas. Inside a `not` they have changed places."""

    def __init__(self, old: Loader, new: Loader) -> None:
        self.old, self.new = old, new
        self.negated = False

    def follow(self, old: n.Node, new: n.Node) -> tuple[n.Node, n.Node, Key]:
        """Both nodes with references resolved, each in its own documents, and the key of the pair."""
        first, second = (self.new, self.old) if self.negated else (self.old, self.new)
        old = first.target(old) if isinstance(old, n.Reference) else old
        new = second.target(new) if isinstance(new, n.Reference) else new
        return old, new, (id(old), id(new), self.negated)


class PairResults:
    """Which pairs of nodes are incompatible, for all pairs that can be reached from the roots.

    Every pair counts as compatible until a difference is found. A pair that depends on an incompatible one is
    compared again. In this way schemas that contain themselves or each other get the right answer, without
    recursion.
    """

    def __init__(self, old: Loader, new: Loader) -> None:
        self.sides = Sides(old, new)
        self.incompatible: set[Key] = set()
        # Compared in rounds, so that a pair is compared again after most pairs that it depends on.
        self._waiting: dict[Key, None] = {}
        self._known: dict[Key, tuple[n.Node, n.Node]] = {}
        self._dependents: dict[Key, set[Key]] = {}
        self._comparing: Key | None = None
        self.compare(old.root(), new.root())
        while self._waiting:
            waiting, self._waiting = self._waiting, {}
            for key in waiting:
                self._compare_again(key)

    def compare(self, old: n.Node | None, new: n.Node | None) -> list[n.Difference]:
        """The result for an inner pair as far as it is known: empty, or `INCOMPATIBLE`."""
        if old is None or new is None:
            return _added(old, new)
        old, new, key = self.sides.follow(old, new)
        if self._comparing is not None:
            self._dependents.setdefault(key, set()).add(self._comparing)
        if key not in self._known:
            self._known[key] = (old, new)
            self._waiting[key] = None
        return [n.INCOMPATIBLE] if key in self.incompatible else []

    def _compare_again(self, key: Key) -> None:
        """Compare one pair again, and put the pairs that depend on it in the queue if it turns out incompatible."""
        if key in self.incompatible:
            return
        self._comparing, self.sides.negated = key, key[2]
        if changes(*self._known[key], self, self.sides):
            self.incompatible.add(key)
            self._waiting.update(dict.fromkeys(self._dependents.pop(key, ())))


class Differences:
    """Where two schemas differ. A pair that occurs inside itself is reported only at its outer path."""

    def __init__(self, results: PairResults) -> None:
        self._results, self._sides = results, results.sides
        self._answers: dict[Key, list[n.Difference]] = {}
        self._open: set[Key] = set()

    def run(self) -> tuple[n.Difference, ...]:
        self._sides.negated = False
        found = self.compare(self._sides.old.root(), self._sides.new.root())
        return tuple(change for change in found if change.kind != n.INCOMPATIBLE.kind)

    def compare(self, old: n.Node | None, new: n.Node | None) -> list[n.Difference]:
        """The differences of an inner pair. Pairs that are known to be compatible are not looked into."""
        if old is None or new is None:
            return _added(old, new)
        old, new, key = self._sides.follow(old, new)
        if key not in self._results.incompatible:
            return []
        if key in self._open:
            return [n.INCOMPATIBLE]
        if key not in self._answers:
            self._open.add(key)
            self._answers[key] = changes(old, new, self, self._sides)
            self._open.remove(key)
        return self._answers[key]


def changes(old: n.Node, new: n.Node, pairs: n.Pairs, sides: Sides) -> list[n.Difference]:
    """What makes one node refuse what another accepted. `pairs` compares the nodes inside."""
    if isinstance(new, n.Combined) and not isinstance(old, n.Combined):
        # The old schema is now a member of an anyOf or oneOf, or of a combination with one member.
        candidates = new.members if len(new.members) == 1 or new.criterion in SUMS else ()
        if not all(pairs.compare(old, member) for member in candidates):
            return []
    elif isinstance(old, n.Combined) and not isinstance(new, n.Combined):
        # A member of the old allOf, or of a combination with one member, is now the schema.
        candidates = old.members if len(old.members) == 1 or old.criterion == "allOf" else ()
        if not all(pairs.compare(member, new) for member in candidates):
            return []
    if type(old) is not type(new):
        return [*_type_change(old, new)]
    return [*_inside(old, new, pairs, sides)]


def _inside(old: n.Node, new: n.Node, pairs: n.Pairs, sides: Sides) -> Iterator[n.Difference]:
    """Two nodes of the same kind. Kinds without constraints, such as booleans, never differ."""
    match old, new:
        case n.String(), n.String():
            yield from members.compare_strings(old, new)
        case n.Number(), n.Number():
            yield from members.compare_numbers(old, new)
        case n.Const(), n.Const():
            yield from members.compare_constants(old, new)
        case n.Enum(), n.Enum():
            yield from members.compare_enums(old, new)
        case n.Combined(), n.Combined():
            yield from compare_combined(old, new, pairs)
        case n.Not(), n.Not():
            # What is forbidden may only become less, so old and new change places.
            sides.negated = not sides.negated
            is_forbidden = bool(pairs.compare(new.inner, old.inner))
            sides.negated = not sides.negated
            if is_forbidden:
                yield n.changed("NOT_TYPE_EXTENDED", "not", detail="more is forbidden")
        case n.Object(), n.Object():
            yield from members.compare_objects(old, new, pairs)
        case n.Array(), n.Array():
            yield from members.compare_arrays(old, new, pairs)


def _added(old: n.Node | None, new: n.Node | None) -> list[n.Difference]:
    """A schema where there was none refuses values. One that was removed refuses nothing."""
    return [n.changed("SCHEMA_ADDED")] if old is None and new is not None else []


def _type_change(old: n.Node, new: n.Node) -> Iterator[n.Difference]:
    if isinstance(old, n.Nothing) or isinstance(new, n.Anything):
        return
    if old.common.is_connect_bytes and new.common.is_connect_bytes:
        return
    yield n.changed("TYPE_CHANGED", detail=f"{n.describe(old)} to {n.describe(new)}")


SUMS = ("anyOf", "oneOf")


def compare_combined(old: n.Combined, new: n.Combined, pairs: n.Pairs) -> Iterator[n.Difference]:
    """Both are combinations: compare how they combine, how many members they have, and the members."""
    if not _criterion_is_compatible(old, new):
        yield n.changed("COMBINED_TYPE_CHANGED", detail=f"{old.criterion} to {new.criterion}")
        return
    before, after = _distinct(old.members), _distinct(new.members)
    detail = f"{len(before)} to {len(after)} members"
    if len(before) < len(after) and new.criterion == "allOf":
        yield n.changed("PRODUCT_TYPE_EXTENDED", detail=detail)
    elif len(before) > len(after) and old.criterion in SUMS:
        yield n.changed("SUM_TYPE_NARROWED", detail=detail)
    # For each old member, the new members that accept everything it did.
    edges = [[at for at, other in enumerate(after) if not pairs.compare(member, other)] for member in before]
    partners = _match(edges, len(after))
    if len(partners) < min(len(before), len(after)):
        lost = next(position for position in range(len(before)) if position not in partners)
        yield n.changed("COMBINED_TYPE_SUBSCHEMAS_CHANGED", detail=_loss(old.criterion, lost, before, after, pairs))


def _loss(criterion: str, lost: int, before: list[n.Node], after: list[n.Node], pairs: n.Pairs) -> str:
    """Which member has no partner, and why the member at the same position is none."""
    detail = f"no member accepts all that {criterion}/{lost} did"
    reasons = pairs.compare(before[lost], after[lost]) if lost < len(after) else []
    named = (each for each in reasons if each.kind != n.INCOMPATIBLE.kind)
    reason = next(named, None)
    return f"{detail} ({reason.below(criterion, str(lost)).message()})" if reason else detail


def _criterion_is_compatible(old: n.Combined, new: n.Combined) -> bool:
    """Whether one way to combine members accepts all that the other did. With one member all ways are the same."""
    lone_old, lone_new = len(old.members) == 1, len(new.members) == 1
    return (
        old.criterion == new.criterion
        or new.criterion == "anyOf"
        or (lone_old and lone_new)
        or (lone_old and new.criterion == "oneOf")
        or (lone_new and old.criterion == "allOf")
    )


def _distinct(nodes: tuple[n.Node, ...]) -> list[n.Node]:
    distinct: list[n.Node] = []
    for member in nodes:
        if member not in distinct:
            distinct.append(member)
    return distinct


def _match(edges: list[list[int]], size: int) -> set[int]:
    """The old positions of a largest matching with new positions, by augmenting paths."""
    taken: list[int | None] = [None] * size

    def place(position: int, tried: set[int]) -> bool:
        for partner in edges[position]:
            if partner not in tried:
                tried.add(partner)
                holder = taken[partner]
                if holder is None or place(holder, tried):
                    taken[partner] = position
                    return True
        return False

    for position in range(len(edges)):
        place(position, set())
    return {holder for holder in taken if holder is not None}
