"""Running spec files: each step in turn, the first that fails ends its file, and the others go on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from headgate.errors import HeadgateError, InternalError
from headgate.testing.actions import check_call, perform
from headgate.testing.context import Edit, Stage
from headgate.testing.environment import House
from headgate.testing.errors import MalformedSpec, NoSpecs
from headgate.testing.parse import Call, Fails, Prints, Spec, SpecFaults, Step, Succeeds, parse_spec
from headgate.testing.report import Failure, Outcome, rewritten
from headgate.testing.statements import fail, print_, succeed

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


def run_specs(paths: Sequence[Path], house: House, settings: Settings) -> Iterator[Outcome]:
    """One outcome per file, as soon as it is there."""
    for path in paths:
        yield run_spec(path, house, settings)


def run_spec(path: Path, house: House, settings: Settings) -> Outcome:
    began = time.monotonic()
    try:
        text = path.read_text("utf-8")
        spec = parse_spec(str(path), text, check_call)
    except SpecFaults as wrong:
        failures = tuple(Failure(str(path), one.line, one.error.diagnostic()) for one in wrong.faults)
        return Outcome(str(path), time.monotonic() - began, failures)
    except (UnicodeDecodeError, OSError) as wrong:
        error = MalformedSpec(f"the file cannot be read as UTF-8 text ({type(wrong).__name__})")
        return Outcome(str(path), time.monotonic() - began, (Failure(str(path), 1, error.diagnostic()),))
    edits: list[Edit] = []
    runs = [_run(spec, format_, house, settings, edits) for format_ in spec.formats or (None,)]
    if edits:
        path.write_text(rewritten(text, edits), "utf-8")
    found = tuple(failure for failure in runs if failure is not None)
    return Outcome(str(path), time.monotonic() - began, found, len(edits))


def _run(
    spec: Spec, format_: str | None, house: House, settings: Settings, edits: list[Edit]
) -> Failure | None:
    line = 1
    try:
        stage = house.stage(spec.text, settings.timeout, settings.rewrite)
        stage.edits = edits
        if format_ is not None:
            stage.variables.set("format", format_)
        for step in spec.steps:
            line = step.line
            play(step, stage)
    except HeadgateError as wrong:
        return Failure(spec.path, line, wrong.diagnostic(), format_)
    except Exception as wrong:  # noqa: BLE001  whatever it is, the other files go on
        return Failure(spec.path, line, _unforeseen(wrong).diagnostic(), format_)
    return None


def play(step: Step, stage: Stage) -> None:
    match step:
        case Succeeds():
            succeed(step, stage)
        case Fails():
            fail(step, stage)
        case Prints():
            print_(step, stage)
        case Call():
            perform(step, stage)
        case _:
            assert_never(step)


def _unforeseen(wrong: Exception) -> HeadgateError:
    return InternalError(f"{type(wrong).__name__}: {wrong}")
