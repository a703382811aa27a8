"""Every error of the catalog reads as all errors do, crosses processes, and has a code of its own."""

from __future__ import annotations

import pickle
import re

import pytest

from headgate.catalog import errors
from headgate.catalog.errors import CatalogError
from tests.catalog.building import NOW

pytestmark = pytest.mark.unit

SAMPLES: tuple[CatalogError, ...] = (
    errors.UnknownObject("source", "ordes", ("orders",)),
    errors.AmbiguousName("ORDERS", ('"Orders"', '"orders"')),
    errors.WrongKind("orders", "view", ("source", "table")),
    errors.AlreadyExists("source", "orders", "Orders"),
    errors.AlreadyExists("source", "orders", "orders"),
    errors.UnknownColumn("prize", "view", "v", ("price",)),
    errors.AmbiguousColumn("PRICE", "view", "v", ('"Price"', '"price"')),
    errors.NameTooLong("a.b.c.d", 3),
    errors.ReservedName("schema", "information_schema"),
    errors.NoColumns("type", "list"),
    errors.ColumnWithoutObject("price"),
    errors.InUse("source", "orders", (("view", "v"), ("sink", "s"))),
    errors.NotEmpty("schema", "public", tuple(("view", f"v{n}") for n in range(12))),
    errors.DependencyCycle("view", "a", ("a", "b", "a")),
    errors.CatalogTooNew("c.db", 3, 2),
    errors.CatalogDamaged("c.db", "file is not a database"),
    errors.CatalogFull("c.db"),
    errors.CatalogBusy("c.db"),
    errors.CatalogUnreachable("c.db", "unable to open database file"),
    errors.NotACatalog("c.db"),
    errors.CatalogMoved(1, 2),
    errors.CatalogTooOld("c.db", 1, 2),
    errors.NotUnicode(),
    errors.LeaseHeld("c.db", "host", 7, NOW),
    errors.LeaseLost("c.db", 3, 'process 7 on host "host"'),
    errors.KeyFileExposed("c.db.key", 0o644),
    errors.SecretUnreadable("s"),
    errors.SecretKeyMalformed("environment variable HEADGATE_SECRET_KEY"),
    errors.SecretKeyMissing("c.db.key"),
    errors.SecretSourceMissing("s", "environment variable X"),
)


def test_every_error_has_a_sample_and_a_code_of_its_own() -> None:
    classes = {c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, CatalogError)}
    assert {type(sample) for sample in SAMPLES} == classes - {CatalogError}
    assert len({c.code for c in classes}) == len(classes)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_an_error_reads_as_all_errors_do(sample: CatalogError) -> None:
    assert re.fullmatch(r"CAT-0[1-5]\d\d", sample.code)
    assert re.fullmatch(r'[a-z"][^\n]*[^.\n]', sample.message())
    for sentence in filter(None, (sample.detail(), sample.hint())):
        assert re.fullmatch(r"[A-Z][^\n]*[.?]", sentence)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_an_error_crosses_processes(sample: CatalogError) -> None:
    assert pickle.loads(pickle.dumps(sample)).diagnostic() == sample.diagnostic()
