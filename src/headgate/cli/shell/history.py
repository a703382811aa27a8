"""What was typed, kept for the next time in a file that only its owner can read, and never with a secret in it."""

from __future__ import annotations

import os
from pathlib import Path

from prompt_toolkit.history import FileHistory

from headgate.sql.redact import redacted_text


class RedactedHistory(FileHistory):
    """Makes its file, of mode 0600, when it is first written to."""

    def append_string(self, string: str) -> None:
        """Redacted in memory too: what is called back is shown on the screen."""
        super().append_string(redacted_text(string))

    def store_string(self, string: str) -> None:
        path = Path(os.fsdecode(self.filename))
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        super().store_string(string)


def history_file(project: Path, url: str | None) -> Path:
    """In the project's folder; for an engine elsewhere, in the user's state folder."""
    if url is None:
        return project / ".headgate" / "history"
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "headgate" / "history"
