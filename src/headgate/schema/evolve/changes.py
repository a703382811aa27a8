"""The changes between two schemas: a closed set. Each has a path and can describe itself."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.schema.docs import DocumentedPart
from headgate.schema.paths import Path, print_path
from headgate.schema.render import print_field, print_type
from headgate.schema.types import Field, Type


@dataclass(frozen=True, slots=True)
class FieldAdded:
    """`index` is its position in the new record. `last` says that no field of the old record follows it."""

    path: Path
    field: Field
    index: int
    last: bool

    def describe(self) -> str:
        return f"{print_path(self.path)} added as {print_field(self.field).removeprefix(self.field.name).strip()}"


@dataclass(frozen=True, slots=True)
class FieldRemoved:
    path: Path
    field: Field

    def describe(self) -> str:
        return f"{print_path(self.path)} removed"


@dataclass(frozen=True, slots=True)
class FieldRenamed:
    """`path` is the old one. Without an alias, a renamed field is one removed and another one added."""

    path: Path
    old: str
    new: str

    def describe(self) -> str:
        return f'{print_path(self.path)} renamed to "{self.new}"'


@dataclass(frozen=True, slots=True)
class FieldMoved:
    """`index` is the field's position in the new record."""

    path: Path
    index: int

    def describe(self) -> str:
        return f"{print_path(self.path)} moved to position {self.index + 1}"


@dataclass(frozen=True, slots=True)
class TypeWidened:
    """Every value of the old type is a value of the new one."""

    path: Path
    old: Type
    new: Type

    def describe(self) -> str:
        return f"{print_path(self.path)} widened from {print_type(self.old)} to {print_type(self.new)}"


@dataclass(frozen=True, slots=True)
class TypeNarrowed:
    """Every value of the new type is a value of the old one, but not the other way round."""

    path: Path
    old: Type
    new: Type

    def describe(self) -> str:
        return f"{print_path(self.path)} narrowed from {print_type(self.old)} to {print_type(self.new)}"


@dataclass(frozen=True, slots=True)
class TypeChanged:
    """Each type has values that the other one does not have."""

    path: Path
    old: Type
    new: Type

    def describe(self) -> str:
        return f"{print_path(self.path)} changed from {print_type(self.old)} to {print_type(self.new)}"


@dataclass(frozen=True, slots=True)
class NullabilityRelaxed:
    path: Path

    def describe(self) -> str:
        return f"{print_path(self.path)} became nullable"


@dataclass(frozen=True, slots=True)
class NullabilityTightened:
    path: Path

    def describe(self) -> str:
        return f"{print_path(self.path)} became not null"


@dataclass(frozen=True, slots=True)
class EnumSymbolsAdded:
    path: Path
    symbols: tuple[str, ...]

    def describe(self) -> str:
        return f"{print_path(self.path)} gained the symbols {', '.join(self.symbols)}"


@dataclass(frozen=True, slots=True)
class EnumSymbolsRemoved:
    """`default` is the symbol of the new enum that stands for unknown ones."""

    path: Path
    symbols: tuple[str, ...]
    default: str | None

    def describe(self) -> str:
        return f"{print_path(self.path)} lost the symbols {', '.join(self.symbols)}"


@dataclass(frozen=True, slots=True)
class EnumReordered:
    """`symbols` are all symbols in the new order."""

    path: Path
    symbols: tuple[str, ...]

    def describe(self) -> str:
        return f"{print_path(self.path)} lists its symbols in another order"


@dataclass(frozen=True, slots=True)
class EnumDefaultChanged:
    """The symbol that stands for unknown ones is another."""

    path: Path
    old: str | None
    new: str | None

    def describe(self) -> str:
        return f"{print_path(self.path)} reads unknown symbols as {self.new or 'an error'}"


@dataclass(frozen=True, slots=True)
class TypeRenamed:
    """A record or enum has another full name in its original format."""

    path: Path
    old: str | None
    new: str | None

    def describe(self) -> str:
        return f"{print_path(self.path)} is now of the type {self.new or 'without a name'}"


@dataclass(frozen=True, slots=True)
class DocChanged:
    """The doc of a field or of a type is new, gone or different."""

    path: Path
    of: DocumentedPart
    old: str | None
    new: str | None

    def describe(self) -> str:
        what = "documented" if self.old is None else "no longer documented" if self.new is None else "documented anew"
        return f"{self.of} {print_path(self.path)} is {what}"


Change = (
    FieldAdded | FieldRemoved | FieldRenamed | FieldMoved | TypeWidened | TypeNarrowed | TypeChanged
    | NullabilityRelaxed | NullabilityTightened | EnumSymbolsAdded | EnumSymbolsRemoved | EnumReordered
    | EnumDefaultChanged | TypeRenamed | DocChanged
)  # fmt: skip
