"""Names of subjects and versions as they are written in a request."""

from __future__ import annotations

from headgate.registry.server.errors import InvalidSubject, InvalidVersion
from headgate.registry.server.rows import LATEST

_DEFAULT_CONTEXT = ":.:"
_ALL_CONTEXTS = ":*:"
_RESERVED = ("__GLOBAL", "__EMPTY")


def subject_name(name: str) -> str:
    """A subject's plain name. There is one context, the default one, written ``:.:name`` or just ``name``."""
    plain = name.removeprefix(_DEFAULT_CONTEXT)
    if plain.startswith((":.", _ALL_CONTEXTS)):
        raise InvalidSubject(name, "this registry has the default context only")
    if not plain or plain in _RESERVED:
        raise InvalidSubject(name, "the name is empty or reserved")
    if not plain.isprintable():
        raise InvalidSubject(name, "it has control characters")
    return plain


def subject_prefix(text: str) -> str:
    """The start of subject names, without the context that may stand before it."""
    for context in (_DEFAULT_CONTEXT, _ALL_CONTEXTS):
        text = text.removeprefix(context)
    return text


def version_number(text: str) -> int:
    """A version's number, or LATEST."""
    if text.strip().lower() == "latest":
        return LATEST
    try:
        number = int(text)
    except ValueError:
        raise InvalidVersion(text) from None
    if number != LATEST and not 1 <= number < 2**31:
        raise InvalidVersion(text)
    return number
