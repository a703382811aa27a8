"""Which way a large batch of a view is computed, by what batches have cost."""

from __future__ import annotations

import pytest

from headgate.runtime.views.costs import AGAIN, SLOW, Costs

pytestmark = pytest.mark.unit


def test_batches_are_computed_anew_while_that_was_measured_to_cost_less() -> None:
    costs = Costs()
    costs.took(2.0, anew=True)  # the first batch
    assert not costs.prefer_anew()
    assert costs.told() is None
    costs.took(2.9, anew=False)
    assert not costs.prefer_anew()
    assert costs.told() == (
        "batches with many changes are computed by their changes: the last took 2.9 s by its changes, and 2.0 s anew"
    )
    costs.took(9.0, anew=False)
    for _ in range(AGAIN):
        assert costs.prefer_anew()
        assert "are computed anew: the last took 9.0 s by its changes" in (costs.told() or "")
        costs.took(2.5, anew=True)
    assert not costs.prefer_anew()
    costs.took(1.0, anew=False)
    assert not costs.prefer_anew()


def test_the_cost_as_a_whole_is_measured_where_it_is_not_known_and_changes_are_slow() -> None:
    costs = Costs()
    costs.took(SLOW - 1, anew=False)
    assert not costs.prefer_anew()
    costs.took(SLOW + 1, anew=False)
    assert costs.prefer_anew()
    costs.took(SLOW + 2, anew=True)
    assert not costs.prefer_anew()
