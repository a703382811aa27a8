"""Two JSON Schemas compared: all differences, and those that keep the new one from reading what the old one wrote.

The kinds of differences, and which of them are compatible, are those of Confluent's registry, because clients rely on its
answers. Drafts 4 to 2020-12 are read. Known to be too lenient, like Confluent's registry: `if`, `then` and `else` do not
count, and two schemas that Kafka Connect marks as bytes are the same whatever their type.

Members of `allOf` (a product), `anyOf` and `oneOf` (sums) are matched regardless of their order: as many members as the
shorter side has must find a partner that accepts everything they accepted. Known to be too lenient as well: a `oneOf` may
gain a member that overlaps with another one, after which a value may match both and be refused; and an `allOf` whose
members contradict each other is compared by its members.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from headgate.registry.compatibility import json_members as members
from headgate.registry.compatibility import json_nodes as n
from headgate.registry.compatibility.json_load import Loader
from headgate.registry.errors import Incompatibility
from headgate.registry.json_documents import Documents
from headgate.registry.schemas import ParsedSchema
from headgate.schema.written import Json

Key = tuple[int, int, bool]


def incompatibilities(reader: ParsedSchema, writer: ParsedSchema) -> tuple[Incompatibility, ...]:
    """Every change from `writer` to `reader` that Confluent's registry calls incompatible under BACKWARD."""
    results = PairResults(_loader(writer), _loader(reader))
    found = (change for change in Differences(results, skips_compatible=True).run() if not change.is_compatible)
    named = (Incompatibility(change.pointer, change.kind, change.message()) for change in found)
    return tuple(dict.fromkeys(named))


def differences(old: ParsedSchema, new: ParsedSchema) -> tuple[n.Difference, ...]:
    """Every change from `old` to `new`, compatible or not."""
    return Differences(PairResults(_loader(old), _loader(new)), skips_compatible=False).run()


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
        self._askers: dict[Key, set[Key]] = {}
        self._asking: Key | None = None
        self.compare(old.root(), new.root())
        while self._waiting:
            waiting, self._waiting = self._waiting, {}
            for key in waiting:
                self._ask(key)

    def compare(self, old: n.Node | None, new: n.Node | None) -> list[n.Difference]:
        """The result for an inner pair as far as it is known: empty, or `INCOMPATIBLE`."""
        if old is None or new is None:
            return _added_or_removed(old, new)
        old, new, key = self.sides.follow(old, new)
        if self._asking is not None:
            self._askers.setdefault(key, set()).add(self._asking)
        if key not in self._known:
            self._known[key] = (old, new)
            self._waiting[key] = None
        return [n.INCOMPATIBLE] if key in self.incompatible else []

    def _ask(self, key: Key) -> None:
        if key in self.incompatible:
            return
        self._asking, self.sides.negated = key, key[2]
        if not n.all_compatible(changes(*self._known[key], self, self.sides)):
            self.incompatible.add(key)
            self._waiting.update(dict.fromkeys(self._askers.pop(key, ())))


class Differences:
    """Where two schemas differ. A pair that occurs inside itself is reported only at its outer path."""

    def __init__(self, results: PairResults, *, skips_compatible: bool) -> None:
        self._results, self._sides = results, results.sides
        self._skips_compatible = skips_compatible
        self._answers: dict[Key, list[n.Difference]] = {}
        self._open: set[Key] = set()

    def run(self) -> tuple[n.Difference, ...]:
        self._sides.negated = False
        found = self.compare(self._sides.old.root(), self._sides.new.root())
        return tuple(change for change in found if change.kind != n.INCOMPATIBLE.kind)

    def compare(self, old: n.Node | None, new: n.Node | None) -> list[n.Difference]:
        if old is None or new is None:
            return _added_or_removed(old, new)
        old, new, key = self._sides.follow(old, new)
        is_incompatible = key in self._results.incompatible
        if key in self._open or (self._skips_compatible and not is_incompatible):
            return [n.INCOMPATIBLE] if is_incompatible else []
        if key not in self._answers:
            self._open.add(key)
            self._answers[key] = changes(old, new, self, self._sides)
            self._open.remove(key)
        return self._answers[key]


def changes(old: n.Node, new: n.Node, pairs: n.Pairs, sides: Sides) -> list[n.Difference]:
    """How one node differs from another. `pairs` compares the nodes inside."""
    absorbed = None
    if isinstance(new, n.Combined) and not isinstance(old, n.Combined):
        absorbed = compare_with_any_of(old, new, pairs)
    elif isinstance(old, n.Combined) and not isinstance(new, n.Combined):
        absorbed = compare_with_all_of(old, new, pairs)
    if absorbed is not None:
        return absorbed
    if type(old) is not type(new):
        return [*_type_change(old, new)]
    return [*_about_itself(old.common, new.common), *_inside(old, new, pairs, sides)]


def _inside(old: n.Node, new: n.Node, pairs: n.Pairs, sides: Sides) -> Iterator[n.Difference]:
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
            sides.negated = not sides.negated
            found = [*compare_negations(old, new, pairs)]
            sides.negated = not sides.negated
            yield from found
        case n.Object(), n.Object():
            yield from members.compare_objects(old, new, pairs)
        case n.Array(), n.Array():
            yield from members.compare_arrays(old, new, pairs)


def _added_or_removed(old: n.Node | None, new: n.Node | None) -> list[n.Difference]:
    if old is None and new is None:
        return []
    return [n.changed("SCHEMA_ADDED" if old is None else "SCHEMA_REMOVED")]


def _type_change(old: n.Node, new: n.Node) -> Iterator[n.Difference]:
    if isinstance(old, n.Nothing) or isinstance(new, n.Anything):
        return
    if old.common.is_connect_bytes and new.common.is_connect_bytes:
        return
    yield n.changed("TYPE_CHANGED", detail=f"{n.describe(old)} to {n.describe(new)}")


