"""Lines of text with their indentation, and the comments of each declaration put back where they are read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from google.protobuf.descriptor_pb2 import FileDescriptorProto, SourceCodeInfo

from headgate.schema.formats.proto_text.cursor import Path

Item = tuple[Path, Callable[[], None]]


class Writer:
    def __init__(self, file: FileDescriptorProto) -> None:
        self.lines: list[str] = []
        self._indent = 0
        self._locations: dict[Path, list[SourceCodeInfo.Location]] = {}
        for location in file.source_code_info.location:
            self._locations.setdefault(tuple(location.path), []).append(location)

    def line(self, text: str) -> None:
        self.lines.append("  " * self._indent + text if text else "")

    def blank(self) -> None:
        """One empty line, but not after another or at the start of a block."""
        if self.lines and self.lines[-1] and not self.lines[-1].endswith("{"):
            self.lines.append("")

    def declare(self, path: Path, text: str, nth: int = 0) -> None:
        """A declaration with its comments, which are those of the `nth` statement that has this path."""
        if self.lines and self.lines[-1].strip() == "}":
            self.blank()
        locations = self._locations.get(path, [])
        comments = locations[nth] if nth < len(locations) else SourceCodeInfo.Location()
        for detached in comments.leading_detached_comments:
            if self.lines and self.lines[-1]:  # else it would trail what is above
                self.lines.append("")
            self._comment(detached)
            self.lines.append("")
        if comments.leading_comments:
            self._comment(comments.leading_comments)
        self.line(text)
        self._trail(comments.trailing_comments)

    @contextmanager
    def block(self, path: Path, head: str, nth: int = 0) -> Iterator[None]:
        self.blank()
        self.declare(path, f"{head} {{", nth)
        with self.indented():
            yield
        if not self.lines[-1] and self.lines[-2].endswith("{"):
            self.lines.pop()
        self.line("}")

    @contextmanager
    def indented(self) -> Iterator[None]:
        self._indent += 1
        yield
        self._indent -= 1

    def in_order(self, items: Iterable[Item]) -> Iterator[Callable[[], None]]:
        """The items in the order in which their author wrote them, if that is known of all; else as they come."""
        found = list(items)
        spans = [self._locations.get(path) for path, _ in found]
        if all(spans):
            keyed = zip((list(span[0].span) for span in spans if span), found, strict=True)
            found = [item for _, item in sorted(keyed, key=lambda pair: pair[0][:2])]
        return (emit for _, emit in found)

    def statements(self, path: Path, keys: Sequence[object]) -> list[tuple[int, list[int]]]:
        """The elements below `path` as statements: which one it is, and the indexes of adjoining elements that it
        can hold, because their author wrote them together and their keys are equal."""
        starts = [tuple(found.span[:2]) for found in self._locations.get(path, [])]
        owner = [sum(start <= self._start((*path, index)) for start in starts) for index in range(len(keys))]
        groups = groupby(range(len(keys)), key=lambda index: (owner[index], keys[index]))
        return [(max(number - 1, 0), list(indexes)) for (number, _), indexes in groups]

    def _start(self, path: Path) -> tuple[int, ...]:
        locations = self._locations.get(path)
        return tuple(locations[0].span[:2]) if locations else ()

    def _trail(self, comment: str) -> None:
        if not comment:
            return
        if not comment.endswith("\n") and _fits_block(comment):
            self.lines[-1] += f" /*{self._margin(comment)}*/"
        elif comment.count("\n") <= 1 and not self.lines[-1].endswith("*/"):
            self.lines[-1] += " //" + comment.removesuffix("\n")
        else:
            self._comment(comment)
            self.lines.append("")

    def _comment(self, comment: str) -> None:
        if not comment.endswith("\n") and _fits_block(comment):
            self.line(f"/*{self._margin(comment)}*/")
        else:
            for line in comment.removesuffix("\n").split("\n"):
                self.line(f"//{line}")

    def _margin(self, comment: str) -> str:
        return comment.replace("\n", "\n" + "  " * self._indent + " *")


def _fits_block(comment: str) -> bool:
    return "*/" not in comment + "*" and "/*" not in comment + "*" and not comment.startswith("/")
