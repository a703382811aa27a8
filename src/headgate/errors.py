"""The root of all of Headgate's errors, and how one is shown to a person.

One class per failure. Its fields hold what went wrong, its templates say it, and its docstring gives the cause. Where a hint
would only repeat the message, the docstring also gives the cure, for the documentation. A test or a client therefore never
has to parse a message:

    class UnknownColumn(SchemaError, code="SCH-0101"):
        \"\"\"A statement names a column that its relation does not have.\"\"\"

        column: str
        relation: str
        similar: tuple[str, ...] = ()
        MESSAGE = 'column "{column}" of {relation} does not exist'

Messages are lower case, one line, without a full stop; details and hints are whole sentences. "could not" means that
a retry may help, "cannot" that it never will. Values from records never appear in any of them. Every error pickles,
because errors travel between the processes of Spark.
"""

from __future__ import annotations

import dataclasses
import difflib
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, dataclass_transform


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of character offsets in the text of a statement or script."""

    start: int
    end: int

    def __deepcopy__(self, _memo: object) -> Span:
        return self  # as `Notes`: it is noted at the nodes of a query, which sqlglot copies


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
            # Tables of several lines stay in their columns.
            parts.append("detail: " + self.detail.replace("\n", "\n" + " " * len("detail: ")))
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)

    def as_json(self) -> dict[str, object]:
        """The fields that have a value, for the HTTP protocol and for logs."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


def joined(words: Sequence[object], last: str = "or") -> str:
    """``a, b or c``."""
    texts = [str(word) for word in words]
    return f" {last} ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


# What the words of a format specification do: first to each item, then to all of them.
_ITEM: Mapping[str, Callable[[Any], str]] = {
    "quoted": lambda name: f'"{name}"',
    "object": lambda named: f'{named[0]} "{named[1]}"',
    "upper": str.upper,
    "lower": str.lower,
    "a": lambda noun: f"an {noun}" if noun[0] in "aeiou" else f"a {noun}",
}
_JOIN: Mapping[str, Callable[[Sequence[str]], str]] = {
    "list": ", ".join,
    "or": joined,
    "and": lambda words: joined(words, "and"),
    "clauses": "; ".join,
    "lines": "\n".join,
    "path": " -> ".join,
}


class _Template(string.Formatter):
    """Formats a template with an error's attributes.

    ``{known:list}`` prints ``a, b``, ``{choices:or}`` ``a, b or c``, ``{sinks:quoted and}`` ``"a" and "b"``,
    ``{users:object list}`` pairs of kind and name, ``{kind:a}`` a noun with its article, ``{found:column|columns}``
    a number with its noun, ``{lines:lines}`` one line for each item, ``{subjects:path}`` ``a -> b``.
    """

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Look up a placeholder among the attributes of the error, which is the only positional argument."""
        return getattr(args[0], str(key))

    def format_field(self, value: Any, format_spec: str) -> str:
        """Format one value by the words of its format specification."""
        if "|" in format_spec:
            one, more = format_spec.split("|")
            return f"{value} {one if value == 1 else more}"
        *each, last = format_spec.split() or [""]
        if last in _ITEM:
            return _ITEM[last](value)
        if last not in _JOIN:
            return str(super().format_field(value, format_spec))
        items = [str(item) if not each else _ITEM[each[0]](item) for item in value]
        return _JOIN[last](items)

    def values(self, text: str, error: HeadgateError) -> list[Any]:
        """The values of all placeholders, to find out whether one of them is empty."""
        return [self.get_field(name, (error,), {})[0] for name in placeholders(text)]


def placeholders(text: str) -> list[str]:
    """The names in a template's braces, as they are written: ``candidates[0]``."""
    return [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]


def _unknown_words(text: str) -> list[str]:
    """Words of format specifications that no rule exists for. They would fail only when the error is shown."""
    specs = [spec for _, _, spec, _ in string.Formatter().parse(text) if spec and "|" not in spec]
    return [w for spec in specs for w in spec.split() if w.isalpha() and w not in {*_ITEM, *_JOIN}]


_TEMPLATE = _Template()


