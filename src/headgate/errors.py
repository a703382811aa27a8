"""The root of all of Headgate's errors, and how one is shown to a person.

One class per failure. A class is a dataclass whose fields are what is needed to say what went wrong; it has a
stable ``code`` and builds its text from the fields, so that a test or a client never has to parse a message:

    @error
    class UnknownColumn(SchemaError):
        code = "SCH-0101"
        column: str
        relation: str
        similar: tuple[str, ...] = ()

        def message(self) -> str:
            return f'column "{self.column}" of {self.relation} does not exist'

Messages are lower case, one line, without a full stop; ``detail`` and ``hint`` are whole sentences. "could not"
means that a retry may help, "cannot" that it never will. Values from records never appear in any of them.
Every error pickles, because errors cross process borders in Spark.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, dataclass_transform


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of character offsets in the text of a statement or script."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error as data: what the shell prints and what the HTTP protocol carries."""

    code: str
    message: str
    detail: str | None = None
    hint: str | None = None
    line: int | None = None
    column: int | None = None
    excerpt: str | None = None

    def render(self) -> str:
        """The error as a person reads it, over several lines."""
        parts = [f"error {self.code}: {self.message}"]
        if self.excerpt is not None:
            parts.append(self.excerpt)
        if self.detail:
            parts.append(f"detail: {self.detail}")
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)

    def as_json(self) -> dict[str, object]:
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


class HeadgateError(Exception):
    """Every error that a user can meet. Subclasses give ``code`` and ``message()``."""

    code: ClassVar[str] = ""
    retryable: ClassVar[bool] = False  # Whether a retry can succeed without a change of the catalog.

    # Set by whoever knows the statement; not part of an error's identity.
    span: Span | None = None

    def message(self) -> str:
        raise NotImplementedError

    def detail(self) -> str | None:
        return None

    def hint(self) -> str | None:
        similar: tuple[str, ...] = getattr(self, "similar", ())
        return did_you_mean(similar)

    def at(self, span: Span | None) -> HeadgateError:
        """The same error, pointing at a place in the statement; an inner place that is already known stays."""
        if self.span is None:
            self.span = span
        return self

    def diagnostic(self, source: str | None = None) -> Diagnostic:
        """The error as data; with the statement's text, a place becomes line, column and a caret."""
        place = locate(source, self.span) if source is not None and self.span is not None else None
        return Diagnostic(
            self.code, self.message(), self.detail(), self.hint(), *(place or (None, None, None))
        )

    def __str__(self) -> str:
        return f"{self.code}: {self.message()}"

    def __reduce__(self) -> tuple[Any, ...]:
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        return _rebuild, (type(self), values, self.span)


def _rebuild(cls: type[HeadgateError], values: dict[str, Any], span: Span | None) -> HeadgateError:
    made = cls(**values)
    made.span = span
    return made


AnyError = TypeVar("AnyError", bound=HeadgateError)


@dataclass_transform(eq_default=False)
def error(cls: type[AnyError]) -> type[AnyError]:
    """Make an error class a dataclass. Equality stays identity: two failures are two failures."""
    return dataclass(eq=False)(cls)


@error
class InternalError(HeadgateError):
    """A bug in Headgate: something that no input may cause."""

    code = "INT-0001"
    what: str

    def message(self) -> str:
        return f"internal error: {self.what}"

    def hint(self) -> str:
        return "This is a bug in Headgate. Please report it with the statement that caused it."


@error
class ErrorGroup(HeadgateError):
    """All findings of one check, raised once. Its code is that of the first."""

    code = "INT-0002"
    errors: tuple[HeadgateError, ...]

    def message(self) -> str:
        return f"{self.errors[0].message()} (and {len(self.errors) - 1} more)"

    def detail(self) -> str:
        return "\n".join(f"{e.code}: {e.message()}" for e in self.errors)

    def hint(self) -> str | None:
        return self.errors[0].hint()


def raise_all(errors: Iterable[HeadgateError]) -> None:
    """Raise what a check collected: nothing, the one error itself, or all of them together."""
    found = tuple(errors)
    if len(found) == 1:
        raise found[0]
    if found:
        raise ErrorGroup(found)


def similar_names(name: str, candidates: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """The candidates that a person who wrote ``name`` may have meant, best first."""
    by_folded: dict[str, str] = {}
    for candidate in candidates:
        by_folded.setdefault(candidate.casefold(), candidate)
    close = difflib.get_close_matches(name.casefold(), by_folded, n=most, cutoff=0.6)
    return tuple(by_folded[folded] for folded in close)


def did_you_mean(similar: tuple[str, ...]) -> str | None:
    if not similar:
        return None
    quoted = [f'"{name}"' for name in similar]
    names = quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
    return f"Did you mean {names}?"


def locate(source: str, span: Span) -> tuple[int, int, str]:
    """Line and column (from 1) of a span's start, and its line drawn with carets under the span."""
    start = min(span.start, len(source))
    line_start = source.rfind("\n", 0, start) + 1
    line_end = source.find("\n", start)
    text = source[line_start : line_end if line_end >= 0 else len(source)]
    line, column = source.count("\n", 0, start) + 1, start - line_start + 1
    width = max(1, min(span.end, line_start + len(text)) - start)
    text, offset = _window(text, column - 1)
    gutter = f"{line} | "
    pad = "".join("\t" if c == "\t" else " " for c in text[:offset])
    return (
        line,
        column,
        f"{gutter}{text}\n{' ' * len(gutter)}{pad}{'^' * min(width, max(1, len(text) - offset))}",
    )


def _window(text: str, offset: int, width: int = 160) -> tuple[str, int]:
    """A long line is cut to a window around the offset, so that an error never prints a megabyte."""
    if len(text) <= width:
        return text, offset
    left = max(0, min(offset - width // 2, len(text) - width))
    return text[left : left + width], offset - left
