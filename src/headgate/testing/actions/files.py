"""`file-write` and `file-append`: files below `${dir}`."""

from __future__ import annotations

from pathlib import Path

from headgate.testing.actions.action import Action, Invocation
from headgate.testing.stage import Stage


def write(call: Invocation, stage: Stage) -> None:
    _place(call, stage).write_text(_text(call, stage), "utf-8")


def append(call: Invocation, stage: Stage) -> None:
    with _place(call, stage).open("a", encoding="utf-8") as file:
        file.write(_text(call, stage))


def _text(call: Invocation, stage: Stage) -> str:
    return "".join(f"{line}\n" for line in stage.fill(call.body))


def _place(call: Invocation, stage: Stage) -> Path:
    """A path that leads out of the folder is refused, so that a spec changes nothing else."""
    folder = stage.folder.resolve()
    path = (folder / call.text("path")).resolve()
    if not path.is_relative_to(folder) or path == folder:
        raise call.wrong(f'writes only below ${{dir}}, and "{call.text("path")}" is not')
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


ACTIONS = (
    Action("file-write", write, required=("path",), body="optional"),
    Action("file-append", append, required=("path",), body="required"),
)
