"""The kinds of difference, in the words of Confluent's registry, and which of them are compatible."""

from __future__ import annotations

from dataclasses import dataclass

COMPATIBLE = frozenset(
    (
        *("ID_CHANGED", "DESCRIPTION_CHANGED", "TITLE_CHANGED", "DEFAULT_CHANGED", "SCHEMA_REMOVED"),
        "TYPE_EXTENDED",
        *("MAX_LENGTH_INCREASED", "MAX_LENGTH_REMOVED", "MIN_LENGTH_DECREASED", "MIN_LENGTH_REMOVED"),
        "PATTERN_REMOVED",
        *("MAXIMUM_INCREASED", "MAXIMUM_REMOVED", "MINIMUM_DECREASED", "MINIMUM_REMOVED"),
        *("EXCLUSIVE_MAXIMUM_INCREASED", "EXCLUSIVE_MAXIMUM_REMOVED", "EXCLUSIVE_MINIMUM_DECREASED"),
        "EXCLUSIVE_MINIMUM_REMOVED",
        *("MULTIPLE_OF_REDUCED", "MULTIPLE_OF_REMOVED"),
        *("REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED", "REQUIRED_ATTRIBUTE_REMOVED"),
        *("DEPENDENCY_ARRAY_NARROWED", "DEPENDENCY_ARRAY_REMOVED", "DEPENDENCY_SCHEMA_REMOVED"),
        *("MAX_PROPERTIES_INCREASED", "MAX_PROPERTIES_REMOVED", "MIN_PROPERTIES_DECREASED"),
        "MIN_PROPERTIES_REMOVED",
        *("ADDITIONAL_PROPERTIES_ADDED", "ADDITIONAL_PROPERTIES_EXTENDED"),
        *("UNEVALUATED_PROPERTIES_ADDED", "UNEVALUATED_PROPERTIES_EXTENDED"),
        "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        *("MAX_ITEMS_INCREASED", "MAX_ITEMS_REMOVED", "MIN_ITEMS_DECREASED", "MIN_ITEMS_REMOVED"),
        *("MAX_CONTAINS_INCREASED", "MAX_CONTAINS_REMOVED", "MIN_CONTAINS_DECREASED"),
        *("MIN_CONTAINS_REMOVED", "UNIQUE_ITEMS_REMOVED"),
        *("ADDITIONAL_ITEMS_ADDED", "ADDITIONAL_ITEMS_EXTENDED", "UNEVALUATED_ITEMS_ADDED"),
        "UNEVALUATED_ITEMS_EXTENDED",
        *("ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL"),
        *("ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL"),
        "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        *("ENUM_ARRAY_EXTENDED", "COMBINED_TYPE_EXTENDED", "PRODUCT_TYPE_NARROWED", "SUM_TYPE_EXTENDED"),
        "NOT_TYPE_NARROWED",
    )
)


@dataclass(frozen=True, slots=True)
class Difference:
    """``path`` is in the older schema (a property that was added: in the newer). ``detail`` names what changed."""

    path: tuple[str, ...]
    kind: str
    detail: str = ""

    @property
    def is_compatible(self) -> bool:
        return self.kind in COMPATIBLE

    @property
    def pointer(self) -> str:
        return "/" + "/".join(self.path)

    def below(self, *steps: str) -> Difference:
        """The same difference, seen from further out."""
        return Difference((*steps, *self.path), self.kind, self.detail)

    def message(self) -> str:
        """One line: ``maximum decreased at /properties/price/maximum: 10 to 5``."""
        words = self.kind.lower().replace("_", " ")
        return f"{words} at {self.pointer}" + (f": {self.detail}" if self.detail else "")


def changed(kind: str, *steps: str, detail: str = "") -> Difference:
    return Difference(steps, kind, detail)


def all_compatible(differences: list[Difference]) -> bool:
    return all(difference.is_compatible for difference in differences)


# Stands for the incompatibilities of a pair: where only the verdict counts, and where a pair is met inside itself.
REFUTED = Difference((), "REFUTED")
