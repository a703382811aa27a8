"""Running spec files: each step in turn, the first that fails ends its file, and the others go on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from headgate.errors import HeadgateError, InternalError
from headgate.testing.actions import check_call, perform
from headgate.testing.context import Edit, SpecContext
from headgate.testing.environment import SpecEnvironment
from headgate.testing.errors import MalformedSpec, NoSpecs
from headgate.testing.parse import ActionCall, Fails, Prints, Spec, SpecFaults, Step, Succeeds, parse_spec
from headgate.testing.report import Failure, Outcome, rewritten
from headgate.testing.statements import expect_error, expect_rows, expect_text

SUFFIX = ".spec"


@dataclass(frozen=True, slots=True)
class Settings:
    """``timeout`` in seconds, for each step of a file that does not set its own."""

    timeout: float = 60.0
    rewrite: bool = False


def find_specs(paths: Sequence[Path], word: str | None = None) -> list[Path]:
    """The files of these paths, folders with all below them, in order and each once; with ``word``, those whose path
    has it. Raises NoSpecs for a path without any."""
    found: dict[Path, None] = {}
    for path in paths:
        files = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path] if path.is_file() else []
        if not files:
            raise NoSpecs(str(path))
        found.update(dict.fromkeys(files))
    return [path for path in found if word is None or word in str(path)]


def run_specs(paths: Sequence[Path], environment: SpecEnvironment, settings: Settings) -> Iterator[Outcome]:
    """One outcome per file, as soon as it is there."""
    for path in paths:
        yield run_spec(path, environment, settings)


def run_spec(path: Path, environment: SpecEnvironment, settings: Settings) -> Outcome:
    began = time.monotonic()
    try:
        text = path.read_text("utf-8")
        spec = parse_spec(str(path), text, check_call)
    except SpecFaults as error:
        failures = tuple(Failure(str(path), one.line, one.error.diagnostic()) for one in error.faults)
        return Outcome(str(path), time.monotonic() - began, failures)
    except (UnicodeDecodeError, OSError) as error:
        fault = MalformedSpec(f"the file cannot be read as UTF-8 text ({type(error).__name__})")
        return Outcome(str(path), time.monotonic() - began, (Failure(str(path), 1, fault.diagnostic()),))
    edits: list[Edit] = []
    runs = [_run(spec, format_, environment, settings, edits) for format_ in spec.formats or (None,)]
    if edits:
        path.write_text(rewritten(text, edits), "utf-8")
    found = tuple(failure for failure in runs if failure is not None)
    return Outcome(str(path), time.monotonic() - began, found, len(edits))


def _run(
    spec: Spec, format_: str | None, environment: SpecEnvironment, settings: Settings, edits: list[Edit]
) -> Failure | None:
    line = 1
    try:
        context = environment.new_context(spec.text, settings.timeout, settings.rewrite)
        context.edits = edits
        if format_ is not None:
            context.variables.set("format", format_)
        for step in spec.steps:
            line = step.line
            run_step(step, context)
    except HeadgateError as error:
        return Failure(spec.path, line, error.diagnostic(), format_)
    except Exception as error:  # noqa: BLE001  whatever it is, the other files go on
        return Failure(spec.path, line, _unforeseen(error).diagnostic(), format_)
    return None


def run_step(step: Step, context: SpecContext) -> None:
    match step:
        case Succeeds():
            expect_rows(step, context)
        case Fails():
            expect_error(step, context)
        case Prints():
            expect_text(step, context)
        case ActionCall():
            perform(step, context)
        case _:
            assert_never(step)


def _unforeseen(error: Exception) -> HeadgateError:
    return InternalError(f"{type(error).__name__}: {error}")
