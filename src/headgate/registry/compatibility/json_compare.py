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

from headgate.registry.compatibility.json_load import Loader
from headgate.registry.compatibility.json_members import (
    compare_arrays,
    compare_constants,
    compare_enums,
    compare_numbers,
    compare_objects,
    compare_strings,
)
from headgate.registry.compatibility.json_nodes import (
    INCOMPATIBLE,
    Anything,
    Array,
    Combined,
    Common,
    Const,
    Difference,
    Enum,
    Node,
    Not,
    Nothing,
    Number,
    Object,
    Pairs,
    Reference,
    String,
    all_compatible,
    changed,
    describe,
)
from headgate.registry.errors import Incompatibility
from headgate.registry.json_documents import Documents
from headgate.registry.schemas import ParsedSchema
from headgate.schema.formats.documents import Json

Key = tuple[int, int, bool]


def incompatibilities(reader: ParsedSchema, writer: ParsedSchema) -> tuple[Incompatibility, ...]:
    """Every change from `writer` to `reader` that Confluent's registry calls incompatible under BACKWARD."""
    results = PairResults(_loader(writer), _loader(reader))
    found = (change for change in Differences(results, skips_compatible=True).run() if not change.is_compatible)
    named = (Incompatibility(change.pointer, change.kind, change.message()) for change in found)
    return tuple(dict.fromkeys(named))


def differences(old: ParsedSchema, new: ParsedSchema) -> tuple[Difference, ...]:
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

    def follow(self, old: Node, new: Node) -> tuple[Node, Node, Key]:
        """Both nodes with references resolved, each in its own documents, and the key of the pair."""
        first, second = (self.new, self.old) if self.negated else (self.old, self.new)
        old = first.target(old) if isinstance(old, Reference) else old
        new = second.target(new) if isinstance(new, Reference) else new
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
        self._known: dict[Key, tuple[Node, Node]] = {}
        self._askers: dict[Key, set[Key]] = {}
        self._asking: Key | None = None
        self.compare(old.root(), new.root())
        while self._waiting:
            waiting, self._waiting = self._waiting, {}
            for key in waiting:
                self._ask(key)

    def compare(self, old: Node | None, new: Node | None) -> list[Difference]:
        """The result for an inner pair as far as it is known: empty, or `INCOMPATIBLE`."""
        if old is None or new is None:
            return _added_or_removed(old, new)
        old, new, key = self.sides.follow(old, new)
        if self._asking is not None:
            self._askers.setdefault(key, set()).add(self._asking)
        if key not in self._known:
            self._known[key] = (old, new)
            self._waiting[key] = None
        return [INCOMPATIBLE] if key in self.incompatible else []

    def _ask(self, key: Key) -> None:
        if key in self.incompatible:
            return
        self._asking, self.sides.negated = key, key[2]
        if not all_compatible(changes(*self._known[key], self, self.sides)):
            self.incompatible.add(key)
            self._waiting.update(dict.fromkeys(self._askers.pop(key, ())))


class Differences:
    """Where two schemas differ. A pair that occurs inside itself is reported only at its outer path."""

    def __init__(self, results: PairResults, *, skips_compatible: bool) -> None:
        self._results, self._sides = results, results.sides
        self._skips_compatible = skips_compatible
        self._answers: dict[Key, list[Difference]] = {}
        self._open: set[Key] = set()

    def run(self) -> tuple[Difference, ...]:
        self._sides.negated = False
        found = self.compare(self._sides.old.root(), self._sides.new.root())
        return tuple(change for change in found if change.kind != INCOMPATIBLE.kind)

    def compare(self, old: Node | None, new: Node | None) -> list[Difference]:
        if old is None or new is None:
            return _added_or_removed(old, new)
        old, new, key = self._sides.follow(old, new)
        is_incompatible = key in self._results.incompatible
        if key in self._open or (self._skips_compatible and not is_incompatible):
            return [INCOMPATIBLE] if is_incompatible else []
        if key not in self._answers:
            self._open.add(key)
            self._answers[key] = changes(old, new, self, self._sides)
            self._open.remove(key)
        return self._answers[key]


