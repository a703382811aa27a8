"""Strings, numbers and derived names, written as protoc writes them."""

from __future__ import annotations

import re
import struct

MAX_INT32 = 2**31 - 1
MAX_UINT64 = 2**64 - 1

_ESCAPE = re.compile(
    rb"\\(?:(?P<simple>[abfnrtv\\?'\"])|(?P<octal>[0-7]{1,3})|[xX](?P<hex>[0-9A-Fa-f]{1,2})"
    rb"|u(?P<head>[dD][89abAB][0-9A-Fa-f]{2})\\u(?P<tail>[dD][c-fC-F][0-9A-Fa-f]{2})"
    rb"|u(?P<short>[0-9A-Fa-f]{4})|U(?P<long>00(?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{4})|(?P<bad>.?))",
    re.DOTALL,
)
_SIMPLE = dict(zip(b"abfnrtv\\?'\"", b"\a\b\f\n\r\t\v\\?'\"", strict=True))
_PRINTED = {
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    ord('"'): '\\"',
    ord("'"): "\\'",
    ord("\\"): "\\\\",
}


def unquote(literal: str) -> bytes | None:
    """The bytes of a quoted string; None if it holds an escape that does not exist."""
    try:
        return _ESCAPE.sub(_unescape, literal[1:-1].encode("utf-8", "surrogatepass"))
    except ValueError:
        return None


def _unescape(found: re.Match[bytes]) -> bytes:
    kind = found.lastgroup
    if kind == "simple":
        return bytes([_SIMPLE[found["simple"][0]]])
    if kind == "octal":
        return bytes([int(found["octal"], 8) & 0xFF])
    if kind == "hex":
        return bytes([int(found["hex"], 16)])
    if kind == "tail":
        code = 0x10000 + ((int(found["head"], 16) - 0xD800) << 10) + int(found["tail"], 16) - 0xDC00
        return chr(code).encode()
    if kind in ("short", "long"):
        return chr(int(found[kind], 16)).encode("utf-8", "surrogatepass")
    raise ValueError


def escape(data: bytes) -> str:
    """Bytes as the inside of a quoted string, in ASCII only (C escapes)."""
    return "".join(
        _PRINTED.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in data
    )


def quote(text: str) -> str:
    """A quoted string that stays legible: only what must be escaped is."""
    return '"' + "".join(_quoted(character) for character in text) + '"'


def _quoted(character: str) -> str:
    if character == "'":
        return character
    if character in '\n\r\t"\\':
        return _PRINTED[ord(character)]
    return character if character.isprintable() else escape(character.encode("utf-8", "surrogatepass"))


def integer(literal: str) -> int:
    """The value of an integer token: decimal, hexadecimal after 0x, octal after 0. Beyond 64 bits it is just that."""
    if len(literal.lstrip("0xX")) > 24:  # Python refuses to convert thousands of digits
        return MAX_UINT64 + 1
    if literal[:2] in ("0x", "0X"):
        return int(literal, 16)
    return int(literal, 8) if len(literal) > 1 and literal[0] == "0" else int(literal)


def print_double(value: float) -> str:
    """The shortest of 15 or 17 digits that reads back as the same value."""
    short = f"{value:.15g}"
    return short if value != value or float(short) == value else f"{value:.17g}"


def print_float(value: float) -> str:
    """Likewise with 6 or 9 digits for a number of 32 bits."""
    narrow = to_float(value)
    short = f"{narrow:.6g}"
    return short if narrow != narrow or to_float(float(short)) == narrow else f"{narrow:.9g}"


def to_float(value: float) -> float:
    try:
        narrow: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return narrow


def json_name(name: str) -> str:
    """lowerCamelCase as protoc derives it from a field's name."""
    return re.sub(r"_+(.?)", lambda found: _ascii_upper(found[1]), name)


def camel_case(name: str) -> str:
    """UpperCamelCase as protoc derives it from a field's name; may be empty or begin with a digit."""
    return re.sub(r"(?:^|_+)([^_]?)", lambda found: _ascii_upper(found[1]), name)


def map_entry_name(name: str) -> str:
    """The name of the message that protoc makes for a map field."""
    return camel_case(name) + "Entry"


def _ascii_upper(text: str) -> str:
    return text.upper() if text.isascii() else text


def is_identifier(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) is not None
