"""Answers as streams: what comes out, how many may be open, and what a client that goes away leaves behind."""

from __future__ import annotations

import asyncio
import threading

import pytest

from headgate.control.cancellation import Cancellation
from headgate.serve.protocol import Done, Notice, write_event
from headgate.serve.streams import WAITING, Put, Streams

pytestmark = pytest.mark.unit

PATIENCE = 30


def test_events_come_in_the_order_in_which_they_were_put() -> None:
    told = [Notice(str(number)) for number in range(3 * WAITING)]

    def work(put: Put, _: Cancellation) -> None:
        assert all(put(event) for event in told)

    async def read() -> list[bytes]:
        stream = Streams().open(work)
        assert stream is not None
        return [line async for line in stream.lines()]

    assert asyncio.run(read()) == [write_event(event) for event in told]


def test_no_more_are_opened_than_may_be_and_one_that_ends_makes_room() -> None:
    async def read() -> None:
        streams, go_on = Streams(1), threading.Event()
        first = streams.open(lambda put, _: _later(go_on, put))
        assert first is not None
        assert streams.open(lambda put, _: None) is None
        go_on.set()
        assert [line async for line in first.lines()] == [write_event(Done("DONE"))]
        assert streams.open(lambda put, _: None) is not None

    asyncio.run(read())


def test_closing_stops_what_runs() -> None:
    running, stopped, ended = threading.Event(), threading.Event(), threading.Event()

    def work(put: Put, cancellation: Cancellation) -> None:
        with cancellation.stops(stopped.set):
            running.set()
            stopped.wait(PATIENCE)
        assert not put(Done("SELECT 0"))
        ended.set()

    async def open_and_close() -> None:
        stream = Streams().open(work)
        assert stream is not None
        assert running.wait(PATIENCE)
        stream.close()
        assert ended.wait(PATIENCE)

    asyncio.run(open_and_close())


def test_a_thread_that_waits_for_its_reader_ends_when_the_reader_goes_away() -> None:
    full, ended = threading.Event(), threading.Event()

    def work(put: Put, _: Cancellation) -> None:
        for number in range(10 * WAITING):
            if number == WAITING:
                full.set()
            if not put(Notice(str(number))):
                assert number == WAITING
                ended.set()
                return

    async def open_and_close() -> None:
        stream = Streams().open(work)
        assert stream is not None
        assert full.wait(PATIENCE)
        stream.close()
        assert ended.wait(PATIENCE)

    asyncio.run(open_and_close())


def test_what_begins_after_the_cancellation_is_stopped_at_once() -> None:
    cancellation, stopped = Cancellation(), threading.Event()
    cancellation.cancel()
    with cancellation.stops(stopped.set):
        assert stopped.is_set()


def test_what_has_ended_is_not_stopped_any_more() -> None:
    cancellation, stopped = Cancellation(), threading.Event()
    with cancellation.stops(stopped.set):
        pass
    cancellation.cancel()
    assert not stopped.is_set()


def _later(go_on: threading.Event, put: Put) -> None:
    assert go_on.wait(PATIENCE)
    put(Done("DONE"))
