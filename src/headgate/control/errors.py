"""What is wrong with a script as a desired state: PLN-05xx."""

from __future__ import annotations

from headgate.errors import HeadgateError, error


class DesiredStateError(HeadgateError):
    """Family PLN."""


@error
class ObjectDiffers(DesiredStateError):
    """No statement changes the object that is there into the one that the script describes."""

    code = "PLN-0501"
    kind: str
    name: str
    parts: tuple[str, ...] = ()

    def message(self) -> str:
        return f'{self.kind} "{self.name}" exists already and is not what the script says'

    def detail(self) -> str | None:
        return f"They differ in {', '.join(self.parts)}." if self.parts else None

    def hint(self) -> str:
        drop = f"DROP {self.kind.upper()} {self.name}"
        return (
            f"Nothing alters a {self.kind} in place. Run `{drop};` (with CASCADE, if others use it) with "
            "`headgate sql`, then apply the script again; or write the statement as it was."
        )


@error
class NotDesiredState(DesiredStateError):
    code = "PLN-0502"
    statement: str

    def message(self) -> str:
        return f"{self.statement} does not describe what shall be there"

    def hint(self) -> str:
        return "Run it with `headgate sql`. A script to apply has CREATE, COMMENT ON, ALTER … PAUSE or RESUME, and SET."
