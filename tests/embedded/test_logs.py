from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.embedded.logs import Log, last_lines

pytestmark = pytest.mark.unit


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=40), max_size=30))
def test_a_log_keeps_the_end_of_what_was_written_and_never_grows_beyond_its_bound(parts: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.log"
        log = Log(path, largest=100, kept=2)
        for part in parts:
            log.write(part)
        log.close()
        kept = [
            file for file in (path.with_name("x.log.2"), path.with_name("x.log.1"), path) if file.exists()
        ]
        assert b"".join(parts).endswith(b"".join(file.read_bytes() for file in kept))
        assert path.read_bytes().endswith(b"".join(parts[-1:]))
        assert sum(file.stat().st_size for file in Path(folder).iterdir()) <= 300


def test_the_last_lines_are_the_end_without_empty_ones_and_cut_to_a_readable_length(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("\n".join(f"line {number}\n" for number in range(50)) + "y" * 1000)
    assert last_lines(path, most=3) == ("line 48", "line 49", "y" * 240)


def test_a_log_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "none") == ()
