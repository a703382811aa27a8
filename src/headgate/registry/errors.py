"""What can go wrong with a registry. Not found, not allowed and unreachable are different errors."""

from __future__ import annotations

from headgate.errors import HeadgateError


class RegistryError(HeadgateError):
    """Family REG."""
