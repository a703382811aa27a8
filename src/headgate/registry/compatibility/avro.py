"""Can this Avro reader read everything that writer wrote?

The rules are those of Avro's schema resolution as Java's ``SchemaCompatibility`` applies them, because that is what
registries in use answer:

- Logical types are not compared: a decimal may change precision and scale, a date may become an int.
- Named types match by their simple name, or when an alias of the reader is the writer's full name.
- A branch of a union reads a writer's type when it is compatible with it, promotions included.
- A type on its own reads a writer's union when it reads every branch.

Paths lead into the reader's schema. Where the writer's branch matters, the message names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from headgate.registry.errors import Incompatibility
from headgate.registry.schemas import ParsedSchema, avro_types
from headgate.schema.formats.avro import tree

# The types that a reader can read besides its own.
PROMOTIONS = {
    "long": frozenset(("int",)),
    "float": frozenset(("int", "long")),
    "double": frozenset(("int", "long", "float")),
    "bytes": frozenset(("string",)),
    "string": frozenset(("bytes",)),
}


def incompatibilities(reader: ParsedSchema, writer: ParsedSchema) -> tuple[Incompatibility, ...]:
    """Everything that keeps ``reader`` from reading what was written with ``writer``; empty when nothing does."""
    return _Check().run(avro_types(reader), avro_types(writer))


@dataclass(slots=True)
class _Check:
    """Compares pairs of types and remembers the answers.

    A pair that is met inside itself is assumed to be compatible: if it is not, the outer comparison finds out. Such an
    answer holds only if the assumption does. So the whole check is repeated, with the pairs that were found incompatible,
    until it finds nothing new. Java and Python keep the first answer, which can hide an incompatibility behind a union.
    """

    answers: dict[tuple[int, int], tuple[Incompatibility, ...]] = field(default_factory=dict)
    incompatible: dict[tuple[int, int], tuple[Incompatibility, ...]] = field(default_factory=dict)
    in_progress: set[tuple[int, int]] = field(default_factory=set)
    assumed: bool = False

    def run(self, reader: tree.AvroType, writer: tree.AvroType) -> tuple[Incompatibility, ...]:
        """Compare until the set of incompatible pairs no longer grows."""
        while True:
            self.answers, self.assumed = {}, False
            found = self.compare(reader, writer, "$")
            incompatible = {pair: answer for pair, answer in self.answers.items() if answer}
            if not self.assumed or incompatible.keys() == self.incompatible.keys():
                return tuple(dict.fromkeys(found))
            self.incompatible = incompatible

    def compare(self, reader: tree.AvroType, writer: tree.AvroType, path: str) -> tuple[Incompatibility, ...]:
        """The differences of one pair, from memory if it was compared before."""
        pair = (id(reader), id(writer))
        if pair in self.answers:
            return self.answers[pair]
        if pair in self.in_progress:
            self.assumed = self.assumed or pair not in self.incompatible
            return self.incompatible.get(pair, ())
        self.in_progress.add(pair)
        answer = tuple(self._differences(reader, writer, path))
        self.in_progress.remove(pair)
        self.answers[pair] = answer
        return answer

    def _differences(self, reader: tree.AvroType, writer: tree.AvroType, path: str) -> Iterator[Incompatibility]:
        """The rules by kind of type. A union of the writer is taken apart first: every branch must be readable."""
        match reader, writer:
            case _, tree.Union():
                for branch in writer.branches:
                    yield from self.compare(reader, branch, path)
            case tree.Union(), _:
                yield from self._reader_union(reader, writer, path)
            case tree.Array(), tree.Array():
                yield from self.compare(reader.items, writer.items, f"{path}.items")
            case tree.Map(), tree.Map():
                yield from self.compare(reader.values, writer.values, f"{path}.values")
            case tree.Fixed(), tree.Fixed():
                yield from _name_mismatch(reader, writer, path)
                yield from _size_mismatch(reader, writer, path)
            case tree.Enum(), tree.Enum():
                yield from _name_mismatch(reader, writer, path)
                yield from _missing_symbols(reader, writer, path)
            case tree.Record(), tree.Record():
                # The fields of unrelated records would only distract.
                other = [*_name_mismatch(reader, writer, path)]
                yield from other or self._fields(reader, writer, path)
            case _:
                if not _reads(reader, writer):
                    message = f"the reader's {tree.describe(reader)} cannot read the writer's {tree.describe(writer)}"
                    yield Incompatibility(path, "TYPE_MISMATCH", message)

    def _reader_union(self, reader: tree.Union, writer: tree.AvroType, path: str) -> Iterator[Incompatibility]:
        """One branch must read the writer's type. If the branch that is probably intended does not, its differences are named
        too."""
        reasons: list[Incompatibility] = []
        for index, branch in enumerate(reader.branches):
            answer = self.compare(branch, writer, f"{path}[{index}]")
            if not answer:
                return
            if _is_probably_intended(branch, writer):
                reasons.extend(answer)
        message = f"no branch of the reader's {tree.describe(reader)} reads the writer's {tree.describe(writer)}"
        yield Incompatibility(path, "MISSING_UNION_BRANCH", message)
        yield from reasons

    def _fields(self, reader: tree.Record, writer: tree.Record, path: str) -> Iterator[Incompatibility]:
        """Every field of the reader must be written, or have a default. Fields that only the writer has are skipped."""
        places = {source.name: number for number, source in enumerate(writer.fields)}
        for index, member in enumerate(reader.fields):
            place = f"{path}.fields[{index}]"
            # The fields that it may stand for, by its name or by one of its aliases. To search for them takes most of a second
            # with 2,000 fields.
            found = sorted({places[name] for name in (member.name, *member.aliases) if name in places})
            sources = [writer.fields[number] for number in found]
            if len(sources) > 1:
                names = " and ".join(f'"{source.name}"' for source in sources)
                message = f'field "{member.name}" of {tree.describe(reader)} may stand for {names} of the writer'
                yield Incompatibility(place, "NAME_MISMATCH", message)
            elif sources:
                yield from self.compare(member.type, sources[0].type, f"{place}.type")
            elif not member.has_default:
                message = (
                    f'field "{member.name}" of {tree.describe(reader)}, of type {tree.describe(member.type)}, is not '
                    f"written by {tree.describe(writer)} and has no default"
                )
                yield Incompatibility(place, "READER_FIELD_MISSING_DEFAULT_VALUE", message)


def _reads(reader: tree.AvroType, writer: tree.AvroType) -> bool:
    match reader, writer:
        case tree.Primitive(), tree.Primitive():
            return reader.kind == writer.kind or writer.kind in PROMOTIONS.get(reader.kind, ())
        case _:
            return False


def _is_probably_intended(reader: tree.AvroType, writer: tree.AvroType) -> bool:
    if isinstance(reader, tree.Fixed | tree.Enum | tree.Record) and isinstance(
        writer, tree.Fixed | tree.Enum | tree.Record
    ):
        return type(reader) is type(writer) and next(_name_mismatch(reader, writer, ""), None) is None
    return type(reader) is type(writer) and not isinstance(reader, tree.Primitive)


def _name_mismatch(reader: tree.Named, writer: tree.Named, path: str) -> Iterator[Incompatibility]:
    if reader.name.simple != writer.name.simple and writer.name.full not in reader.aliases:
        message = (
            f"the reader's {tree.describe(reader)} is neither named nor aliased as the writer's {tree.describe(writer)}"
        )
        yield Incompatibility(f"{path}.name", "NAME_MISMATCH", message)


def _size_mismatch(reader: tree.Fixed, writer: tree.Fixed, path: str) -> Iterator[Incompatibility]:
    if reader.size != writer.size:
        message = f"{tree.describe(reader)} has {reader.size} bytes, the writer's has {writer.size}"
        yield Incompatibility(f"{path}.size", "FIXED_SIZE_MISMATCH", message)


def _missing_symbols(reader: tree.Enum, writer: tree.Enum, path: str) -> Iterator[Incompatibility]:
    missing = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
    if missing and reader.default is None:
        symbols = ", ".join(f'"{symbol}"' for symbol in missing)
        message = f"{tree.describe(reader)} has no default and lacks {symbols} of the writer's {tree.describe(writer)}"
        yield Incompatibility(f"{path}.symbols", "MISSING_ENUM_SYMBOLS", message)
