"""An endpoint's answer as it grows: the pictures with their states, the model's words, what went wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...events.sse import SSEDecoder
from ...events.wire import OUTPUT_TEXT, TERMINAL, loads

__all__ = ["PictureAnswer", "PictureCall", "Problem"]

Json = dict[str, Any]

_CALL = "image_generation_call"
_PHASE = f"response.{_CALL}."


class Problem(NamedTuple):
    """What went wrong: a sentence, and a word for machines where there is one."""

    message: str
    code: str | None = None


@dataclass(slots=True)
class PictureCall:
    """One picture while it is made.

    Attributes:
        began: when it was announced, by the answer's clock.
        state: `in progress`, `generating`, `completed` or `failed`.
        partials: how many partial pictures have come.
        preview: the latest of them, in base64.
        item: the finished item, None until then.
        ended: when it was finished.
    """

    began: float
    state: str = "in progress"
    partials: int = 0
    preview: str | None = None
    item: Json | None = None
    ended: float | None = None


class PictureAnswer:
    """Reads an answer with status 200, streamed or whole, of any endpoint that has the tool.

    Servers differ in what they leave out: phases, deltas, or the items of the final response. Whatever
    tells of a picture or a text first is taken, and what is told again changes nothing.

    Args:
        clock: seconds, from any origin.

    Attributes:
        began: when it was asked for.
        calls: the pictures by the ids of their items, in the order in which they were announced.
        response_id: None until it is known.
        usage: what the response cost, in the API's own shape; None until it is known.
        problem: why the response failed, or is not complete; a failed picture alone is none.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.began = clock()
        self.calls: dict[str, PictureCall] = {}
        self.response_id: str | None = None
        self.usage: Json | None = None
        self.problem: Problem | None = None
        self._texts: dict[tuple[object, object], str] = {}
        self._decoder = SSEDecoder()
        self._ended = False

    @property
    def text(self) -> str:
        """What the model has said so far."""
        return "\n".join(filter(None, [*self._texts.values()]))

    @property
    def pictures(self) -> list[Json]:
        """The finished items that hold a picture."""
        return [call.item for call in self.calls.values() if call.item and call.item.get("result")]

    @property
    def failure(self) -> Problem:
        """Why there is no picture, if there is none."""
        failed = [call.item for call in self.calls.values() if call.item and not call.item.get("result")]
        if failed:
            error = failed[-1].get("error") or {}
            return Problem(
                f"the picture failed: {error.get('message') or 'no reason given'}", error.get("code")
            )
        said = f"; it said: {self.text[:200]}" if self.text else ""
        return self.problem or Problem(f"the model made no picture{said}")

    def feed(self, status: int, piece: bytes) -> None:
        """Read the next piece of the answer's body."""
        if status == 200:
            for frame in self._decoder.feed(piece):
                self._frame(frame.data)

    def end(self, body: bytes) -> None:
        """Take the whole body at its end: an endpoint may have answered with one JSON object."""
        for frame in self._decoder.close():
            self._frame(frame.data)
        if body.lstrip().startswith(b"{"):
            self._read(body, self._whole)
        if not self._ended:
            self.problem = self.problem or Problem("the answer ended before the response did")

    def _frame(self, data: bytes) -> None:
        if data != b"[DONE]":
            self._read(data, self._event)

    def _read(self, data: bytes, take: Callable[[Json], None]) -> None:
        try:
            value = loads(data)
        except ValueError:
            value = None
        if isinstance(value, dict):
            take(value)
        else:
            self.problem = Problem("the endpoint's answer holds something that is no JSON object")

    def _event(self, event: Json) -> None:
        kind = str(event.get("type"))
        item = event.get("item") or {}
        place = (event.get("item_id"), event.get("content_index"))
        if kind.startswith(_PHASE):
            self._phase(kind.removeprefix(_PHASE), event)
        elif kind == OUTPUT_TEXT.delta:
            self._texts[place] = self._texts.get(place, "") + event.get("delta", "")
        elif kind == OUTPUT_TEXT.done:
            self._texts[place] = event.get("text", "")
        elif kind == "response.output_item.added" and item.get("type") == _CALL:
            self._call(item.get("id"))
        elif kind == "response.output_item.done":
            self._item(item)
        elif kind in TERMINAL:
            self._whole(event.get("response") or {})
        elif kind == "response.created":
            self._response(event.get("response") or {})
        elif kind == "error" or event.get("error"):
            self.problem = _problem(event.get("error") or event)

    def _call(self, item_id: object) -> PictureCall:
        return self.calls.setdefault(str(item_id), PictureCall(self.clock()))

    def _phase(self, phase: str, event: Json) -> None:
        call = self._call(event.get("item_id"))
        if phase == "partial_image":
            call.partials += 1
            call.preview = event.get("partial_image_b64")
        else:
            call.state = phase.replace("_", " ")

    def _item(self, item: Json) -> None:
        if item.get("type") == "message":
            for index, part in enumerate(item.get("content") or ()):
                self._texts.setdefault((item.get("id"), index), part.get("text") or "")
        if item.get("type") != _CALL:
            return
        call = self._call(item.get("id"))
        if call.item is None or not call.item.get("result"):
            call.item = item
            call.ended = self.clock()
        # Some servers leave the status at `generating` in a finished item; a picture is a picture.
        call.state = "completed" if call.item.get("result") else "failed"

    def _whole(self, response: Json) -> None:
        self._ended = True
        self._response(response)

    def _response(self, response: Json) -> None:
        self.response_id = response.get("id") or self.response_id
        self.usage = response.get("usage") or self.usage
        for item in response.get("output") or ():
            self._item(item)
        if response.get("error"):
            self.problem = _problem(response["error"])
        elif response.get("status") == "incomplete":
            reason = (response.get("incomplete_details") or {}).get("reason")
            self.problem = Problem(f"the response is incomplete: {reason or 'no reason given'}", reason)
        elif response.get("status") in ("failed", "cancelled"):
            self.problem = self.problem or Problem(f"the response {response['status']}")


def _problem(error: Any) -> Problem:
    if not isinstance(error, dict):
        return Problem(str(error))
    return Problem(str(error.get("message") or "the response failed"), error.get("code"))
