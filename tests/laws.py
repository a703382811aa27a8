"""How often a law is tried: little in every run, HEADGATE_EXAMPLES times as much when asked."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("HEADGATE_EXAMPLES", "1"))


def examples(count: int) -> settings:
    """So many examples when HEADGATE_EXAMPLES is 2; half of them in an ordinary run, which must be quick."""
    return settings(
        max_examples=max(5, count * TIMES // 2), deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