@dataclass_transform(eq_default=False)
class HeadgateError(Exception):
    """Base class of every error that a user can see.

    A subclass with a ``code`` is one failure; a subclass without is a family. Annotations become fields, as in a
    dataclass. Equality stays identity: two failures are two failures. The templates may name fields and properties.
    A subclass overrides ``message``, ``detail`` or ``hint`` only if its text depends on a condition.
    """

    code: ClassVar[str] = ""
    retryable: ClassVar[bool] = False  # Whether a retry can succeed without a change of the catalog.
    MESSAGE: ClassVar[str] = ""
    DETAIL: ClassVar[str | None] = None
    HINT: ClassVar[str | None] = None

    # Set by the code that knows the statement; not part of an error's identity.
    span: Span | None = None

    def __init_subclass__(cls, *, code: str = "") -> None:
        cls.code = code or cls.code
        dataclass(eq=False)(cls)
        known = {field.name for field in dataclasses.fields(cls)} | set(dir(cls))  # type: ignore[arg-type]
        for text in filter(None, (cls.MESSAGE, cls.DETAIL, cls.HINT)):
            if missing := {name.partition(".")[0].partition("[")[0] for name in placeholders(text)} - known:
                raise TypeError(f"{cls.__name__} has no field {joined(sorted(missing))}")
            if unknown := _unknown_words(text):
                raise TypeError(f"{cls.__name__} has an unknown format {joined(unknown)}")

    def message(self) -> str:
        return _TEMPLATE.vformat(self.MESSAGE, (self,), {})

    def detail(self) -> str | None:
        return self._sentence(self.DETAIL)

    def hint(self) -> str | None:
        """Names that are similar to the one that was not found, or the cure."""
        return did_you_mean(getattr(self, "similar", ())) or self._sentence(self.HINT)

    def _sentence(self, text: str | None) -> str | None:
        """The template filled in; None if a value in it is empty, because a sentence with a gap helps nobody."""
        if text is None or any(value in (None, "", ()) for value in _TEMPLATE.values(text, self)):
            return None
        return _TEMPLATE.vformat(text, (self,), {})

    def at(self, span: Span | None) -> Self:
        """The same error, pointing at a part of the statement. A span that is already set stays: inner code knows
        the place more exactly."""
        if self.span is None:
            self.span = span
        return self

    def diagnostic(self, source: str | None = None) -> Diagnostic:
        """The error as data; with the statement's text, a span becomes line, column and a caret."""
        position = locate(source, self.span) if source is not None and self.span is not None else (None, None, None)
        return Diagnostic(self.code, self.message(), self.detail(), self.hint(), *position)

    def __str__(self) -> str:
        return f"{self.code}: {self.message()}"

    def __reduce__(self) -> tuple[Any, ...]:
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        return _rebuild, (type(self), values, self.span)


def _rebuild(cls: type[HeadgateError], values: dict[str, Any], span: Span | None) -> HeadgateError:
    """Make the error again in another process. Exceptions pickle their `args` by default, which ours do not have."""
    made = cls(**values)
    made.span = span
    return made


class InternalError(HeadgateError, code="INT-0001"):
    """Headgate is in a state that no input should cause. This is a bug."""

    what: str
    MESSAGE = "internal error: {what}"
    HINT = "This is a bug in Headgate. Please report it with the statement that caused it."


class ErrorGroup(HeadgateError, code="INT-0002"):
    """A check found several errors. They are raised together, each with its own code in the detail.

    Cure: Look up the codes that the detail lists.
    """

    errors: tuple[HeadgateError, ...]
    MESSAGE = "{first} (and {more} more)"

    @property
    def first(self) -> str:
        return self.errors[0].message()

    @property
    def more(self) -> int:
        return len(self.errors) - 1

    def detail(self) -> str:
        return "\n".join(str(error) for error in self.errors)

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
    """The candidates that are most similar to ``name``, the most similar one first."""
    by_folded: dict[str, str] = {}
    for candidate in candidates:
        by_folded.setdefault(candidate.casefold(), candidate)
    close = difflib.get_close_matches(name.casefold(), by_folded, n=most, cutoff=0.6)
    return tuple(by_folded[folded] for folded in close)


def if_few(names: Iterable[str], most: int = 10) -> tuple[str, ...]:
    """The names, each once, or none if they are too many to list in a hint."""
    known = tuple(dict.fromkeys(names))
    return known if len(known) <= most else ()


def did_you_mean(similar: tuple[str, ...]) -> str | None:
    """The hint that lists similar names; None if there are none."""
    if not similar:
        return None
    names = [f'"{name}"' for name in similar]
    return f"Did you mean {joined(names)}?"


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
    return (line, column, f"{gutter}{text}\n{' ' * len(gutter)}{pad}{'^' * min(width, max(1, len(text) - offset))}")


def _window(text: str, offset: int, width: int = 160) -> tuple[str, int]:
    """Cut a long line to a window around the offset, so that an error never prints a megabyte."""
    if len(text) <= width:
        return text, offset
    left = max(0, min(offset - width // 2, len(text) - width))
    return text[left : left + width], offset - left