def _about_itself(old: n.Common, new: n.Common) -> Iterator[n.Difference]:
    pairs = {
        "ID_CHANGED": (old.identity, new.identity),
        "TITLE_CHANGED": (old.title, new.title),
        "DESCRIPTION_CHANGED": (old.description, new.description),
        "DEFAULT_CHANGED": (old.default, new.default),
    }
    yield from (n.changed(kind) for kind, (before, after) in pairs.items() if before != after)


SUMS = ("anyOf", "oneOf")


def compare_combined(old: n.Combined, new: n.Combined, pairs: n.Pairs) -> Iterator[n.Difference]:
    """Both are combinations: compare how they combine, how many members they have, and the members."""
    criterion = _criterion(old, new)
    if criterion is not None:
        yield criterion
        if not criterion.is_compatible:
            return
    before, after = _distinct(old.members), _distinct(new.members)
    yield from _size(old, new, len(before), len(after))
    edges = _edges(old.criterion, before, after, pairs)
    partners = _match(edges, len(after))
    for position, partner in partners.items():
        yield from edges[position][partner]
    if len(partners) < min(len(before), len(after)):
        lost = next(position for position in range(len(before)) if position not in partners)
        yield n.changed("COMBINED_TYPE_SUBSCHEMAS_CHANGED", detail=_loss(old.criterion, lost, before, after, pairs))


def _loss(criterion: str, lost: int, before: list[n.Node], after: list[n.Node], pairs: n.Pairs) -> str:
    """Which member has no partner, and why the member at the same position is none."""
    detail = f"no member accepts all that {criterion}/{lost} did"
    reasons = pairs.compare(before[lost], after[lost]) if lost < len(after) else []
    named = (each for each in reasons if not each.is_compatible and each.kind != n.INCOMPATIBLE.kind)
    reason = next(named, None)
    return f"{detail} ({reason.below(criterion, str(lost)).message()})" if reason else detail


def compare_with_any_of(old: n.Node, new: n.Combined, pairs: n.Pairs) -> list[n.Difference] | None:
    """The old schema is now a member of an anyOf or oneOf, or of a combination with one member. None if no member
    accepts everything that it did."""
    if len(new.members) == 1:
        found = pairs.compare(old, new.members[0])
        return found if n.all_compatible(found) else None
    for member in new.members if new.criterion in SUMS else ():
        found = pairs.compare(old, member)
        if n.all_compatible(found):
            return [*found, n.changed("SUM_TYPE_EXTENDED")]
    return None


def compare_with_all_of(old: n.Combined, new: n.Node, pairs: n.Pairs) -> list[n.Difference] | None:
    """A member of the old allOf, or of a combination with one member, is now the schema. None if it accepts less
    than each member did."""
    if len(old.members) == 1:
        found = pairs.compare(old.members[0], new)
        return found if n.all_compatible(found) else None
    for member in old.members if old.criterion == "allOf" else ():
        found = pairs.compare(member, new)
        if n.all_compatible(found):
            return [*found, n.changed("PRODUCT_TYPE_NARROWED")]
    return None


def compare_negations(old: n.Not, new: n.Not, pairs: n.Pairs) -> Iterator[n.Difference]:
    """What is forbidden may only become less, so old and new change places."""
    if n.all_compatible(pairs.compare(new.inner, old.inner)):
        yield n.changed("NOT_TYPE_NARROWED", "not")
    else:
        yield n.changed("NOT_TYPE_EXTENDED", "not", detail="more is forbidden")


def _criterion(old: n.Combined, new: n.Combined) -> n.Difference | None:
    if old.criterion == new.criterion:
        return None
    lone_old, lone_new = len(old.members) == 1, len(new.members) == 1
    extended = (
        new.criterion == "anyOf"
        or (lone_old and lone_new)
        or (lone_old and new.criterion == "oneOf")
        or (lone_new and old.criterion == "allOf")
    )
    detail = f"{old.criterion} to {new.criterion}"
    return n.changed("COMBINED_TYPE_EXTENDED" if extended else "COMBINED_TYPE_CHANGED", detail=detail)


def _size(old: n.Combined, new: n.Combined, before: int, after: int) -> Iterator[n.Difference]:
    detail = f"{before} to {after} members"
    if before < after:
        yield n.changed("PRODUCT_TYPE_EXTENDED" if new.criterion == "allOf" else "SUM_TYPE_EXTENDED", detail=detail)
    elif before > after:
        yield n.changed("SUM_TYPE_NARROWED" if old.criterion in SUMS else "PRODUCT_TYPE_NARROWED", detail=detail)


def _distinct(nodes: tuple[n.Node, ...]) -> list[n.Node]:
    distinct: list[n.Node] = []
    for member in nodes:
        if member not in distinct:
            distinct.append(member)
    return distinct


def _edges(
    criterion: str, before: list[n.Node], after: list[n.Node], pairs: n.Pairs
) -> list[dict[int, list[n.Difference]]]:
    """For each old member, the new members that accept everything it did, with the differences."""
    edges: list[dict[int, list[n.Difference]]] = []
    for position, member in enumerate(before):
        answers = {index: pairs.compare(member, other) for index, other in enumerate(after)}
        edges.append(
            {
                index: [difference.below(criterion, str(position)) for difference in found]
                for index, found in answers.items()
                if n.all_compatible(found)
            }
        )
    return edges


def _match(edges: list[dict[int, list[n.Difference]]], size: int) -> dict[int, int]:
    """A largest matching, from old to new positions, by augmenting paths."""
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
    found = {holder: partner for partner, holder in enumerate(taken) if holder is not None}
    return dict(sorted(found.items()))
