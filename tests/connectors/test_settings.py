"""A connection's options in the words of librdkafka, of Spark and of the registry's client. Nothing is reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.connectors.connections import registry_client
from headgate.connectors.errors import ConflictingOptions, InvalidOption, OptionMissing
from headgate.connectors.kafka import KafkaCluster
from headgate.connectors.options import ConnectionOptions, reveal_options
from headgate.registry.errors import InvalidRegistrySetting
from headgate.sql.connections import CreateConnection
from headgate.sql.script import parse_statement
from tests.registry.certificates import Authority

pytestmark = pytest.mark.unit

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n"


def options(text: str, secret: str = "hunter2") -> ConnectionOptions:
    """The options of `CREATE CONNECTION c TO <text>`; every secret holds the same."""
    statement = parse_statement(f"CREATE CONNECTION c TO {text}")
    assert isinstance(statement, CreateConnection)
    return reveal_options("c", statement.options, lambda _: secret)


def kafka(text: str, secret: str = "hunter2") -> KafkaCluster:
    return KafkaCluster(options(f"KAFKA ({text})", secret))


# brokers


def test_brokers_are_one_or_several() -> None:
    assert kafka("BROKER 'a:1'").brokers == "a:1"
    assert kafka("BROKERS ('a:1', 'b:2')").brokers == "a:1,b:2"


def test_one_broker_and_several_exclude_each_other() -> None:
    with pytest.raises(ConflictingOptions) as caught:
        kafka("BROKER 'a:1', BROKERS ('b:2')")
    assert caught.value.message() == 'options "BROKER" and "BROKERS" of connection "c" exclude each other'


def test_a_broker_must_be_given() -> None:
    with pytest.raises(OptionMissing) as caught:
        kafka("SECURITY PROTOCOL PLAINTEXT")
    assert caught.value.message() == 'option "BROKER" of connection "c" is missing'


# clients


def test_a_plain_cluster_needs_only_its_address() -> None:
    cluster = kafka("BROKER 'a:1'")
    assert cluster.librdkafka() == {"bootstrap.servers": "a:1"}
    assert cluster.spark() == {"kafka.bootstrap.servers": "a:1"}


def test_a_login_is_set_for_both_clients() -> None:
    login = "SASL MECHANISMS 'PLAIN', SASL USERNAME 'u', SASL PASSWORD SECRET s"
    cluster = kafka(f"BROKER 'a:1', SECURITY PROTOCOL SASL_PLAINTEXT, {login}")
    assert cluster.librdkafka() == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "hunter2",
    }
    assert cluster.spark() == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule"
        ' required username="u" password="hunter2";',
    }


def test_scram_has_a_module_of_its_own_and_quotes_are_escaped() -> None:
    login = "SASL MECHANISM 'SCRAM-SHA-512', SASL USERNAME 'u', SASL PASSWORD SECRET s"
    jaas = kafka(f"BROKER 'a:1', {login}", 'a"b\\c').spark()["kafka.sasl.jaas.config"]
    assert jaas == (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="a\\"b\\\\c";'
    )


def test_a_login_without_password_is_refused() -> None:
    with pytest.raises(OptionMissing) as caught:
        kafka("BROKER 'a:1', SASL MECHANISMS 'PLAIN', SASL USERNAME 'u'").spark()
    assert caught.value.option == "SASL PASSWORD"


def test_certificates_are_set_for_both_clients_as_text() -> None:
    cluster = KafkaCluster(
        ConnectionOptions(
            "c",
            (
                ("BROKER", ("a:1",)),
                ("SECURITY PROTOCOL", ("SSL",)),
                ("SSL CERTIFICATE AUTHORITY", (PEM,)),
                ("SSL CERTIFICATE", (PEM,)),
                ("SSL KEY", (KEY,)),
            ),
        )
    )
    assert cluster.librdkafka() == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SSL",
        "ssl.ca.pem": PEM,
        "ssl.certificate.pem": PEM,
        "ssl.key.pem": KEY,
    }
    assert cluster.spark() == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": PEM,
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": PEM,
        "kafka.ssl.keystore.key": KEY,
    }


def test_a_certificate_may_be_the_path_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(PEM)
    cluster = kafka(f"BROKER 'a:1', SSL CERTIFICATE AUTHORITY '{tmp_path}/ca.pem'")
    assert cluster.librdkafka()["ssl.ca.pem"] == PEM
    lost = kafka(f"BROKER 'a:1', SSL CERTIFICATE AUTHORITY '{tmp_path}/lost.pem'")
    with pytest.raises(InvalidOption) as caught:
        lost.librdkafka()
    assert caught.value.message() == (
        'option "SSL CERTIFICATE AUTHORITY" of connection "c" names a file that cannot be read'
    )


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(OptionMissing):
        kafka("BROKER 'a:1', SSL CERTIFICATE SECRET s", PEM).spark()


# what prints


def test_nothing_that_prints_shows_a_secret() -> None:
    given = options("KAFKA (BROKER 'a:1', SASL MECHANISMS 'PLAIN', SASL USERNAME 'u', SASL PASSWORD SECRET s)")
    printed = f"{given} {given!r} {KafkaCluster(given)!r} {KafkaCluster(given)}"
    assert "hunter2" not in printed
    assert "SASL PASSWORD" in printed


# options


def test_numbers_and_booleans_come_as_their_text() -> None:
    given = options("POSTGRES (HOST 'h', PORT 5432, DATABASE 'd')")
    assert given.get("PORT") == "5432"
    assert (given.get("HOST"), given.all("HOST"), given.get("nosuch"), given.all("nosuch")) == ("h", ("h",), None, ())


# the registry


def test_a_registry_needs_its_address() -> None:
    with pytest.raises(OptionMissing):
        registry_client(options("CONFLUENT SCHEMA REGISTRY (USERNAME 'u')"))


def test_a_registrys_certificates_leave_no_files_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "authority").mkdir()
    authority = Authority(tmp_path / "authority")
    mine = authority.issue("mine")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    given = ConnectionOptions(
        "c",
        (
            ("URL", ("https://127.0.0.1:1",)),
            ("SSL CERTIFICATE AUTHORITY", (authority.certificate.read_text(),)),
            ("SSL CERTIFICATE", (mine.certificate.read_text(),)),
            ("SSL KEY", (mine.key.read_text(),)),
        ),
    )
    registry_client(given).close()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_malformed_certificate_is_refused() -> None:
    given = ConnectionOptions("c", (("URL", ("https://127.0.0.1:1",)), ("SSL CERTIFICATE AUTHORITY", (PEM,))))
    with pytest.raises(InvalidRegistrySetting):
        registry_client(given)
