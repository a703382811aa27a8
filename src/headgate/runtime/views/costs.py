"""What the batches of a view have cost: by its changes, and as a whole."""

from __future__ import annotations

# By its changes a batch must have been so much slower than as a whole before the next one is computed as a whole.
MARGIN = 1.5
SLOW = 5.0  # seconds of a batch by its changes after which the cost as a whole is measured, if it is not known
AGAIN = 20  # batches as a whole after which the changes are tried again, which may be fewer by then


class Costs:
    """Of the large batches: one of few rows is always computed by its changes, and costs little. Used by one thread at a time."""

    def __init__(self) -> None:
        self._whole: float | None = None  # seconds of the last batch of its kind
        self._changes: float | None = None
        self._batches = 0  # as a whole, since the changes were measured

    def took(self, seconds: float, *, anew: bool) -> None:
        if anew:
            self._whole = seconds
            self._batches += 1
        else:
            self._changes = seconds
            self._batches = 0

    def prefer_anew(self) -> bool:
        """Whether the next large batch is to be computed as a whole."""
        if self._changes is None or self._batches >= AGAIN:
            return False
        return self._changes > (SLOW if self._whole is None else MARGIN * self._whole)

    def told(self) -> str | None:
        """What was measured, as a sentence for the user; None if nothing can be compared yet."""
        if self._whole is None or self._changes is None:
            return None
        how = "computed anew" if self.prefer_anew() else "computed by their changes"
        return f"batches with many changes are {how}: the last took {self._changes:.1f} s by its changes, and {self._whole:.1f} s anew"