def changes(old: Node, new: Node, pairs: Pairs, sides: Sides) -> list[Difference]:
    """How one node differs from another. `pairs` compares the nodes inside."""
    absorbed = None
    if isinstance(new, Combined) and not isinstance(old, Combined):
        absorbed = compare_with_any_of(old, new, pairs)
    elif isinstance(old, Combined) and not isinstance(new, Combined):
        absorbed = compare_with_all_of(old, new, pairs)
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
            sides.negated = not sides.negated
            found = [*compare_negations(old, new, pairs)]
            sides.negated = not sides.negated
            yield from found
        case Object(), Object():
            yield from compare_objects(old, new, pairs)
        case Array(), Array():
            yield from compare_arrays(old, new, pairs)


def _added_or_removed(old: Node | None, new: Node | None) -> list[Difference]:
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


SUMS = ("anyOf", "oneOf")


def compare_combined(old: Combined, new: Combined, pairs: Pairs) -> Iterator[Difference]:
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
        yield changed("COMBINED_TYPE_SUBSCHEMAS_CHANGED", detail=_loss(old.criterion, lost, before, after, pairs))


def _loss(criterion: str, lost: int, before: list[Node], after: list[Node], pairs: Pairs) -> str:
    """Which member has no partner, and why the member at the same position is none."""
    detail = f"no member accepts all that {criterion}/{lost} did"
    reasons = pairs.compare(before[lost], after[lost]) if lost < len(after) else []
    named = (each for each in reasons if not each.is_compatible and each.kind != INCOMPATIBLE.kind)
    reason = next(named, None)
    return f"{detail} ({reason.below(criterion, str(lost)).message()})" if reason else detail


def compare_with_any_of(old: Node, new: Combined, pairs: Pairs) -> list[Difference] | None:
    """The old schema is now a member of an anyOf or oneOf, or of a combination with one member. None if no member
    accepts everything that it did."""
    if len(new.members) == 1:
        found = pairs.compare(old, new.members[0])
        return found if all_compatible(found) else None
    for member in new.members if new.criterion in SUMS else ():
        found = pairs.compare(old, member)
        if all_compatible(found):
            return [*found, changed("SUM_TYPE_EXTENDED")]
    return None


def compare_with_all_of(old: Combined, new: Node, pairs: Pairs) -> list[Difference] | None:
    """A member of the old allOf, or of a combination with one member, is now the schema. None if it accepts less
    than each member did."""
    if len(old.members) == 1:
        found = pairs.compare(old.members[0], new)
        return found if all_compatible(found) else None
    for member in old.members if old.criterion == "allOf" else ():
        found = pairs.compare(member, new)
        if all_compatible(found):
            return [*found, changed("PRODUCT_TYPE_NARROWED")]
    return None


def compare_negations(old: Not, new: Not, pairs: Pairs) -> Iterator[Difference]:
    """What is forbidden may only become less, so old and new change places."""
    if all_compatible(pairs.compare(new.inner, old.inner)):
        yield changed("NOT_TYPE_NARROWED", "not")
    else:
        yield changed("NOT_TYPE_EXTENDED", "not", detail="more is forbidden")


def _criterion(old: Combined, new: Combined) -> Difference | None:
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
    return changed("COMBINED_TYPE_EXTENDED" if extended else "COMBINED_TYPE_CHANGED", detail=detail)


def _size(old: Combined, new: Combined, before: int, after: int) -> Iterator[Difference]:
    detail = f"{before} to {after} members"
    if before < after:
        yield changed("PRODUCT_TYPE_EXTENDED" if new.criterion == "allOf" else "SUM_TYPE_EXTENDED", detail=detail)
    elif before > after:
        yield changed("SUM_TYPE_NARROWED" if old.criterion in SUMS else "PRODUCT_TYPE_NARROWED", detail=detail)


def _distinct(members: tuple[Node, ...]) -> list[Node]:
    distinct: list[Node] = []
    for member in members:
        if member not in distinct:
            distinct.append(member)
    return distinct


def _edges(criterion: str, before: list[Node], after: list[Node], pairs: Pairs) -> list[dict[int, list[Difference]]]:
    """For each old member, the new members that accept everything it did, with the differences."""
    edges: list[dict[int, list[Difference]]] = []
    for position, member in enumerate(before):
        answers = {index: pairs.compare(member, other) for index, other in enumerate(after)}
        edges.append(
            {
                index: [difference.below(criterion, str(position)) for difference in found]
                for index, found in answers.items()
                if all_compatible(found)
            }
        )
    return edges


def _match(edges: list[dict[int, list[Difference]]], size: int) -> dict[int, int]:
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
