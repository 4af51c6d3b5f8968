"""Joins the turns of the model server into ONE response for the client.

Input: the bytes of one turn after another, and what the runner reports. Output: a list of actions,
to be performed in order. A turn that called our tool, and nothing of the client's, is followed by
another one that brings the results; the client sees a single stream of items.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from .actions import Action, Finish, Run
from .calls import AS_TEXT, Call, Calls, Limits, written_call
from .follow_up import FollowUp
from .lowering import LoweredRequest
from .outbox import Outbox
from .reading import Reading
from .record import Record
from .response import ClientResponse
from .sse import DONE
from .state import CallInput
from .telling import tell
from .tools.base import ToolCall, ToolOutcome, ToolProgress
from .turn import Turn
from .turn_events import CallSettled, Closed, Delta, Loose, Opened, Started, TurnEnded, TurnEvent
from .wire import loads

__all__ = ["Limits", "Translator"]

_MAX_WORDS = 300
"""Characters kept of what a model server says of a failure."""


class Translator:
    """One client request, from the first byte of its first turn to `Finish`.

    Args:
        lowered: the request, lowered, with a tool in it.
        new_id: makes an id that begins with the given prefix and an underscore.
        now: seconds since the epoch.
        limits: how much of everything one response may have.
        strict_arguments: unknown arguments are an error for the model instead of dropped.
        feedback: what the model gets of a picture: `text`, or besides it the picture in a user
            message (`image`) or in the function's output (`image_output`).
        response_id: the response's id where the client knows it before the first turn; else the model
            server's own for that turn.
        claim: takes an item id for this response; False if an item of another one has it.
    """

    def __init__(
        self,
        lowered: LoweredRequest,
        *,
        new_id: Callable[[str], str],
        now: Callable[[], float],
        limits: Limits | None = None,
        strict_arguments: bool = False,
        feedback: str = "text",
        response_id: str | None = None,
        claim: Callable[[str], bool] = bool,
    ) -> None:
        self._lowered = lowered
        self._limits = limits or Limits()
        self._new_id = new_id
        self._client = ClientResponse(
            echo=lowered.echo,
            defaults=lowered.defaults,
            new_id=new_id,
            now=now,
            stream=lowered.stream,
            response_id=response_id,
            claim=claim,
        )
        self._calls = Calls(lowered, self._limits, strict=strict_arguments)
        self._record = Record(self._calls.tool.item_type, keep=lowered.keep)
        self._follow_up = FollowUp(lowered, self._calls, new_id, feedback, self._limits.max_turns)
        self._outbox = Outbox(stream=lowered.stream)
        self._frames = self._outbox.frames
        self._told_end: TurnEnded | None = None
        self._failed = False
        self._cancelled = False
        self._stopping = False
        self._finished = False
        self.notes: list[str] = []
        """What went wrong, for the log."""
        self.status = ""
        self.last_turn: TurnEnded | None = None
        """How the response, and the last turn that is over, ended, as far as they have."""
        self.words: list[str] = []
        """What the model server itself said of it; it may repeat a prompt."""
        self._begin_turn()

    @property
    def response_id(self) -> str:
        """The response's id as the client knows it; "" before the model server has begun."""
        return self._client.id

    def _begin_turn(self) -> None:
        self._turn = Turn(
            name=self._lowered.name,
            declared=self._lowered.declared,
            max_arguments=self._limits.max_arguments,
        )
        self.reading = Reading(self._turn, self._client, self._frames, self._on, self._limits.max_event)
        self._eof = False

    # -- what comes in -------------------------------------------------------------------------

    def receive(self, chunk: bytes) -> list[Action]:
        """Take the next bytes of the current turn's event stream; a `chunk` may be cut anywhere."""
        if self._finished:
            return []
        self.reading.feed(chunk)
        return self._outbox.take()

    def receive_json(self, body: bytes) -> list[Action]:
        """Take the whole body of a turn not declared a stream: a response object, or a stream after all."""
        if self._finished:
            return []
        try:
            response = loads(body)
        except ValueError:
            return self.receive(body)
        if not isinstance(response, dict) or not isinstance(response.get("output"), list):
            return self.abandon("the model server's answer is neither an event stream nor a response object")
        self._hear(self._turn.receive_response(response))
        return self._outbox.take()

    def turn_ended(self, told: str = "") -> list[Action]:
        """Learn that the current turn's body is over; `told` is for the client if it ended too early."""
        if self._finished:
            return []
        self.reading.close()
        self._eof = True
        self._hear(self._turn.close(told))
        self._advance()
        return self._outbox.take()

    def turn_refused(self, status: int, body: bytes = b"", retry_after: float | None = None) -> list[Action]:
        """Learn that a follow-up turn was answered with an error status; nothing of it was sent on."""
        if self._finished:
            return []
        self.notes.append(f"the model server answered a follow-up turn with status {status}")
        self.words.append(body[:_MAX_WORDS].decode(errors="replace"))
        again = self._follow_up.after_refusal(status, retry_after)
        if again is None:
            code = "rate_limit_exceeded" if status == 429 else "server_error"
            return self.abandon(f"the follow-up turn was refused with status {status}", code)
        self._outbox.act(again)
        self._begin_turn()
        return self._outbox.take()

    def abandon(self, reason: str, code: str = "server_error", *, told: str = "") -> list[Action]:
        """End the response as failed, whatever it waits for; `told` is what the client may know of it."""
        if self._finished:
            return []
        self.reading.stop()
        if self._turn.ended is None:
            self._hear(self._turn.abandon(reason, code, told=told))
        elif self._told_end:
            self._finish()
        else:
            self._fail(TurnEnded("failed", {}, {}, reason, code, broken=True, told=told))
        return self._outbox.take()

    def cancel(self) -> list[Action]:
        """End the response as its client wishes, with everything made so far."""
        self._cancelled = True
        return self.abandon("its client has cancelled the response")

    def stop(self, told: str) -> list[Action]:
        """End the response because this server stops, which is no fault of the model server's."""
        self._stopping = True
        return self.abandon("this server stops", told=told)

    def tool_progress(self, identifier: str, progress: ToolProgress) -> list[Action]:
        """Show a preview, as many as the client asked for at most."""
        call = self._calls.running.get(identifier)
        if call is None or call.previews >= self._calls.tool.previews:
            return []
        self._step(call, CallInput.PREVIEW, progress)
        call.previews += 1
        return self._outbox.take()

    def tool_finished(self, identifier: str, outcome: ToolOutcome) -> list[Action]:
        """Take a call's result. One that comes after the end is dropped."""
        call = self._calls.running.get(identifier)
        if call is None:
            return []
        self._conclude(call, outcome)
        self._client.tool_spent(outcome.usage)
        self._advance()
        return self._outbox.take()

    # -- what a turn says ----------------------------------------------------------------------

    def _hear(self, events: list[TurnEvent]) -> None:
        for event in events:
            self._on(event)

    def _on(self, event: TurnEvent) -> None:
        if isinstance(event, Delta):
            self._frames.append(self._client.event(event.item.slot, event.payload, event.raw))
            return
        match event:
            case Opened(item=item) if item.hosted:
                item.slot = self._calls.admit(item, self._new_id)
                if item.slot.admitted:
                    self._step(item.slot, CallInput.ANNOUNCE)
            case Opened():
                event.item.slot, frame = self._client.open(event.body, event.source)
                self._frames.append(frame)
            case Closed():
                if written_call(event.item, self._lowered.name):
                    self.notes.append(AS_TEXT)
                self._outbox.keep(self._record.native(event.item.slot.id, event.body))
                self._frames.append(self._client.close(event.item.slot, event.body, event.source))
            case CallSettled():
                self._settled(event.item.slot, event)
            case Started():
                self._record.heard(event.response)
                if not self._client.started:
                    self._frames += self._client.begin(event.response)
            case Loose():
                self._frames.append(self._client.loose(event.payload, event.raw))
            case TurnEnded():
                self._turn_over(event)
            case _:
                assert_never(event)

    def _settled(self, call: Call, event: CallSettled) -> None:
        outcome = self._calls.settle(call, event.arguments, event.problem)
        if not call.admitted:
            return
        if call.arguments:
            self._step(call, CallInput.START)
        if outcome is not None:
            self._conclude(call, outcome)
            return
        self._calls.running[call.id] = call
        self._outbox.act(Run(ToolCall(call.id, call.arguments)))

    def _turn_over(self, ended: TurnEnded) -> None:
        self.notes += self._turn.notes
        self.last_turn = ended
        self._client.spent(ended.response.get("usage"))
        self._record.heard(ended.response)
        self._record.turn_over()
        if ended.status == "failed":
            self._fail(ended)
        else:
            self._advance()

    # -- calls ---------------------------------------------------------------------------------

    def _conclude(self, call: Call, outcome: ToolOutcome) -> None:
        self._calls.conclude(call, outcome)
        self._outbox.keep(self._record.picture(call.final, call.data))
        self._step(call, CallInput.FAIL if outcome.error else CallInput.FINISH)

    def _step(self, call: Call, happened: CallInput, progress: ToolProgress | None = None) -> None:
        self._frames += tell(call, happened, self._calls.tool, self._client, progress)

    # -- the end of a turn and of the response -------------------------------------------------

    def _advance(self) -> None:
        """Go on, if the turn is over and no picture is being made."""
        ended = self._turn.ended
        if ended is None or self._finished or self._calls.running:
            return
        calls, items = self._calls, self._turn.items
        follow = ended.status == "completed" and calls.to_be_told and not items.client_called
        if not follow and not self._told_end:
            self._tell_end(ended)
        if not self._eof:
            return
        if follow:
            self._outbox.act(self._follow_up.next(self._turn))
            self._begin_turn()
        else:
            self._finish()

    def _fail(self, ended: TurnEnded) -> None:
        """Close what is open and end the response as failed, with everything made so far."""
        if not (self._cancelled or self._stopping):
            self.notes.append(f"the model server failed: {ended.reason}")
        if ended.words:
            self.words.append(ended.words[:_MAX_WORDS])
        for call in list(self._calls.running.values()):
            self._conclude(call, self._calls.cut_off())
        if not self._client.started:
            self._finished, self.status = True, "failed"
            self._outbox.act(Finish(None, failed=True, told=ended.told, stopping=self._stopping))
            return
        if not self._cancelled and not self._client.has_finished(self._calls.tool.item_type):
            self._frames.append(self._client.error(ended))
            self._failed = not ended.response
        self._tell_end(ended)
        if ended.broken or self._eof:
            self._finish()

    def _tell_end(self, ended: TurnEnded) -> None:
        wanted = ended.status == "completed" and not self._lowered.json_text
        if wanted and self._client.lacks_message(self._calls.tool.item_type):
            self._frames += self._client.empty_message()
        status = self.status = "cancelled" if self._cancelled else ended.status
        end = self._client.end(status, ended)
        if self._lowered.stream or not self._failed:  # else the client gets an error, and no response
            self._outbox.keep(self._record.response(self._client.told, self._follow_up.owed(self._turn)))
        self._frames.append(end)
        self._told_end = ended

    def _finish(self) -> None:
        self._finished = True
        if self._turn.sentinel and self._lowered.stream:
            self._frames.append(DONE)
        assert self._told_end is not None, "the client is told the end first"
        self._outbox.act(Finish(self._client.final, self._failed, self._told_end.told, self._stopping))
