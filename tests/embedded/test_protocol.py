from __future__ import annotations

import dataclasses
import pickle
import re
from typing import get_type_hints

import pytest
from hypothesis import given, settings, strategies as st

from headgate.embedded import errors
from headgate.embedded.errors import RefusedBySupervisor, WorldError
from headgate.embedded.service import ServiceStatus
from headgate.embedded.supervisor import (
    Reply,
    Request,
    WorldStatus,
    read_reply,
    read_request,
    write_reply,
    write_request,
)

pytestmark = pytest.mark.unit

SAMPLES: dict[object, object] = {
    str: "kafka",
    int: 7,
    int | None: 8,
    tuple[str, ...]: ("first", "second"),
}
CLASSES = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, WorldError) and one.code]


def _sample(cls: type[WorldError]) -> WorldError:
    hints = get_type_hints(cls)
    return cls(**{field.name: SAMPLES[hints[field.name]] for field in dataclasses.fields(cls)})


@settings(max_examples=100)
@given(
    st.builds(
        Request,
        st.sampled_from(["ensure", "start", "stop", "status", "lease", "pin", "shutdown"]),
        st.lists(st.text()).map(tuple),
        st.booleans(),
        st.none() | st.integers(1, 65535),
    )
)
def test_a_request_is_read_as_it_was_written(request: Request) -> None:
    line = write_request(request)
    assert line.count(b"\n") == 1
    assert read_request(line) == request


def test_a_reply_is_read_as_it_was_written() -> None:
    service = ServiceStatus("kafka", "running", "127.0.0.1:1", 5, "/l", None)
    reply = Reply({"kafka": "127.0.0.1:1"}, WorldStatus("/w", 4, True, 0, (service,)))
    assert read_reply(write_reply(reply)) == reply


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_error_is_the_same_error_on_the_other_side(cls: type[WorldError]) -> None:
    sent = _sample(cls)
    got = read_reply(write_reply(Reply(error=sent))).error
    assert type(got) is cls
    assert got.diagnostic() == sent.diagnostic()
    assert pickle.loads(pickle.dumps(sent)).diagnostic() == sent.diagnostic()


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_error_says_what_is_wrong_in_one_line_and_what_to_do(cls: type[WorldError]) -> None:
    error = _sample(cls)
    assert re.fullmatch(r"WLD-\d{4}", error.code)
    assert "\n" not in error.message()
    assert not error.message().endswith(".")
    assert (error.hint() or "")[-1] in ".?"


def test_no_two_errors_share_a_code() -> None:
    codes = [cls.code for cls in CLASSES]
    assert len(codes) == len(set(codes)) > 20


def test_an_error_with_an_unknown_code_is_still_raised() -> None:
    got = read_reply(b'{"error": {"code": "WLD-9999", "fields": {}, "message": "the moon is full"}}').error
    assert isinstance(got, RefusedBySupervisor)
    assert "the moon is full" in got.message()


@pytest.mark.parametrize("line", [b"", b"hello\n", b"[]\n", b'{"ask": "dance"}\n', b"\xff\n"])
def test_a_line_that_is_no_request_is_refused(line: bytes) -> None:
    with pytest.raises(RefusedBySupervisor):
        read_request(line)
