"""What leaves together, and what alone."""

from __future__ import annotations

from imagecall.events.actions import Finish, Send
from imagecall.events.outbox import Outbox

PICTURE = b"p" * ((64 << 10) + 1)


def test_small_frames_leave_together_however_many_they_are() -> None:
    outbox = Outbox(stream=True)
    outbox.frames += [b"a" * 40_000, b"b" * 40_000, b"c"]
    assert outbox.take() == [Send(b"a" * 40_000 + b"b" * 40_000 + b"c")]
    assert outbox.take() == []


def test_a_large_frame_leaves_alone_and_as_the_very_same_bytes() -> None:
    outbox = Outbox(stream=True)
    outbox.frames += [b"a", b"b", PICTURE, PICTURE, b"c"]
    first, second, third, last = outbox.take()
    assert (first, last) == (Send(b"ab"), Send(b"c"))
    assert isinstance(second, Send)
    assert isinstance(third, Send)
    assert second.frames is third.frames is PICTURE


def test_frames_and_other_actions_keep_their_order() -> None:
    outbox = Outbox(stream=True)
    outbox.frames.append(b"a")
    outbox.act(end := Finish(None))
    outbox.frames.append(b"b")
    assert outbox.take() == [Send(b"a"), end, Send(b"b")]


def test_a_client_that_wants_no_stream_gets_no_frames() -> None:
    outbox = Outbox(stream=False)
    outbox.frames += [b"a", PICTURE]
    outbox.act(end := Finish(None))
    assert outbox.take() == [end]
