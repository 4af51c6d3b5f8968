"""The life of one hosted tool call, as the client is told of it.

One table holds every legal step. Quirks of model servers never reach it (`turn.py` has cleaned its
input), so a missing key is a bug of this program, not of a peer, and raises.

Each step says which events it puts on the wire. A failed call shows the same first steps as a
finished one, `working` included, and lacks only the previews and `finished`.
"""

from __future__ import annotations

from enum import Enum

from .errors import LocalProtocolError

__all__ = ["TRANSITIONS", "CallInput", "CallState", "step"]


class CallState(Enum):
    """Where a call stands. COMPLETED and FAILED are final."""

    NAMED = "named"
    ANNOUNCED = "announced"
    WORKING = "working"
    COMPLETED = "completed"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        """Whether nothing more will be said about the call."""
        return self in (CallState.COMPLETED, CallState.FAILED)


class CallInput(Enum):
    """What can happen to a call."""

    ANNOUNCE = "announce"
    """The model has named the tool; the client learns that a call has begun."""
    START = "start"
    """The arguments are settled and good."""
    PREVIEW = "preview"
    FINISH = "finish"
    FAIL = "fail"
    """Bad arguments, a refusing backend, a time-out, a turn that broke."""


_S, _I = CallState, CallInput

TRANSITIONS: dict[tuple[CallState, CallInput], tuple[CallState, tuple[str, ...]]] = {
    (_S.NAMED, _I.ANNOUNCE): (_S.ANNOUNCED, ("added", "started")),
    (_S.ANNOUNCED, _I.START): (_S.WORKING, ("working",)),
    (_S.ANNOUNCED, _I.FAIL): (_S.FAILED, ("working", "done")),
    (_S.WORKING, _I.PREVIEW): (_S.WORKING, ("partial",)),
    (_S.WORKING, _I.FINISH): (_S.COMPLETED, ("finished", "done")),
    (_S.WORKING, _I.FAIL): (_S.FAILED, ("done",)),
}
"""(state, input) → (next state, phases to tell). `HostedTool.phases` names them on the wire."""


def step(state: CallState, happened: CallInput) -> tuple[CallState, tuple[str, ...]]:
    """Return the next state and the phases to tell the client.

    Raises:
        LocalProtocolError: the table has no such step.
    """
    try:
        return TRANSITIONS[state, happened]
    except KeyError:
        raise LocalProtocolError(f"a call cannot {happened.value} when it is {state.value}") from None
