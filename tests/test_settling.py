"""What a conversation owes is paid once the model server has taken it, before a client hears of it."""

from __future__ import annotations

import pytest
from imagecall.events.actions import Finish
from imagecall.middleware.headers import Headers
from imagecall.middleware.stored.owned_store import OwnedStore
from imagecall.middleware.stored.settling import SettlingSink
from owning import DATA, KITE, response

pytest_plugins = ["two_owners"]

OWED = {"type": "function_call_output", "call_id": "call_1", "output": "{}"}


class Asking:
    """A sink that notes at each call what the store then says is owed."""

    at_once = True

    def __init__(self, store: OwnedStore) -> None:
        self.seen: list[tuple[str, int]] = []
        self._store = store

    def head(self, status: int, headers: Headers) -> None:
        self.seen.append(("head", status))

    async def write(self, frames: bytes) -> None:
        await self._note("write")

    async def keepalive(self) -> None:
        await self._note("keepalive")

    async def close(self, finish: Finish) -> None:
        await self._note("close")

    async def _note(self, name: str) -> None:
        self.seen.append((name, len((await self._store.known({"conversation": "conv_1"})).owed)))


@pytest.mark.parametrize("accepted", [True, False])
async def test_a_debt_is_paid_before_the_first_word_if_the_request_was_accepted(
    accepted: bool, mine: OwnedStore
) -> None:
    await mine.keep_response(response(owed=(OWED,), conversation="conv_1"))
    asking = Asking(mine)
    sink = SettlingSink(asking, mine, "conv_1")
    assert sink.at_once
    if accepted:
        sink.head(200, [])
    await sink.keepalive()
    await sink.write(b"")
    await sink.close(Finish(None))
    owed = 0 if accepted else 1
    head = [("head", 200)] if accepted else []
    assert asking.seen == [*head, ("keepalive", 1), ("write", owed), ("close", owed)]


async def test_pictures_of_a_conversation_stay_in_reach_and_one_never_seen_stays_unknown(
    mine: OwnedStore,
) -> None:
    await mine.keep_picture(KITE, DATA)
    await mine.keep_response(response(owed=(OWED,), conversation="conv_1"))
    before = await mine.known({"conversation": "conv_1"})
    await mine.settle("conv_1")
    await mine.settle("conv_2")
    after = await mine.known({"conversation": "conv_1"})
    assert (len(after.reach), after.reach, after.owed) == (1, before.reach, ())
    assert (await mine.known({"conversation": "conv_2"})).reach == ()
