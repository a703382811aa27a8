"""How often a law is tried: HEADGATE_LAWS=20 tries each with twenty times as many examples."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("HEADGATE_LAWS", "1"))


def law(examples: int) -> settings:
    return settings(
        max_examples=examples * TIMES, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
