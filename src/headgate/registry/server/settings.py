"""Compatibility levels and modes: of the whole registry (subject None), and of single subjects, which go first."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headgate.registry.server import deletion
from headgate.registry.server.errors import (
    InvalidLevel,
    InvalidMode,
    NoLevelOfItsOwn,
    NoModeOfItsOwn,
    NotPermitted,
    UnknownSubject,
)
from headgate.registry.server.rows import Tables, Visibility
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


def parse_level(text: str) -> CompatibilityLevel:
    try:
        return CompatibilityLevel(text.upper())
    except ValueError:
        raise InvalidLevel(text) from None


def parse_mode(text: str) -> Mode:
    try:
        return Mode(text.upper())
    except ValueError:
        raise InvalidMode(text) from None


def config_in_scope(tables: Tables, subject: str | None) -> Config:
    """What holds for a subject: its own settings, where it has none the registry's, else the defaults."""
    own, general = _config(tables, subject) or Config(None), _config(tables, None) or Config(None)
    normalize = own.normalize if own.normalize is not None else general.normalize
    return Config(own.level or general.level or DEFAULT_LEVEL, normalize)


def level_in_scope(tables: Tables, subject: str) -> CompatibilityLevel:
    return config_in_scope(tables, subject).level or DEFAULT_LEVEL


def own_config(tables: Tables, subject: str | None) -> Config:
    if subject is None:
        return config_in_scope(tables, None)
    found = _config(tables, subject)
    if found is None:
        raise NoLevelOfItsOwn(subject)
    return found


def put_config(tables: Tables, subject: str | None, change: Config) -> Config:
    """Set what the change names and keep the rest."""
    refuse_if_read_only(tables, subject)
    before = _config(tables, subject) or Config(None)
    normalize = change.normalize if change.normalize is not None else before.normalize
    after = Config(change.level or before.level, normalize)
    tables.settings.put_config(subject, after.level, after.normalize)
    return after


def drop_config(tables: Tables, subject: str | None) -> Config:
    """Back to what holds in general; gives what was set before."""
    refuse_if_read_only(tables, subject)
    if subject is not None and _config(tables, subject) is None:
        raise UnknownSubject(subject)
    before = own_config(tables, subject)
    tables.settings.drop_config(subject)
    return before


def mode_in_scope(tables: Tables, subject: str | None) -> Mode:
    """READONLY_OVERRIDE of the registry goes before what a subject says for itself."""
    general = Mode(tables.settings.mode(None) or Mode.READWRITE)
    if general is Mode.READONLY_OVERRIDE or subject is None:
        return general
    return Mode(tables.settings.mode(subject) or general)


def own_mode(tables: Tables, subject: str | None) -> Mode:
    found = tables.settings.mode(subject)
    if found is None and subject is not None:
        raise NoModeOfItsOwn(subject)
    return Mode(found or Mode.READWRITE)


def put_mode(tables: Tables, subject: str | None, new: Mode, *, force: bool) -> None:
    """IMPORT brings ids of its own: without force it needs a subject, or a registry, without live versions."""
    if new is Mode.READONLY_OVERRIDE and subject is not None:
        raise InvalidMode(new)
    if new is Mode.IMPORT and mode_in_scope(tables, subject) is not Mode.IMPORT and not force:
        _make_room_for_import(tables, subject)
    tables.settings.put_mode(subject, new)


def drop_mode(tables: Tables, subject: str | None) -> Mode:
    found = tables.settings.mode(subject)
    if found is None and subject is not None:
        raise UnknownSubject(subject)
    tables.settings.drop_mode(subject)
    return Mode(found or Mode.READWRITE)


def refuse_if_read_only(tables: Tables, subject: str | None) -> None:
    if mode_in_scope(tables, subject) in (Mode.READONLY, Mode.READONLY_OVERRIDE):
        what = "the registry" if subject is None else f'subject "{subject}"'
        raise NotPermitted(f"{what} is in read-only mode")


def _config(tables: Tables, subject: str | None) -> Config | None:
    found = tables.settings.config(subject)
    return None if found is None else Config(CompatibilityLevel(found[0]) if found[0] else None, found[1])


def _make_room_for_import(tables: Tables, subject: str | None) -> None:
    concerned = tables.subjects("", Visibility.ALL) if subject is None else (subject,)
    for name in concerned:
        if tables.latest(name, Visibility.LIVE) is not None:
            raise NotPermitted(f'cannot import: subject "{name}" has versions already')
    for name in concerned:
        deletion.remove_all(tables, name)
