"""A schema that arrives with a record: what it changes for the side that reads it, and whether the side follows.

This is the one answer to "may this change be followed?". The engine asks it when a record has a new schema, and the
planner asks it before a schema is taken into a source.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from headgate.schema.encodings import FieldPath, SchemaEncoding, decoded_type, known_fields, names_in, type_in
from headgate.schema.errors import SchemaError
from headgate.schema.evolve.changes import Change, DocChanged, FieldMoved, FieldRenamed, TypeRenamed, diff_values
from headgate.schema.evolve.renames import new_names
from headgate.schema.evolve.verdicts import Level, Target, Verdict, verdict
from headgate.schema.names import Path, Step
from headgate.schema.types import Field
from headgate.schema.written import WrittenSchema


@dataclass(frozen=True, slots=True)
class ArrivingSchema:
    """What a schema changes for one side of a source, each change with its verdict.

    ``error`` says why no value can be read with the schema. There are no changes then.
    """

    changes: tuple[tuple[Change, Verdict], ...] = ()
    error: SchemaError | None = None

    @property
    def is_readable(self) -> bool:
        return self.error is None

    @property
    def level(self) -> Level:
        return max((found.level for _, found in self.changes), default=Level.SAFE)

    @property
    def breaks(self) -> bool:
        """Whether the side cannot follow. It follows a schema as a whole or not at all."""
        return self.level is Level.BREAKING

    @property
    def grows(self) -> bool:
        """Whether the side follows, and has another type then."""
        return Level.SAFE < self.level < Level.BREAKING

    def breaking_fields(self) -> tuple[FieldPath, ...]:
        """The fields that cannot be read if the schema is not followed, from the outermost record inwards. These include
        fields that could be followed alone but do not fit the present type."""
        if not self.breaks:
            return ()
        paths = [_field_path(change.path) for change, found in self.changes if found.level > Level.SAFE]
        return tuple(dict.fromkeys(paths))

    def describe(self) -> tuple[str, ...]:
        """One sentence per change that a reader of the source can notice."""
        if self.error is not None:
            return (f"it cannot be read: {self.error.message()}",)
        unseen = DocChanged | TypeRenamed | FieldMoved
        return tuple(change.describe() for change, _ in self.changes if not isinstance(change, unseen))


@lru_cache(maxsize=1024)
def arriving(encoding: SchemaEncoding, schema: WrittenSchema, target: Target = Target.READER) -> ArrivingSchema:
    """What following the schema would change. ``target`` says whether the side is a source's value or its key."""
    try:
        new = type_in(encoding, schema)
    except SchemaError as wrong:
        return ArrivingSchema(error=wrong)
    # A change that was accepted with an earlier schema may arrive again.
    taken = [_changed_paths(type_in(encoding, one), new, target) for one in encoding.schemas]
    known = decoded_type(encoding)
    judged = _judged(known, new, target)
    renamed = [
        FieldRenamed(path, str(path[-1]), name)
        for path, name in new_names(known_fields(encoding), names_in(encoding, schema), known.type)
    ]
    return ArrivingSchema(
        (
            *((change, verdict(change, target)) for change in renamed),
            *(
                (change, found)
                for change, found in judged
                if found.level is Level.SAFE or all(_overlaps(change.path, paths) for paths in taken)
            ),
        )
    )


def _judged(old: Field, new: Field, target: Target) -> list[tuple[Change, Verdict]]:
    return [(change, verdict(change, target)) for change in diff_values(old, new)]


def _changed_paths(old: Field, new: Field, target: Target) -> list[Path]:
    return [change.path for change, found in _judged(old, new, target) if found.level > Level.SAFE]


def _overlaps(path: Path, others: Iterable[Path]) -> bool:
    """Whether one of the parts is the part at the path, inside it or around it."""
    return any(all(a == b for a, b in zip(path, other, strict=False)) for other in others)


def _field_path(path: Path) -> FieldPath:
    """The path as far as it leads through records. Inside an array or a map, fields are not told apart."""
    return tuple(str(step) for step in takewhile(lambda step: not isinstance(step, Step), path))
