"""What a change does to a target, from nothing to breaking it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """Worse is greater, so that the verdict on several changes is the greatest."""

    SAFE = 0  # nothing has to be done
    IN_PLACE = 1  # the target is changed where it stands
    REBUILD = 2  # the target is made anew beside the old one, and filled
    BREAKING = 3  # tasks halt, or the statement is refused


@dataclass(frozen=True, slots=True)
class Verdict:
    level: Level
    reason: str


def safe(reason: str) -> Verdict:
    return Verdict(Level.SAFE, reason)


def in_place(reason: str) -> Verdict:
    return Verdict(Level.IN_PLACE, reason)


def rebuild(reason: str) -> Verdict:
    return Verdict(Level.REBUILD, reason)


def breaking(reason: str) -> Verdict:
    return Verdict(Level.BREAKING, reason)
