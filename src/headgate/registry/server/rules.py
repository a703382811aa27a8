"""The rules of the registry, as functions over its tables: settings, registering, deleting.

Settings are the compatibility level and the mode. The registry as a whole has both (subject None), and a subject may have
its own, which take precedence. Deleting has two steps: a soft delete hides a version and keeps its id readable, a permanent one
removes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from headgate.registry import compatibility
from headgate.registry.errors import Incompatibility
from headgate.registry.schemas import ParsedSchema, Schema, SchemaCache
from headgate.registry.server import errors, store
from headgate.registry.wire import MAX_ID
from headgate.schema.written import CompatibilityLevel

DEFAULT_LEVEL = CompatibilityLevel.BACKWARD


class Mode(StrEnum):
    """What may be changed. In IMPORT, schemas bring their ids and versions."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of a subject or of the registry. None for what is not set."""

    level: CompatibilityLevel | None
    normalize: bool | None = None


def parse_level(text: str) -> CompatibilityLevel:
    try:
        return CompatibilityLevel(text.upper())
    except ValueError:
        raise errors.InvalidLevel(text) from None


def parse_mode(text: str) -> Mode:
    try:
        return Mode(text.upper())
    except ValueError:
        raise errors.InvalidMode(text) from None


def config_in_scope(tables: store.Tables, subject: str | None) -> Config:
    """The settings in effect for a subject: its own, otherwise the registry's, otherwise the defaults."""
    own, general = _config(tables, subject) or Config(None), _config(tables, None) or Config(None)
    normalize = own.normalize if own.normalize is not None else general.normalize
    return Config(own.level or general.level or DEFAULT_LEVEL, normalize)


def level_in_scope(tables: store.Tables, subject: str) -> CompatibilityLevel:
    return config_in_scope(tables, subject).level or DEFAULT_LEVEL


def own_config(tables: store.Tables, subject: str | None) -> Config:
    """The settings of the subject itself. Raises NoLevelOfItsOwn if it has none."""
    if subject is None:
        return config_in_scope(tables, None)
    found = _config(tables, subject)
    if found is None:
        raise errors.NoLevelOfItsOwn(subject)
    return found


def put_config(tables: store.Tables, subject: str | None, change: Config) -> Config:
    """Set what the change contains and keep the rest."""
    refuse_if_read_only(tables, subject)
    before = _config(tables, subject) or Config(None)
    normalize = change.normalize if change.normalize is not None else before.normalize
    after = Config(change.level or before.level, normalize)
    tables.put_config(subject, after.level, after.normalize)
    return after


def drop_config(tables: store.Tables, subject: str | None) -> Config:
    """Remove a subject's settings, so that the registry's apply. Returns what was set before."""
    refuse_if_read_only(tables, subject)
    if subject is not None and _config(tables, subject) is None:
        raise errors.UnknownSubject(subject)
    before = own_config(tables, subject)
    tables.drop_config(subject)
    return before


def mode_in_scope(tables: store.Tables, subject: str | None) -> Mode:
    """The mode in effect. READONLY_OVERRIDE of the registry takes precedence over a subject's own mode."""
    general = Mode(tables.mode(None) or Mode.READWRITE)
    if general is Mode.READONLY_OVERRIDE or subject is None:
        return general
    return Mode(tables.mode(subject) or general)


def own_mode(tables: store.Tables, subject: str | None) -> Mode:
    """The mode of the subject itself. Raises NoModeOfItsOwn if it has none."""
    found = tables.mode(subject)
    if found is None and subject is not None:
        raise errors.NoModeOfItsOwn(subject)
    return Mode(found or Mode.READWRITE)


def put_mode(tables: store.Tables, subject: str | None, new: Mode, *, force: bool) -> None:
    """Set the mode. Without `force`, IMPORT needs a subject, or a registry, without live versions, because imported
    schemas bring their ids."""
    if new is Mode.READONLY_OVERRIDE and subject is not None:
        raise errors.InvalidMode(new)
    if new is Mode.IMPORT and mode_in_scope(tables, subject) is not Mode.IMPORT and not force:
        _make_room_for_import(tables, subject)
    tables.put_mode(subject, new)


def drop_mode(tables: store.Tables, subject: str | None) -> Mode:
    """Remove a subject's mode, so that the registry's applies. Returns what was set before."""
    found = tables.mode(subject)
    if found is None and subject is not None:
        raise errors.UnknownSubject(subject)
    tables.drop_mode(subject)
    return Mode(found or Mode.READWRITE)


