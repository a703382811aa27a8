"""`allOf` (a product), `anyOf` and `oneOf` (sums), and `not`.

Members are matched regardless of their order: as many members as the shorter side has must find a partner that
accepts everything they accepted. Known to be too lenient, like Confluent's registry: a `oneOf` may gain a member
that overlaps with another one, after which a value may match both and be refused; and an `allOf` whose members
contradict each other is compared by its members.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.registry.compatibility.json_schema.nodes import (
    INCOMPATIBLE,
    Combined,
    Difference,
    Node,
    Not,
    Pairs,
    all_compatible,
    changed,
)

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
