"""Texts that a pattern matches anywhere; its groups are the columns. On the JVM."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate.plan.patterns import marked
from headgate.plan.sides import RegexSide
from headgate.runtime.formats.plain import TextReader
from headgate.runtime.formats.side import NOT_UTF8

NO_MATCH = "the pattern does not match it"


class RegexReader(TextReader):
    """``inner`` is a struct of the columns, NULL for a text without a match.

    Spark gives an empty text for a group that took no part in the match, too. `marked` tells the two apart.
    """

    def __init__(self, side: RegexSide) -> None:
        self._side = side
        self._marked = marked(side.pattern)

    def costly(self, data: Column) -> Column:
        text = data.cast("string")
        fields = [self._group(text, number).alias(name) for number, name in enumerate(self._side.columns)]
        return F.when(F.rlike(text, F.lit(self._side.pattern)), F.struct(*fields))

    def _group(self, text: Column, number: int) -> Column:
        java, group, marks = self._marked.java, self._marked.groups[number], self._marked.marks[number]
        found = F.regexp_extract(text, java, group)
        if marks is None:
            return found
        took_part = F.concat(*[F.regexp_extract(text, java, mark) for mark in marks]) != F.lit("")
        in_nothing = F.rlike(text, F.lit(self._marked.in_nothing[number]))
        return F.when(F.when(text == F.lit(""), in_nothing).otherwise(took_part), found)

    def fits(self, data: Column, inner: Column) -> Column:
        return super().fits(data, inner) & inner.isNotNull()

    def reason(self, data: Column, inner: Column) -> Column:
        return F.when(~super().fits(data, inner), F.lit(NOT_UTF8)).otherwise(F.lit(NO_MATCH))

    def value(self, data: Column, inner: Column) -> Column:
        return inner
