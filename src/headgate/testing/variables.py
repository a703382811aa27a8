"""``${name}`` in texts, and the values behind the names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from headgate.errors import similar_names
from headgate.testing.errors import UnknownVariable

_PLACE = re.compile(r"\$\$\{|\$\{([^}\s]*)\}")

# Worth putting back into rewritten text: shorter ones would be found where they are not meant.
MEMORABLE = 6


class Variables:
    """Names set by steps, and built-in ones that are asked for when they are first used."""

    def __init__(self, built_in: Mapping[str, Callable[[], str]] | None = None) -> None:
        self._built_in = dict(built_in or {})
        self._set: dict[str, str] = {}

    def set(self, name: str, value: str) -> None:
        self._set[name] = value

    def get(self, name: str) -> str:
        if name in self._set:
            return self._set[name]
        if name in self._built_in:
            return self._built_in[name]()
        raise UnknownVariable(name, similar_names(name, {**self._set, **self._built_in}))

    def fill(self, text: str, more: Mapping[str, str] | None = None) -> str:
        """The text with every variable replaced; ``more`` are variables of this text alone."""

        def value(found: re.Match[str]) -> str:
            name = found[1]
            if name is None:
                return "${"
            return more[name] if more and name in more else self.get(name)

        return _PLACE.sub(value, text)

    def put_back(self, text: str) -> str:
        """The inverse, as far as it is clear: values of variables that were set, such as the seed, become their names."""
        text = text.replace("${", "$${")
        known = sorted(self._set.items(), key=lambda one: -len(one[1]))
        for name, value in known:
            if len(value) >= MEMORABLE and not value.isdecimal():
                text = text.replace(value, f"${{{name}}}")
        return text
