"""A client of the schema registry from the options of a connection."""

from __future__ import annotations

import tempfile
from pathlib import Path

from headgate.connectors.options import ConnectionOptions, pem_text
from headgate.registry.client import RegistryClient
from headgate.registry.transport import Basic, Tls


def registry_client(options: ConnectionOptions) -> RegistryClient:
    username = options.get("USERNAME")
    credentials = Basic(username, options.get("PASSWORD") or "") if username is not None else None
    # The HTTP library takes keys and certificates as files only. It reads them once, when the client is made.
    with tempfile.TemporaryDirectory(prefix="headgate-") as folder:  # with mode 0700
        tls = _tls(options, Path(folder))
        return RegistryClient([options.need("URL")], credentials=credentials, tls=tls)


def _tls(options: ConnectionOptions, folder: Path) -> Tls | None:
    names = ("SSL CERTIFICATE AUTHORITY", "SSL CERTIFICATE", "SSL KEY")
    authority, certificate, key = (_pem_file(options, name, folder) for name in names)
    return Tls(authority, certificate, key) if authority or certificate else None


def _pem_file(options: ConnectionOptions, name: str, folder: Path) -> Path | None:
    text = pem_text(options, name)
    if text is None:
        return None
    file = folder / f"{name}.pem"
    file.write_text(text)
    return file
