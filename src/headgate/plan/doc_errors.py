"""What is wrong with the docs of a sink (PLN-033x) and with its documentation under a policy (PLN-034x)."""

from __future__ import annotations

from headgate.plan.errors import PlanError


class DocNotInSink(PlanError, code="PLN-0330"):
    """DOC ON names a type or column that is no part of the schemas that the sink publishes."""

    target: str
    sink: str
    side: str = ""  # key or value, if the doc is for one of them
    similar: tuple[str, ...] = ()
    MESSAGE = '{target} is not part of {schema} of sink "{sink}"'
    CURE = "Name the sink's relation, a type in its columns, or a column of one of these."

    @property
    def schema(self) -> str:
        return f"the {self.side} schema" if self.side else "the schemas"

    def hint(self) -> str | None:
        return super().hint() or "Name the relation of the sink, a type in its columns, or a column of one of these."


class KeyDocWithoutKey(PlanError, code="PLN-0331"):
    """KEY DOC ON is written for a sink that has no key."""

    target: str
    sink: str
    MESSAGE = '{target} needs a key, and sink "{sink}" has none'
    HINT = "Write KEY (column, …) before FORMAT, or DOC ON without KEY."


class KeyDocOutsideKey(PlanError, code="PLN-0332"):
    """KEY DOC ON names a column of the relation that is no part of the sink's key."""

    target: str
    sink: str
    key: tuple[str, ...]
    MESSAGE = '{target} is outside the key of sink "{sink}"'
    DETAIL = "The key is ({key:list})."
    HINT = "Write VALUE DOC ON, or DOC ON for both schemas."


class DocOfOtherSide(PlanError, code="PLN-0333"):
    """KEY FORMAT has a VALUE DOC ON, or VALUE FORMAT a KEY DOC ON."""

    target: str
    sink: str
    side: str  # of the format
    MESSAGE = '{target} stands in the {side} format of sink "{sink}"'
    HINT = "Move it to the other format, or leave KEY and VALUE out: a doc of the {side} format is only for the {side}."


class DocTwice(PlanError, code="PLN-0334"):
    """Two DOC ON options mean the same type or column, for example once with its schema and once without."""

    target: str
    sink: str
    MESSAGE = '{target} is given more than once for sink "{sink}"'
    HINT = "Leave one of them out. KEY DOC ON and VALUE DOC ON of one column may stand side by side."


class DocEmpty(PlanError, code="PLN-0335"):
    """DOC ON has an empty text."""

    target: str
    MESSAGE = "the text of {target} is empty"
    HINT = "Write what it means, or leave the option out. IGNORE COMMENTS leaves the comments of the catalog out."


class DocTooLong(PlanError, code="PLN-0336"):
    """A doc or comment is longer than a schema should hold."""

    target: str
    found: int
    most: int
    MESSAGE = "the text of {target} has {found} bytes, and {most} are allowed"
    HINT = "Write a shorter text that says where to read more."


class DocUnknown(PlanError, code="PLN-0337"):
    """DROP DOC ON names a doc that the sink does not have."""

    target: str
    sink: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'sink "{sink}" has no {target}'
    CURE = "SHOW CREATE SINK lists the docs that the sink has."

    def hint(self) -> str | None:
        return super().hint() or "SHOW CREATE SINK lists the docs that it has."


class DocsOfOtherFormat(PlanError, code="PLN-0338"):
    """ALTER SINK … FORMAT names another format than the sink has."""

    sink: str
    written: str
    found: tuple[str, ...]
    MESSAGE = 'sink "{sink}" has no schema of FORMAT {written}'
    DETAIL = "Its formats are {found:list}."
    HINT = "Docs belong to a schema: name the format with a registry that the sink has."


class PolicyViolated(PlanError, code="PLN-0340"):
    """A sink would publish schemas without the documentation that a sink policy requires."""

    sink: str
    policies: tuple[str, ...]
    undocumented: tuple[str, ...]
    MESSAGE = 'sink "{sink}" lacks documentation that sink policy {names} requires'
    DETAIL = "Without documentation: {undocumented:list}."
    HINT = "Write COMMENT ON COLUMN or COMMENT ON TYPE for each of them, or DOC ON in the sink."

    @property
    def names(self) -> str:
        return " and ".join(f'"{name}"' for name in self.policies)
