"""The pages about the code name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "headgate"
PAGES = ("life_of_a_statement.md", "life_of_a_batch.md")


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page: str) -> None:
    """A path is below the package. A bare name is that of any file, because a page may have named its folder before."""
    named = re.findall(r"`([a-z_/0-9]+\.py)`", (ROOT / "docs" / page).read_text())
    assert named
    names = {path.name for path in PACKAGE.rglob("*.py")}
    missing = [name for name in named if not ((PACKAGE / name).exists() or name in names)]
    assert missing == []
