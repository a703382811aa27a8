"""Dates and times in ISO form, to numbers of units since the epoch or midnight, and back. Exact to the nanosecond."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})?")
_TIME = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_date(text: str) -> int:
    """Days since the epoch. Raises ValueError."""
    return (date.fromisoformat(text) - _EPOCH.date()).days


def write_date(days: int) -> str:
    """Raises OverflowError beyond the years 1 to 9999."""
    return (_EPOCH.date() + timedelta(days=days)).isoformat()


def read_time(text: str, per_second: int) -> int:
    """Units since midnight. Raises ValueError, also where the text is finer than the unit."""
    found = _TIME.fullmatch(text)
    if found is None or int(found[1]) > 23 or int(found[2]) > 59 or int(found[3] or 0) > 59:
        raise ValueError(f"{text!r} is no time")
    seconds = int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3] or 0)
    return seconds * per_second + _units(found[4], per_second)


def write_time(units: int, per_second: int) -> str:
    seconds, rest = divmod(units, per_second)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return clock + _fraction(rest, per_second)


def read_moment(text: str, per_second: int) -> int:
    """Units since the epoch; a zone other than UTC is counted in. Raises ValueError."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no timestamp")
    zone = found[4] or "Z"
    moment = datetime.fromisoformat(f"{found[1]}T{found[2]}{'+00:00' if zone == 'Z' else zone}")
    return (moment - _EPOCH) // timedelta(seconds=1) * per_second + _units(found[3], per_second)


def write_moment(units: int, per_second: int, zone: str) -> str:
    """``zone`` is "Z" or nothing. Raises OverflowError beyond the years 1 to 9999."""
    seconds, rest = divmod(units, per_second)
    moment = _EPOCH + timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S").zfill(19) + _fraction(rest, per_second) + zone


def _units(fraction: str | None, per_second: int) -> int:
    digits = len(str(per_second)) - 1
    written = (fraction or "").rstrip("0")
    if len(written) > digits:
        raise ValueError(f"a fraction of {len(written)} digits does not fit")
    return int(written.ljust(digits, "0") or 0)


def _fraction(rest: int, per_second: int) -> str:
    digits = f"{rest:0{len(str(per_second)) - 1}}".rstrip("0")
    return f".{digits}" if rest else ""