def refuse_if_read_only(tables: store.Tables, subject: str | None) -> None:
    if mode_in_scope(tables, subject) in (Mode.READONLY, Mode.READONLY_OVERRIDE):
        what = "the registry" if subject is None else f'subject "{subject}"'
        raise errors.NotPermitted(f"{what} is in read-only mode")


def _config(tables: store.Tables, subject: str | None) -> Config | None:
    found = tables.config(subject)
    return None if found is None else Config(CompatibilityLevel(found[0]) if found[0] else None, found[1])


def _make_room_for_import(tables: store.Tables, subject: str | None) -> None:
    """Remove softly deleted versions, whose ids would be in the way. Live ones are not touched, but refused."""
    concerned = tables.subjects("", store.Visibility.ALL) if subject is None else (subject,)
    for name in concerned:
        if tables.latest(name, store.Visibility.LIVE) is not None:
            raise errors.NotPermitted(f'cannot import: subject "{name}" has versions already')
    for name in concerned:
        remove_all(tables, name)


@dataclass(frozen=True, slots=True)
class PostedSchema:
    """A schema as it was sent. `schema_id` and `version` are given only for schemas imported from another registry."""

    schema: Schema
    schema_id: int | None = None
    version: int | None = None


class CompatibilityCheck(Protocol):
    """Returns the reasons why `new` cannot become the next version of a subject, empty if it can.

    `earlier` are the versions to compare with, oldest first. A reason is one sentence that names the field.
    """

    def __call__(
        self, subject: str, new: ParsedSchema, earlier: Sequence[ParsedSchema], level: CompatibilityLevel
    ) -> tuple[str, ...]: ...


def check_level(
    subject: str,  # noqa: ARG001  another check may decide by the subject
    new: ParsedSchema,
    earlier: Sequence[ParsedSchema],
    level: CompatibilityLevel,
) -> tuple[str, ...]:
    """The default check: the compatibility level."""
    return tuple(_sentence(found) for found in compatibility.check(new, earlier, level))


def _sentence(found: Incompatibility) -> str:
    where = "" if found.path in found.message else f" at {found.path}"
    return f"{found.kind}{where}: {found.message}"


@dataclass(frozen=True, slots=True)
class Registration:
    """Registers schemas and tests their compatibility."""

    check: CompatibilityCheck
    parsed: SchemaCache[int, ParsedSchema] = field(default_factory=SchemaCache)  # by id

    def register(
        self, tables: store.Tables, subject: str, request: PostedSchema, *, normalize: bool
    ) -> store.StoredVersion:
        """The new version, or the live version that has this schema already. Raises Incompatible or another Refusal."""
        mode = mode_in_scope(tables, subject)
        _refuse_by_mode(tables, subject, request, mode)
        normalize = normalize or bool(config_in_scope(tables, subject).normalize)
        read = store.read_posted(tables, request.schema, normalize=normalize, visibility=store.Visibility.LIVE)
        if (found := _registered(tables, subject, request, read, normalize)) is not None:
            return found
        # Imported schemas come from a registry that has checked them, in the order in which they were registered there.
        if mode is not Mode.IMPORT and (reasons := self.reasons(tables, subject, read)):
            raise errors.Incompatible(subject, level_in_scope(tables, subject), reasons)
        return _add(tables, subject, request, read, mode)

    def reasons(
        self,
        tables: store.Tables,
        subject: str,
        read: store.PostedReading,
        against: Sequence[store.StoredVersion] | None = None,
    ) -> tuple[str, ...]:
        """Why a schema cannot follow the versions `against`, by default those that the level compares with."""
        level = level_in_scope(tables, subject)
        if level is CompatibilityLevel.NONE:
            return ()
        compared = _versions_to_compare(tables, subject, level) if against is None else against
        return self.check(subject, read.parsed, [self._parsed(tables, version) for version in compared], level)

    def _parsed(self, tables: store.Tables, version: store.StoredVersion) -> ParsedSchema:
        return self.parsed.get(version.schema_id, lambda: store.parse_stored(tables, version.schema))

    def verdict(
        self, tables: store.Tables, subject: str, schema: Schema, number: int | None, *, normalize: bool
    ) -> tuple[str, ...]:
        """The reasons why registering would be refused or, with `number`, why the schema cannot follow that version.
        Empty for a new subject."""
        normalize = normalize or bool(config_in_scope(tables, subject).normalize)
        against = None if number is None else _version_to_compare(tables, subject, number)
        read = store.read_posted(tables, schema, normalize=normalize, visibility=store.Visibility.LIVE)
        return self.reasons(tables, subject, read, against)


