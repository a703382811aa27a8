"""An authority of a test's own, and certificates signed by it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Issued:
    certificate: Path
    key: Path


class Authority:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("test authority")
        made = _builder(self._name, self._name, self._key.public_key())
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        made = made.add_extension(_key_usage(signs=True), critical=True)
        made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
        self.certificate = folder / "ca.pem"
        self.certificate.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(_PEM))

    def issue(self, name: str) -> Issued:
        """A certificate for 127.0.0.1, good for a server and for a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        made = _builder(_name(name), self._name, key.public_key())
        made = made.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        made = made.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        issued = Issued(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        issued.certificate.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(_PEM))
        issued.key.write_bytes(key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        return issued


_PEM = serialization.Encoding.PEM


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        issuer, subject, key, x509.random_serial_number(), now - timedelta(days=1), now + timedelta(days=1)
    )


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(False, False, False, False, False, signs, signs, False, False)
