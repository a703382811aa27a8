"""What a type does not bring back from a format."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Loss:
    """``type``, written to ``format`` and read back, is ``becomes``. Types are named as they are printed, without
    arguments (`decimal`, `enum`); what is lost beside the type itself (`nullability of elements`) is named so."""

    format: str
    type: str
    becomes: str
    note: str