def look_up(
    tables: store.Tables, subject: str, schema: Schema, *, normalize: bool, visibility: store.Visibility
) -> store.StoredVersion:
    """The version of the subject that has exactly this schema."""
    normalize = normalize or bool(config_in_scope(tables, subject).normalize)
    require_subject(tables, subject, visibility)
    read = store.read_posted(tables, schema, normalize=normalize, visibility=store.Visibility.ALL)
    found = tables.matching(subject, read.prints, normalize, visibility)
    if found is None:
        raise errors.SchemaNotInSubject(subject)
    return found


def find_version(tables: store.Tables, subject: str, number: int, visibility: store.Visibility) -> store.StoredVersion:
    """A version by its number, or the latest."""
    found = (
        tables.latest(subject, visibility) if number == store.LATEST else tables.version(subject, number, visibility)
    )
    if found is not None:
        return found
    require_subject(tables, subject, visibility)
    raise errors.UnknownVersion(subject, number)


def require_subject(tables: store.Tables, subject: str, visibility: store.Visibility) -> None:
    """Raises UnknownSubject if the subject has no version that is visible."""
    if tables.latest(subject, visibility) is None:
        raise errors.UnknownSubject(subject)


def _refuse_by_mode(tables: store.Tables, subject: str, request: PostedSchema, mode: Mode) -> None:
    refuse_if_read_only(tables, subject)
    if request.schema_id is not None and mode is not Mode.IMPORT:
        raise errors.NotPermitted(f'subject "{subject}" is not in import mode, so a schema cannot bring its own id')
    if request.schema_id is None and mode is Mode.IMPORT:
        raise errors.NotPermitted(f'subject "{subject}" is in import mode, so a schema must bring its id')


def _registered(
    tables: store.Tables, subject: str, request: PostedSchema, read: store.PostedReading, normalize: bool
) -> store.StoredVersion | None:
    """The live version that the request asks for already, None if there is none."""
    if request.version is not None:
        found = tables.version(subject, request.version, store.Visibility.LIVE)
        return found if found is not None and tables.fingerprint(found.schema_id) == read.prints.exact else None
    found = tables.matching(subject, read.prints, normalize, store.Visibility.LIVE)
    if found is not None and request.schema_id in (None, found.schema_id):
        return found
    return None


def _add(
    tables: store.Tables, subject: str, request: PostedSchema, read: store.PostedReading, mode: Mode
) -> store.StoredVersion:
    """Store the schema, unless its text is known, and give the subject a version of it."""
    version = _new_version(tables, subject, request, mode)
    schema_id = tables.add_schema(read.kept, read.prints, _known_id(tables, request, read))
    for old in tables.versions_of_id(schema_id, store.Visibility.DELETED):
        # The schema comes back under a new number. Its deleted version is removed, unless another schema refers to it.
        if old.subject == subject and not tables.referring(subject, old.version, store.Visibility.ALL):
            tables.remove_version(subject, old.version)
    tables.add_version(subject, version, schema_id)
    return store.StoredVersion(subject, version, schema_id, read.kept, deleted=False)


def _new_version(tables: store.Tables, subject: str, request: PostedSchema, mode: Mode) -> int:
    """One more than the highest number in use, deleted versions included."""
    last = tables.latest(subject, store.Visibility.ALL)
    following = 1 if last is None else last.version + 1
    if request.version is None:
        return following
    if mode is not Mode.IMPORT and request.version != following:
        raise errors.InvalidSchema(f"version {request.version} is not one more than the previous version")
    if tables.version(subject, request.version, store.Visibility.ALL) is not None:
        raise errors.NotPermitted(f'version {request.version} of subject "{subject}" exists with another schema')
    return request.version


def _known_id(tables: store.Tables, request: PostedSchema, read: store.PostedReading) -> int | None:
    """The id that the schema brings or already has. None asks for a new one."""
    if request.schema_id is not None:
        if tables.fingerprint(request.schema_id) not in (None, read.prints.exact):
            raise errors.IdTaken(request.schema_id)
        return request.schema_id
    known = tables.id_of(read.prints.exact)
    if known is None and tables.highest_id() >= MAX_ID:
        raise errors.StoreFailed("no schema ids are left")
    return known


