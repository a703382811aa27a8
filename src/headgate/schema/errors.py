"""What can be wrong with a schema or a type. Every error carries the path of the place, `$` being the root."""

from __future__ import annotations

from headgate.errors import HeadgateError


class SchemaError(HeadgateError):
    """Family SCH."""
