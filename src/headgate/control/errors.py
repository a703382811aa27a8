"""What is wrong with a script as a desired state: PLN-05xx."""

from __future__ import annotations

from headgate.errors import HeadgateError


class DesiredStateError(HeadgateError):
    """Family PLN."""


class ObjectDiffers(DesiredStateError, code="PLN-0501"):
    """A script for apply defines an object that exists with another definition, and no statement can change one into
    the other."""

    kind: str
    name: str
    parts: tuple[str, ...] = ()
    MESSAGE = '{kind} "{name}" exists already and is not what the script says'
    DETAIL = "They differ in {parts:list}."
    HINT = (
        "Nothing alters a {kind} in place. Run `DROP {kind:upper} {name};` (with CASCADE, if others use it) with "
        "`headgate sql`, then apply the script again; or write the statement as it was."
    )


class NotDesiredState(DesiredStateError, code="PLN-0502"):
    """A script for apply contains a statement that does something once instead of describing an object."""

    statement: str
    MESSAGE = "{statement} does not describe what shall be there"
    HINT = "Run it with `headgate sql`. A script to apply has CREATE, COMMENT ON, ALTER … PAUSE or RESUME, and SET."
