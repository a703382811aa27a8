"""Times as people write them: `60s`, `500ms`, `2m`, `90`."""

from __future__ import annotations

import re

from headgate.testing.errors import MalformedSpec

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def read_duration(written: str) -> float:
    """Seconds. Raises MalformedSpec."""
    found = _DURATION.fullmatch(written.strip())
    if found is None or float(found[1]) == 0:
        raise MalformedSpec(f'"{written}" is no time', "Write it as 60s, 500ms or 2m.")
    return float(found[1]) * _SECONDS[found[2] or "s"]
