"""Schemas and settings of the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headgate.registry.client import RegistryClient
from headgate.registry.errors import SubjectDeleted, SubjectNotFound
from headgate.registry.schemas import Reference, Schema
from headgate.schema.written import CompatibilityLevel, SchemaFormat
from headgate.testing.context import Action, Deadline, Invocation, SpecContext
from headgate.testing.errors import Mismatch
from headgate.testing.notation import equal, read_json, write_json

TYPES = {"avro": SchemaFormat.AVRO, "json_sr": SchemaFormat.JSON, "protobuf": SchemaFormat.PROTOBUF}


def publish(call: Invocation, context: SpecContext) -> None:
    """`registry-publish`: register a schema, under a given id if there is one."""
    written = call.text("type")
    if written not in TYPES:
        raise call.wrong(f'takes one of {", ".join(TYPES)} for "type", not "{written}"')
    schema = Schema("\n".join(context.fill(call.body)), TYPES[written], _references(call))
    subject, given = call.text("subject"), call.number("id")
    with context.registry() as registry:
        if given is not None:
            registry.set_mode("IMPORT", subject, force=True)
        schema_id = registry.register(subject, schema, schema_id=given)
        if given is not None:
            registry.set_mode(None, subject)
    if (name := call.optional("as")) is not None:
        context.variables.set(name, str(schema_id))


def verify(call: Invocation, context: SpecContext) -> None:
    """`registry-verify`: the schema of a version, the number of versions, or that there are none."""
    subject = call.text("subject")
    if call.flag("absent"):
        _eventually(context, lambda registry: _check_absent(subject, registry))
    elif (count := call.number("versions")) is not None:
        _eventually(context, lambda registry: _check_count(subject, count, registry))
    elif not call.body.lines:
        raise call.wrong("lacks its body, the schema; versions=N or absent=true need none")
    else:
        text = "\n".join(context.fill(call.body))
        version = call.optional("version") or "latest"
        if version != "latest":
            call.number("version")
        _eventually(context, lambda registry: _check_schema(subject, version, text, registry), call)


def config(call: Invocation, context: SpecContext) -> None:
    """`registry-config`: set the compatibility level of a subject."""
    with context.registry() as registry:
        registry.set_level(_level(call), call.text("subject"))


def verify_config(call: Invocation, context: SpecContext) -> None:
    """`registry-verify-config`: the compatibility level in effect for a subject."""
    subject, wanted = call.text("subject"), _level(call)

    def check(registry: RegistryClient) -> None:
        found = registry.level(subject)
        if found is not wanted:
            raise Mismatch(f'subject "{subject}" has another compatibility level', (wanted.value,), (found.value,))

    _eventually(context, check)


def _eventually(context: SpecContext, check: Callable[[RegistryClient], None], call: Invocation | None = None) -> None:
    """Repeat a check until it holds or the time is over. With ``call``, `--rewrite` may replace its body."""

    def attempt(_: Deadline) -> None:
        with context.registry() as registry:
            check(registry)

    context.eventually(attempt, call.body if call else None)


def _check_absent(subject: str, registry: RegistryClient) -> None:
    found = _versions(subject, registry)
    if found:
        raise Mismatch(f'subject "{subject}" exists', ("no version",), (f"versions {', '.join(map(str, found))}",))


def _check_count(subject: str, count: int, registry: RegistryClient) -> None:
    found = len(_versions(subject, registry))
    if found != count:
        raise Mismatch(f'subject "{subject}" has another number of versions', (str(count),), (str(found),))


def _versions(subject: str, registry: RegistryClient) -> tuple[int, ...]:
    try:
        return registry.versions(subject)
    except (SubjectNotFound, SubjectDeleted):
        return ()


def _check_schema(subject: str, version: str, text: str, registry: RegistryClient) -> None:
    """Compare schemas by meaning: Protobuf in canonical form, others as JSON."""
    found = registry.latest(subject) if version == "latest" else registry.version(subject, int(version))
    what = f'the schema of subject "{subject}" is another one'
    if found.schema.type is SchemaFormat.PROTOBUF:
        wanted = registry.resolved(replace(found.schema, text=text)).canonical
        actual = registry.resolved(found.schema).canonical
        if wanted != actual:
            shown = tuple(line for line in found.schema.text.splitlines() if line.strip())
            raise Mismatch(what, tuple(wanted.splitlines()), tuple(actual.splitlines()), shown)
        return
    expected, actual_json = read_json(text), read_json(found.schema.text)
    if not equal(expected, actual_json):
        raise Mismatch(what, _lines(write_json(expected)), _lines(write_json(actual_json)), (write_json(actual_json),))


def _lines(text: str) -> tuple[str, ...]:
    """One member per line, so that a diff shows what differs."""
    return tuple(text.replace(", ", ",\n").splitlines())


def _level(call: Invocation) -> CompatibilityLevel:
    written = call.text("compatibility").upper()
    if written not in list(CompatibilityLevel):
        raise call.wrong(f'takes one of {", ".join(CompatibilityLevel)} for "compatibility", not "{written}"')
    return CompatibilityLevel(written)


def _references(call: Invocation) -> tuple[Reference, ...]:
    written = call.json("references") or []
    found = []
    for one in written if isinstance(written, list) else [written]:
        match one:
            case {"name": str(name), "subject": str(subject), "version": int(version)}:
                found.append(Reference(name, subject, version))
            case {"name": str(name), "subject": str(subject), **rest} if "version" not in rest:
                found.append(Reference(name, subject, 1))
            case _:
                raise call.wrong('takes a list of {"name": .., "subject": .., "version": ..} for "references"')
    return tuple(found)


ACTIONS = (
    Action(
        "registry-publish", publish, required=("subject", "type"), options=("references", "as", "id"), body="required"
    ),
    Action(
        "registry-verify", verify, required=("subject",), options=("version", "versions", "absent"), body="optional"
    ),
    Action("registry-config", config, required=("subject", "compatibility")),
    Action("registry-verify-config", verify_config, required=("subject", "compatibility")),
)
