"""CREATE CONNECTION: what it names is found, what is secret is a secret, and the system answers."""

from __future__ import annotations

import re
from dataclasses import replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.names import SearchPath
from headgate.purify.errors import SecretWrittenOut
from headgate.purify.outside import Outside
from headgate.purify.references import lasting_secrets
from headgate.sql.connections import CreateConnection
from headgate.sql.options import BooleanLiteral, Option, StringLiteral, option

_PASSWORD_IN_URL = re.compile(r"://[^/@\s]*:[^/@\s]+@")


def purify_connection(
    statement: CreateConnection, catalog: Catalog, path: SearchPath, outside: Outside
) -> CreateConnection:
    for given in statement.options:
        if _tells_a_secret(given):
            raise SecretWrittenOut(given.name, str(statement.name))
    lasting = replace(statement, options=lasting_secrets(catalog, path, statement.options))
    if option(statement.with_options, "VALIDATE") != BooleanLiteral(False):
        outside.check(catalog, lasting)
    return lasting


def _tells_a_secret(given: Option) -> bool:
    match given:
        case Option("PASSWORD" | "SASL PASSWORD", StringLiteral()):
            return True
        case Option("SSL KEY", StringLiteral(text)):  # the path of a file that holds the key is no secret
            return "-----BEGIN" in text
        case Option("URL", StringLiteral(url)):
            return has_password(url)
        case _:
            return False


def has_password(url: str) -> bool:
    return _PASSWORD_IN_URL.search(url) is not None
