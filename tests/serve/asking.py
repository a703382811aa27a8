"""A client that asks over a connection of its own, which it can drop while it waits."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

from headgate.serve.client import EngineClient
from tests.cli.served import TOKEN


class Asking:
    def __init__(self, client: EngineClient, sql: str) -> None:
        address = urlsplit(client.url)
        self._socket = socket.create_connection((address.hostname, address.port))
        body = json.dumps({"sql": sql}).encode()
        head = (
            f"POST /api/statements HTTP/1.1\r\nhost: {address.netloc}\r\nauthorization: Bearer {TOKEN}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + body)

    @property
    def ended(self) -> bool:
        """Whether the answer has come to its end: the last piece of a chunked body is an empty one."""
        self._socket.setblocking(False)
        try:
            return self._socket.recv(65536).endswith(b"0\r\n\r\n")
        except BlockingIOError:
            return False
        finally:
            self._socket.setblocking(True)

    def go_away(self) -> None:
        self._socket.close()
