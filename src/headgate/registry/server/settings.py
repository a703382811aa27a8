"""Compatibility levels and modes: of the whole registry (subject None), and of single subjects, which go first."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headgate.registry.server import rules as deletion
from headgate.registry.server.errors import (
    InvalidLevel,
    InvalidMode,
    NoLevelOfItsOwn,
    NoModeOfItsOwn,
    NotPermitted,
    UnknownSubject,
)
from headgate.registry.server.store import Tables, Visibility
from headgate.schema.written import CompatibilityLevel

DEFAULT_LEVEL = CompatibilityLevel.BACKWARD


class Mode(StrEnum):
    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"


@dataclass(frozen=True, slots=True)
class Config:
    level: CompatibilityLevel | None
    normalize: bool | None = None


def level(text: str) -> CompatibilityLevel:
    try:
        return CompatibilityLevel(text.upper())
    except ValueError:
        raise InvalidLevel(text) from None


def mode(text: str) -> Mode:
    try:
        return Mode(text.upper())
    except ValueError:
        raise InvalidMode(text) from None


def config_in_scope(rows: Tables, subject: str | None) -> Config:
    """What holds for a subject: its own settings, where it has none the registry's, else the defaults."""
    own, general = _config(rows, subject) or Config(None), _config(rows, None) or Config(None)
    normalize = own.normalize if own.normalize is not None else general.normalize
    return Config(own.level or general.level or DEFAULT_LEVEL, normalize)


def level_in_scope(rows: Tables, subject: str) -> CompatibilityLevel:
    return config_in_scope(rows, subject).level or DEFAULT_LEVEL


def own_config(rows: Tables, subject: str | None) -> Config:
    if subject is None:
        return config_in_scope(rows, None)
    found = _config(rows, subject)
    if found is None:
        raise NoLevelOfItsOwn(subject)
    return found


def put_config(rows: Tables, subject: str | None, change: Config) -> Config:
    """Set what the change names and keep the rest."""
    refuse_if_read_only(rows, subject)
    before = _config(rows, subject) or Config(None)
    normalize = change.normalize if change.normalize is not None else before.normalize
    after = Config(change.level or before.level, normalize)
    rows.settings.put_config(subject, after.level, after.normalize)
    return after


def drop_config(rows: Tables, subject: str | None) -> Config:
    """Back to what holds in general; gives what was set before."""
    refuse_if_read_only(rows, subject)
    if subject is not None and _config(rows, subject) is None:
        raise UnknownSubject(subject)
    before = own_config(rows, subject)
    rows.settings.drop_config(subject)
    return before


def mode_in_scope(rows: Tables, subject: str | None) -> Mode:
    """READONLY_OVERRIDE of the registry goes before what a subject says for itself."""
    general = Mode(rows.settings.mode(None) or Mode.READWRITE)
    if general is Mode.READONLY_OVERRIDE or subject is None:
        return general
    return Mode(rows.settings.mode(subject) or general)


def own_mode(rows: Tables, subject: str | None) -> Mode:
    found = rows.settings.mode(subject)
    if found is None and subject is not None:
        raise NoModeOfItsOwn(subject)
    return Mode(found or Mode.READWRITE)


def put_mode(rows: Tables, subject: str | None, new: Mode, *, force: bool) -> None:
    """IMPORT brings ids of its own: without force it needs a subject, or a registry, without live versions."""
    if new is Mode.READONLY_OVERRIDE and subject is not None:
        raise InvalidMode(new)
    if new is Mode.IMPORT and mode_in_scope(rows, subject) is not Mode.IMPORT and not force:
        _make_room_for_import(rows, subject)
    rows.settings.put_mode(subject, new)


def drop_mode(rows: Tables, subject: str | None) -> Mode:
    found = rows.settings.mode(subject)
    if found is None and subject is not None:
        raise UnknownSubject(subject)
    rows.settings.drop_mode(subject)
    return Mode(found or Mode.READWRITE)


def refuse_if_read_only(rows: Tables, subject: str | None) -> None:
    if mode_in_scope(rows, subject) in (Mode.READONLY, Mode.READONLY_OVERRIDE):
        what = "the registry" if subject is None else f'subject "{subject}"'
        raise NotPermitted(f"{what} is in read-only mode")


def _config(rows: Tables, subject: str | None) -> Config | None:
    found = rows.settings.config(subject)
    return None if found is None else Config(CompatibilityLevel(found[0]) if found[0] else None, found[1])


def _make_room_for_import(rows: Tables, subject: str | None) -> None:
    concerned = rows.subjects("", Visibility.ALL) if subject is None else (subject,)
    for name in concerned:
        if rows.latest(name, Visibility.LIVE) is not None:
            raise NotPermitted(f'cannot import: subject "{name}" has versions already')
    for name in concerned:
        deletion.remove_all(rows, name)
