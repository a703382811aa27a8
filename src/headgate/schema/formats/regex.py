"""The patterns of FORMAT REGEX: which groups they have, and how they are written for Java.

Named groups become plain ones, because Java's names cannot have an underscore; columns are known by number. Python's
compiler checks the pattern, with constructs that only Java has replaced by similar ones. Constructs that only Python
has are refused.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field

from headgate.schema.errors import MalformedPattern

_OPENING = re.compile(
    r"\(\?(?:P?<(?P<name>[A-Za-z_]\w*)>|(?P<plain>:|>|=|<=)|(?P<never>!|<!)|(?P<flags>[a-zA-Z-]+)(?P<end>[:)]))", re.A
)
_REPEATED = re.compile(r"\{(?P<least>\d+)(,\d*)?\}")
_OPTIONAL = re.compile(r"\?|\*|\{0+[,}]")
_ONLY_JAVA = re.compile(r"[pP](?:\{[^}]*\}|.)|N\{[^}]*\}|x\{[0-9a-fA-F]+\}|c.|[hHRXVe]", re.S)
_NO_WIDTH_IN_JAVA = re.compile(r"[zG]")
_FLAGS = frozenset("idmsuU-")

# Appended once per optional group, to tell a group that matched the empty text from one that did not take part: one of
# the two sub-groups captures a neighbouring character only if the group matched. It must stand at the end of the
# pattern, because Java does not reset the captures of a look-around when it backtracks.
_NEIGHBOUR = r"(?:(?=([\s\S]))|(?<=([\s\S])))"


@dataclass(slots=True)
class _Group:
    """A group of the pattern. ``number`` is None if it captures nothing."""

    number: int | None
    outer: _Group | None
    optional: bool = False

    @property
    def always_matches(self) -> bool:
        return not self.optional and (self.outer is None or self.outer.always_matches)


@dataclass(frozen=True, slots=True)
class _BackReference:
    """A reference to the text that a group has matched, by number or by name."""

    to: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """`java` has exactly the groups of the pattern. `names` has None for a group without a name."""

    java: str
    names: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class GroupPattern:
    """A pattern that shows which groups took part in a match. All tuples have one item per group.

    `groups` are the numbers of the groups in `java`. A group that does not always take part has two further groups,
    whose numbers are in `marks`: one of them captures a character if the group took part. An empty text has no
    character to capture. For it, `for_empty_text` is a pattern that matches only if the group took part.
    """

    java: str
    groups: tuple[int, ...]
    marks: tuple[tuple[int, int] | None, ...]
    for_empty_text: tuple[str | None, ...]


def read_pattern(text: str) -> Pattern:
    """Raises MalformedPattern."""
    scan = _Scan(text)
    scan.run()
    _check(scan)
    return Pattern(scan.java(), tuple(scan.names))


def group_pattern(java: str) -> GroupPattern:
    """Put an empty group behind each optional group, and refer to it at the end of the pattern."""
    scan = _Scan(java)
    scan.run()
    groups, empty, made = [0] * len(scan.captures), [0] * len(scan.captures), 0
    for part in scan.parts:
        if not isinstance(part, tuple) or part[0].number is None:
            continue
        group, is_open = part
        if is_open or not group.always_matches:
            made += 1
            (groups if is_open else empty)[part[0].number - 1] = made
    whole = f"(?>{scan.java(groups, with_marks=True)})"
    ends, marks = [], []
    for number in empty:
        if number:
            ends.append(f"(?:\\{number}{_NEIGHBOUR}|)")
        marks.append((made + 2 * len(ends) - 1, made + 2 * len(ends)) if number else None)
    for_empty_text = tuple(f"^{whole}\\{number}" if number else None for number in empty)
    return GroupPattern(whole + "".join(ends), tuple(groups), tuple(marks), for_empty_text)


@dataclass(slots=True)
class _Scan:
    """Reads a pattern. `parts` are texts, the beginnings and ends of groups, and back-references; `check` is the
    same pattern for Python's compiler."""

    text: str
    at: int = 0
    parts: list[str | tuple[_Group, bool] | _BackReference] = field(default_factory=list)
    check: list[str] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    captures: list[_Group] = field(default_factory=list)
    open: list[_Group] = field(default_factory=list)
    whole: _Group = field(default_factory=lambda: _Group(None, None))

    def run(self) -> None:
        while self.at < len(self.text):
            self._one()
        if self.open:
            raise MalformedPattern("a group is not closed")

    def java(self, numbers: list[int] | None = None, *, with_marks: bool = False) -> str:
        """The pattern for Java. ``numbers`` are the new numbers of the groups, if there are others between them."""
        made = []
        for part in self.parts:
            match part:
                case str():
                    made.append(part)
                case _BackReference(to):
                    made.append(self._back(to, numbers))
                case (group, is_open):
                    wrap = with_marks and not group.always_matches and group.number is not None
                    if is_open:
                        made.append(("(?:(" if wrap else "(") if group.number is not None else "")
                    else:
                        made.append(")())" if wrap else ")")
        return "".join(made)

    def _back(self, to: str, numbers: list[int] | None) -> str:
        """A reference by number. Digits that lead beyond the last group are ordinary characters, as in Java."""
        if not to.isdecimal():
            number, rest = self.names.index(to) + 1, ""
        else:
            number, rest = int(to), ""
            while number > len(self.captures) and number >= 10:
                number, rest = number // 10, str(number % 10) + rest
        return f"\\{number if numbers is None else numbers[number - 1]}" + (f"(?:{rest})" if rest else "")

    def _inner(self) -> _Group:
        return self.open[-1] if self.open else self.whole

    def _take(self, text: str, check: str | None = None) -> None:
        self.parts.append(text)
        self.check.append(text if check is None else check)
        self.at += len(text)

    def _one(self) -> None:
        match self.text[self.at]:
            case "\\":
                self._escape()
            case "[":
                self._class()
            case "(":
                self._group()
            case ")":
                self._close()
            case "{":
                found = _REPEATED.match(self.text, self.at)
                if found is None:
                    raise MalformedPattern("a brace is no repetition: write it as \\{")
                self._take(found[0])
            case "|":
                self._inner().optional = True
                self._take("|")
            case other:
                self._take(other)

    def _escape(self) -> None:
        """An escape. Those that only Java has are replaced for Python's check by similar ones."""
        rest = self.text[self.at + 1 :]
        if not rest:
            raise MalformedPattern("it ends within an escape")
        if rest[0] == "Q":
            end = rest.find("\\E")
            quoted = rest[1:] if end < 0 else rest[1:end]
            self._take("\\" + (rest if end < 0 else rest[: end + 2]), re.escape(quoted))
            if end < 0:
                self.parts.append("\\E")
        elif found := re.match(r"[1-9]\d?|k<(\w+)>", rest):
            self._refer(found[1] or found[0], len(found[0]) + 1)
        elif found := _ONLY_JAVA.match(rest):
            self._take("\\" + found[0], r"\w")
        elif _NO_WIDTH_IN_JAVA.match(rest):
            self._take("\\" + rest[0], "(?:)")
        elif rest[0] == "U":
            raise MalformedPattern("\\U is no escape")
        else:
            self._take("\\" + rest[0])

    def _refer(self, to: str, length: int) -> None:
        if not to.isdecimal() and to not in self.names:
            raise MalformedPattern(f'there is no group "{to}" before the reference to it')
        self.parts.append(_BackReference(to))
        self.check.append(f"\\{to}" if to.isdecimal() else f"\\{self.names.index(to) + 1}")
        self.at += length

    def _class(self) -> None:
        """A character class as a whole. Only Java has nested classes and `&&`."""
        start, depth, at = self.at, 0, self.at
        while True:
            if at >= len(self.text):
                raise MalformedPattern("a character class is not closed")
            if self.text[at] == "\\":
                at += 2
                continue
            if self.text[at] == "[":
                depth += 1
                at += 2 if self.text[at + 1 : at + 2] == "^" else 1
                at += self.text[at : at + 1] == "]"  # as the first character, "]" is an ordinary one
                continue
            depth -= self.text[at] == "]"
            at += 1
            if not depth:
                break
        written = self.text[start:at]
        of_java = "[" in written[1:].replace("\\[", "") or "&&" in written
        plain = re.sub(r"\\(?:[pP](?:\{[^}]*\}|.)|x\{[0-9a-fA-F]+\}|[hHVe])", r"\\w", written)
        self._take(written, "[a]" if of_java else plain)

    def _group(self) -> None:
        """The beginning of a group, or flags, which open none."""
        if not self.text.startswith("(?", self.at):
            self._open(_Group(len(self.captures) + 1, self._inner()), None, "(", "(")
            return
        if again := re.compile(r"\(\?P=(\w+)\)").match(self.text, self.at):
            self._refer(again[1], len(again[0]))
            return
        found = _OPENING.match(self.text, self.at)
        if found is None:
            raise MalformedPattern("a group begins with what is no kind of group")
        if found["flags"] and not _FLAGS.issuperset(found["flags"]):
            raise MalformedPattern(f"the flags {found['flags']} are not all among i, d, m, s, u and U")
        if found["end"] == ")":
            self._take(found[0], "(?:)")
        elif found["name"]:
            self._open(_Group(len(self.captures) + 1, self._inner()), found["name"], found[0], "(")
        else:
            check = {"<=": "(?=", "<!": "(?!"}.get(
                found["plain"] or found["never"] or "", "(?:" if found["flags"] else found[0]
            )
            self.parts.append(found[0])
            self._open(_Group(None, self._inner(), bool(found["never"])), None, found[0], check)

    def _open(self, group: _Group, name: str | None, written: str, check: str) -> None:
        if group.number is not None:
            self.captures.append(group)
            self.names.append(name)
        self.open.append(group)
        self.parts.append((group, True))
        self.check.append(check)
        self.at += len(written)

    def _close(self) -> None:
        """The end of a group. A quantifier behind it may make the group optional."""
        if not self.open:
            raise MalformedPattern("a group is closed that was not opened")
        group = self.open.pop()
        self.parts.append((group, False))
        self.check.append(")")
        self.at += 1
        if _OPTIONAL.match(self.text, self.at):
            group.optional = True


def _check(scan: _Scan) -> None:
    """Let Python's compiler check the pattern."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile("".join(scan.check))
    except (re.error, OverflowError, RecursionError) as wrong:
        reason = wrong.msg if isinstance(wrong, re.error) else "it is too large"
        raise MalformedPattern(reason) from None
