"""The client of the registry behind a connection."""

from __future__ import annotations

import tempfile
from pathlib import Path

from headgate.connectors.options import Options
from headgate.registry.auth import Basic, Tls
from headgate.registry.client import RegistryClient


def registry_client(options: Options) -> RegistryClient:
    username = options.get("USERNAME")
    credentials = Basic(username, options.get("PASSWORD") or "") if username is not None else None
    return RegistryClient([options.need("URL")], credentials=credentials, tls=_tls(options))


def _tls(options: Options) -> Tls | None:
    names = ("SSL CERTIFICATE AUTHORITY", "SSL CERTIFICATE", "SSL KEY")
    authority, certificate, key = (_pem_file(options.get(name)) for name in names)
    return Tls(authority, certificate, key) if authority or certificate else None


def _pem_file(given: str | None) -> Path | None:
    """A certificate may be given as its PEM text or as the path of a file that holds it."""
    if given is None or "-----BEGIN" not in given:
        return None if given is None else Path(given)
    with tempfile.NamedTemporaryFile("w", suffix=".pem", delete=False) as file:  # mode 0600
        file.write(given)
    return Path(file.name)
