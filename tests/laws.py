"""How often a law is tried: little in every run, HEADGATE_EXAMPLES times as much when asked."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("HEADGATE_EXAMPLES", "1"))


def examples(count: int) -> settings:
    return settings(max_examples=count * TIMES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