def _versions_to_compare(
    tables: store.Tables, subject: str, level: CompatibilityLevel
) -> Sequence[store.StoredVersion]:
    return (
        tables.versions(subject, store.Visibility.LIVE)
        if level.is_transitive
        else _version_to_compare(tables, subject, store.LATEST)
    )


def _version_to_compare(tables: store.Tables, subject: str, number: int) -> Sequence[store.StoredVersion]:
    """One version as a sequence, empty if the subject has none yet."""
    if number == store.LATEST:
        latest = tables.latest(subject, store.Visibility.LIVE)
        return () if latest is None else (latest,)
    found = tables.version(subject, number, store.Visibility.LIVE)
    if found is None:
        raise errors.UnknownVersion(subject, number)
    return (found,)


def delete_version(tables: store.Tables, subject: str, number: int, *, permanent: bool) -> int:
    """Returns the number of the deleted version."""
    version = _find_to_delete(tables, subject, number, permanent=permanent)
    if not permanent and version.deleted:
        raise errors.VersionAlreadyDeleted(subject, version.version)
    refuse_if_referenced(tables, version, store.Visibility.ALL if permanent else store.Visibility.LIVE)
    if not permanent:
        tables.mark_deleted(subject, version.version)
        return version.version
    if not version.deleted:
        raise errors.VersionNotDeleted(subject, version.version)
    _remove_versions(tables, (version,))
    return version.version


def delete_subject(tables: store.Tables, subject: str, *, permanent: bool) -> tuple[int, ...]:
    """Returns the numbers of the deleted versions."""
    every = tables.versions(subject, store.Visibility.ALL)
    live = tuple(version for version in every if not version.deleted)
    if not every:
        raise errors.UnknownSubject(subject)
    if not permanent and not live:
        raise errors.SubjectAlreadyDeleted(subject)
    concerned = every if permanent else live
    for version in concerned:
        refuse_if_referenced(
            tables, version, store.Visibility.ALL if permanent else store.Visibility.LIVE, but_by=subject
        )
    if permanent and live:
        raise errors.SubjectNotDeleted(subject)
    if permanent:
        _remove_versions(tables, concerned)
    else:
        for version in concerned:
            tables.mark_deleted(subject, version.version)
    return tuple(version.version for version in concerned)


def remove_all(tables: store.Tables, subject: str) -> None:
    """Permanently remove a subject whose versions are all deleted softly."""
    versions = tables.versions(subject, store.Visibility.ALL)
    for version in versions:
        refuse_if_referenced(tables, version, store.Visibility.ALL, but_by=subject)
    _remove_versions(tables, versions)


def refuse_if_referenced(
    tables: store.Tables, version: store.StoredVersion, visibility: store.Visibility, *, but_by: str | None = None
) -> None:
    """Raises ReferencedElsewhere if other schemas refer to the version. References from the subject `but_by` do not
    count: a subject can be deleted as a whole."""
    referring = tables.referring(version.subject, version.version, visibility)
    ids = sorted({other.schema_id for other in referring if other.subject != but_by})
    if ids:
        raise errors.ReferencedElsewhere(version.subject, version.version, tuple(ids))


def _find_to_delete(tables: store.Tables, subject: str, number: int, *, permanent: bool) -> store.StoredVersion:
    """The version to delete. A permanent deletion also finds versions that were deleted softly."""
    if number == store.LATEST:
        found = tables.latest(subject, store.Visibility.ALL if permanent else store.Visibility.LIVE)
    else:
        found = tables.version(subject, number, store.Visibility.ALL)
    if found is not None:
        return found
    require_subject(tables, subject, store.Visibility.ALL)
    raise errors.UnknownVersion(subject, number)


def _remove_versions(tables: store.Tables, versions: tuple[store.StoredVersion, ...]) -> None:
    """Remove versions for good. A subject that has none left loses its settings, too."""
    for version in versions:
        tables.remove_version(version.subject, version.version)
    tables.drop_unreferenced({version.schema_id for version in versions})
    for subject in {version.subject for version in versions}:
        if tables.latest(subject, store.Visibility.ALL) is None:
            tables.drop_config(subject)
            tables.drop_mode(subject)
