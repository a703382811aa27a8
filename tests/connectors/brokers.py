"""A broker that speaks just enough of Kafka's protocol to refuse every login."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_API_VERSIONS, _SASL_HANDSHAKE, _SASL_AUTHENTICATE, _METADATA = 18, 17, 36, 3
_UNSUPPORTED_VERSION, _SASL_AUTHENTICATION_FAILED = 35, 58
REASON = "Authentication failed: Invalid username or password"


@contextmanager
def refusing_broker() -> Iterator[str]:
    """Gives its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=_accept, args=(listening,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def closed_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def _accept(listening: socket.socket) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:  # closed
            return
        threading.Thread(target=_serve, args=(connection,), daemon=True).start()


def _serve(connection: socket.socket) -> None:
    with connection, connection.makefile("rb") as incoming:
        while len(head := incoming.read(4)) == 4:
            request = incoming.read(struct.unpack(">i", head)[0])
            if len(request) < 8:
                return
            api, version, correlation = struct.unpack(">hhi", request[:8])
            try:
                answer = struct.pack(">i", correlation) + _answer(api, version)
                connection.sendall(struct.pack(">i", len(answer)) + answer)
            except (OSError, KeyError):
                return


def _answer(api: int, version: int) -> bytes:
    if api == _API_VERSIONS:
        known = [
            (_API_VERSIONS, 0, 0),
            (_SASL_HANDSHAKE, 0, 1),
            (_SASL_AUTHENTICATE, 0, 0),
            (_METADATA, 0, 1),
        ]
        result = [api_range for api_range in known if version == 0 or api_range[0] == _API_VERSIONS]
        ranges = b"".join(struct.pack(">hhh", *api_range) for api_range in result)
        return struct.pack(">hi", 0 if version == 0 else _UNSUPPORTED_VERSION, len(result)) + ranges
    if api == _SASL_HANDSHAKE:
        return struct.pack(">hi", 0, 1) + _text("PLAIN")
    if api == _SASL_AUTHENTICATE:
        return struct.pack(">h", _SASL_AUTHENTICATION_FAILED) + _text(REASON) + struct.pack(">i", 0)
    raise KeyError(api)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
