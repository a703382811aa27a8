"""Whatever comments, docstrings and the pages about the code name in backticks exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "headgate"
PAGES = ("docs/life_of_a_statement.md", "docs/life_of_a_batch.md", "CONTRIBUTING.md")
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

# Names of other programs, and those of examples, which stand nowhere in the code.
FOREIGN = {
    "SchemaCompatibility", "Schema.toString", "meta_path", "parallel_bulk", "preexec_fn", "python3", "from_csv", "e2e", "soak", "long",
    "to_x", "from_x", "f1", "f2", "v0", "a_b", "a_b2", "orders", "orders_sink", "dear",
    "in_own_jvm", "MAX_LENGTH", "headgate.toml",
}  # fmt: skip


@dataclass(slots=True)
class Names:
    """The names of the code: all of them, those of each class, the words in its texts, and what is written about it."""

    known: set[str] = field(default_factory=set)
    classes: dict[str, set[str]] = field(default_factory=dict)
    bases: dict[str, set[str]] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)
    prose: list[tuple[str, str]] = field(default_factory=list)

    def read(self, path: Path) -> None:
        text, where = path.read_text(), str(path.relative_to(ROOT))
        self.known |= {*path.relative_to(ROOT).with_suffix("").parts}
        tree = ast.parse(text)
        docs = {id(doc): doc for node in ast.walk(tree) if (doc := _doc(node)) is not None}
        self.prose += [(f"{where}:{doc.lineno}", str(doc.value)) for doc in docs.values()]
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                self.words |= set(re.findall(r"\w+", node.value))
            else:
                self.known |= _names(node)
            if isinstance(node, ast.ClassDef):
                self.classes.setdefault(node.name, set()).update(_members(node))
                self.bases.setdefault(node.name, set()).update(_last(base) for base in node.bases)
        for number, line in enumerate(text.splitlines(), start=1):
            if (comment := re.search(r"(^|\s)# .*", line)) is not None:
                self.prose.append((f"{where}:{number}", comment.group()))

    def missing(self, text: str) -> Iterator[str]:
        """The code spans of a text whose names nothing has."""
        for span in re.findall(r"`([^`\n]+)`", text.replace("``", "`")):
            if re.fullmatch(r"[A-Za-z_](\.?\w)*(\(\))?", span) and not self._exists(span.removesuffix("()")):
                yield span

    def _exists(self, name: str) -> bool:
        if name in FOREIGN:
            return True
        if name.endswith((".py", ".txt", ".toml")):
            return any(ROOT.glob(name)) or any(PACKAGE.rglob(name))
        parts = name.split(".")
        if any(part not in self.known | self.words | FOREIGN for part in parts):
            return False
        return all(self._has(owner, member) for owner, member in pairwise(parts))

    def _has(self, owner: str, member: str) -> bool:
        """Whether a class has a member. Classes of others may have any."""
        if owner not in self.classes:
            return True
        return member in self.classes[owner] or any(self._has(base, member) for base in self.bases[owner])


def _doc(node: ast.AST) -> ast.Constant | None:
    """The text of an expression that is nothing but a text: a docstring, or what is written below a variable."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value
    return None


def _names(node: ast.AST) -> set[str]:
    """The names that a node of the code brings."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
            return {name}
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return {name}
        case ast.alias():
            return {*node.name.split("."), *([node.asname] if node.asname else [])}
        case ast.ImportFrom(module=str(module)):
            return set(module.split("."))
        case ast.Constant():
            return {str(node.value)}
        case _:
            return set()


def _last(base: ast.expr) -> str:
    """The name of a base class, without the module before it and the types behind it."""
    whole = base.value if isinstance(base, ast.Subscript) else base
    return whole.attr if isinstance(whole, ast.Attribute) else whole.id if isinstance(whole, ast.Name) else ""


def _members(class_: ast.ClassDef) -> set[str]:
    """The names in a class: methods, fields, and what is set on ``self``."""
    defined = {node.name for node in class_.body if isinstance(node, DEFINITIONS)}
    fields = {node.id for node in ast.walk(class_) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    attributes = {node.attr for node in ast.walk(class_) if isinstance(node, ast.Attribute)}
    return defined | fields | attributes


@cache
def names() -> Names:
    found = Names()
    for path in PACKAGE.rglob("*.py"):
        found.read(path)
    return found


def test_every_name_in_comments_and_docstrings_exists() -> None:
    prose = ((place, text) for place, text in names().prose if place.startswith("src/"))
    assert [(place, span) for place, text in prose for span in names().missing(text)] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_name_of_a_page_exists(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    assert "`" in text
    assert list(names().missing(text)) == []


@pytest.mark.parametrize("span", ["no_such_name", "Names.no_such_member", "no_such_file.py"])
def test_a_name_that_is_nowhere_is_found(span: str) -> None:
    """The texts of this test are words of the code, so these are put together here."""
    written = span.replace("no_such", "no_" + "suc" + "h_at_all")
    assert list(names().missing(f"see `{written}`")) == [written]
