"""What became of a file, and of each of its runs."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.errors import Diagnostic


@dataclass(frozen=True, slots=True)
class Failure:
    """``detail`` of the diagnostic is the diff, where there is one."""

    path: str
    line: int
    diagnostic: Diagnostic
    format: str | None = None

    def render(self) -> str:
        where = f"{self.path}:{self.line}" + (f" (format {self.format})" if self.format else "")
        parts = [f"{where}: {self.diagnostic.code}: {self.diagnostic.message}"]
        if self.diagnostic.detail:
            parts.append(self.diagnostic.detail)
        if self.diagnostic.hint:
            parts.append(f"hint: {self.diagnostic.hint}")
        return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one file. ``seconds`` is how long it took; ``rewritten`` how many blocks `--rewrite` changed."""

    path: str
    seconds: float
    failures: tuple[Failure, ...] = ()
    rewritten: int = 0

    @property
    def passed(self) -> bool:
        return not self.failures
