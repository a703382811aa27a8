"""The layout that CONTRIBUTING.md shows is the one of the source tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "headgate"


def house() -> str:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    return text.partition("## The house")[2].partition("\n## ")[0]


def test_every_path_of_the_house_exists() -> None:
    paths = re.findall(r"`([\w/]+(?:/|\.(?:py|md)))`", house())
    assert len(paths) > 50
    assert [path for path in paths if not (PACKAGE / path).exists() and not (ROOT / path).exists()] == []


def test_every_package_is_in_the_house() -> None:
    packages = [path.parent.name for path in PACKAGE.glob("*/__init__.py")]
    assert [name for name in packages if f"| `{name}/` |" not in house()] == []
