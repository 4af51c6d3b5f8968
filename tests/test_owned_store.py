"""What a client may ask for again, and what becomes of it when the store fails."""

from __future__ import annotations

from typing import Any

import pytest
from imagecall.events.known import Known
from imagecall.events.pictures import Picture
from imagecall.events.wire import loads
from imagecall.middleware.store import GONE, MemoryStore, Store
from imagecall.middleware.stored.owned_store import OwnedStore
from imagecall.middleware.stored.safe import StoreError
from owning import DATA, KITE, SKY, TEXT, refusal, response

pytest_plugins = ["two_owners"]


async def test_a_response_never_seen_is_left_to_the_model_server(mine: OwnedStore) -> None:
    assert await mine.response("resp_9") is None
    await mine.delete("resp_9")


async def test_a_response_is_shown_with_its_pictures(mine: OwnedStore) -> None:
    await mine.keep_picture(KITE, DATA)
    body = {"id": "resp_1", "output": [KITE, TEXT, {**KITE, "id": "ig_lost"}], "usage": None}
    await mine.keep_response(response(body=body))
    stored = await mine.response("resp_1")
    assert stored is not None
    assert loads(await mine.body(stored)) == {
        "id": "resp_1",
        "usage": None,
        "output": [{**KITE, "result": DATA.decode()}, TEXT, {**KITE, "id": "ig_lost", "result": ""}],
    }


async def test_a_body_of_nothing_but_output_is_json(mine: OwnedStore) -> None:
    assert await mine.body(response(body={"output": [TEXT, "stray"]})) == (
        b'{"output":[{"id":"msg_1","type":"message","role":"assistant","content":[]}]}'
    )
    assert await mine.body(response(body={})) == b'{"output":[]}'


async def test_no_base64_is_kept_in_the_response_itself(mine: OwnedStore, store: Store) -> None:
    given = [{"role": "user", "content": [{"type": "input_image", "image_url": SKY}]}]
    body = {"output": [{**KITE, "result": "c2VjcmV0"}]}
    await mine.keep_response(response(body=body, input=given))
    stored = await mine.response("resp_1")
    assert stored is not None
    assert b"c2t5" not in stored.encode()
    assert b"c2VjcmV0" not in stored.encode()


async def test_a_response_is_read_as_it_was_kept(mine: OwnedStore) -> None:
    output = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
    kept = response(
        status="in_progress",
        input=[{"type": "message", "id": "msg_0", "role": "user", "content": []}],
        reach=("ig_old",),
        conversation="conv_1",
        background=True,
        owed=(output,),
    )
    await mine.keep_response(kept)
    stored = await mine.response("resp_1")
    assert stored is not None
    assert stored.reach == ("ig_old", "ig_kite")
    assert stored == response(
        status="in_progress",
        input=kept.input,
        reach=stored.reach,
        conversation="conv_1",
        background=True,
        owed=(output,),
    )


async def test_keeping_what_was_read_changes_nothing(mine: OwnedStore) -> None:
    given = [{"role": "user", "content": [{"type": "input_image", "image_url": SKY}]}]
    await mine.keep_response(response(input=given))
    first = await mine.response("resp_1")
    assert first is not None
    await mine.keep_response(first)
    assert await mine.response("resp_1") == first
    assert (await mine.input_items(first))[0]["content"] == given[0]["content"]


async def test_the_input_is_shown_whole(mine: OwnedStore) -> None:
    await mine.keep_picture(KITE, DATA)
    shot = {"type": "computer_screenshot", "image_url": SKY}
    given = [
        {
            "type": "message",
            "role": "user",
            "id": "msg_7",
            "content": [{"type": "input_image", "image_url": SKY}],
        },
        {"type": "image_generation_call", "id": "ig_kite"},
        {"type": "item_reference", "id": "ig_kite"},
        {"type": "item_reference", "id": "msg_9"},
        {"type": "image_generation_call", "id": "ig_sent", "result": "data:image/png;base64,c2VudA=="},
        {"type": "computer_call_output", "id": "cco_1", "call_id": "call_1", "output": shot},
    ]
    await mine.keep_response(response(input=[*given, "stray"]))
    stored = await mine.response("resp_1")
    assert stored is not None
    kite = {**KITE, "result": DATA.decode()}
    sent = {"type": "image_generation_call", "id": "ig_sent", "status": "completed", "result": "c2VudA=="}
    assert await mine.input_items(stored) == [given[0], kite, kite, given[3], sent, given[5], "stray"]


async def test_pictures_of_the_input_that_are_gone_are_shown_empty(store: Store, mine: OwnedStore) -> None:
    given = [{"role": "user", "content": [{"type": "input_image", "detail": "low", "image_url": SKY}]}]
    await mine.keep_response(response(input=given))
    stored = await mine.response("resp_1")
    assert stored is not None
    (name,) = [one for one in stored.reach if one.startswith("img_")]
    await store.delete(mine._keys.of("picture", name))
    shown = (await mine.input_items(stored))[0]["content"]
    assert shown == [{"type": "input_image", "detail": "low", "image_url": ""}]


async def test_large_pictures_of_the_input_are_kept_like_small_ones(mine: OwnedStore) -> None:
    url = "data:image/png;base64," + "c2t5" * (1 << 19)
    await mine.keep_response(response(input=[{"role": "user", "content": [{"image_url": url}]}]))
    stored = await mine.response("resp_1")
    assert stored is not None
    assert (await mine.input_items(stored))[0]["content"] == [{"image_url": url}]


async def test_a_deleted_response_takes_its_items_pictures_and_log_along(mine: OwnedStore) -> None:
    await mine.keep_picture(KITE, DATA)
    await mine.keep_response(response())
    await mine.log("resp_1", b"piece")
    await mine.delete("resp_1")
    assert await mine.picture("ig_kite") is None
    assert await mine.read_log("resp_1", 0) == []
    assert await mine.known({"input": [{"id": "ig_kite"}, {"id": "msg_1"}]}) == Known()


async def test_a_background_response_that_was_deleted_does_not_come_back(mine: OwnedStore) -> None:
    running = response(status="in_progress", background=True)
    await mine.keep_response(running)
    await mine.delete("resp_1")
    await mine.keep_response(running)
    assert (await refusal(mine.response("resp_1")))[0] == 404


async def test_a_log_is_read_from_any_piece_on(mine: OwnedStore) -> None:
    assert await mine.log("resp_1", b"zero")
    assert await mine.log("resp_1", b"one")
    assert await mine.read_log("resp_1", 1) == [b"one"]
    assert await mine.read_log("resp_1", 2, 0.01) == []


class Broken:
    """A store whose every operation fails, and which cannot tell whether something is there."""

    async def get(self, key: str) -> bytes:
        raise OSError

    async def put(self, key: str, value: bytes, *, ttl: float) -> None:
        raise OSError

    async def delete(self, key: str) -> None:
        raise OSError

    async def append(self, key: str, piece: bytes, *, ttl: float) -> None:
        raise OSError

    async def read(self, key: str, start: int, *, wait: float = 0.0) -> list[bytes]:
        raise OSError


async def test_requests_of_all_owners_know_of_one_failure(caplog: pytest.LogCaptureFixture) -> None:
    mine = OwnedStore(Broken(), "me", ttl=60)
    yours = OwnedStore(mine.shared, "you", ttl=60)
    await mine.picture("ig_kite")
    await yours.picture("ig_kite")
    assert len(caplog.messages) == 1


async def test_with_a_store_that_fails_what_others_may_know_was_never_seen(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = OwnedStore(Broken(), "me", ttl=60)
    await store.keep_picture(KITE, DATA)
    await store.keep_response(response(background=True))
    item = {"id": "ig_kite", "type": "image_generation_call", "status": "completed"}
    assert await store.known({"input": [item], "conversation": "conv_1"}) == Known()
    assert await store.response("resp_1") is None
    assert await store.picture("ig_kite") is None
    assert not await store.log("resp_1", b"piece")
    assert await store.read_log("resp_1", 0) == []
    assert loads(await store.body(response()))["output"][0]["result"] == ""
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.known({"previous_response_id": "resp_1"}),
        lambda store: store.known({"input": [{"type": "item_reference", "id": "msg_1"}]}),
        lambda store: store.known({"input": [{"type": "image_generation_call", "id": "ig_kite"}]}),
        lambda store: store.strict.known({"conversation": "conv_1"}),
        lambda store: store.strict.response("resp_1"),
        lambda store: store.strict.body(response()),
        lambda store: store.strict.read_log("resp_1", 0),
    ],
)
async def test_with_a_store_that_fails_nothing_is_said_of_what_only_it_knows(ask: Any) -> None:
    with pytest.raises(StoreError):
        await ask(OwnedStore(Broken(), "me", ttl=60))


async def test_what_this_version_cannot_read_is_gone(store: Store, mine: OwnedStore) -> None:
    await mine.keep_response(response(conversation="conv_1"))
    for kind, name in (("response", "resp_1"), ("item", "ig_kite"), ("conversation", "conv_1")):
        await store.put(mine._keys.of(kind, name), b"{", ttl=60)
    assert await mine.known({"input": [{"id": "ig_kite"}], "conversation": "conv_1"}) == Known()
    assert (await refusal(mine.response("resp_1")))[0] == 404


async def test_a_thousand_conversations_stay_within_small_bounds() -> None:
    store = MemoryStore(entries=200, max_bytes=200_000)
    mine = OwnedStore(store, "me", ttl=60)
    for number in range(1_000):
        kite = {**KITE, "id": f"ig_{number}"}
        url = f"data:image/png;base64,{number:0>1000}"
        await mine.keep_picture(kite, bytes(1_000))
        given = [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]
        await mine.keep_response(response(f"resp_{number}", body={"output": [kite]}, input=given))
        await mine.log(f"resp_{number}", bytes(500))
    shelves = (store._values, store._logs)
    assert sum(len(shelf._kept) for shelf in shelves) <= 200
    assert sum(shelf._size for shelf in shelves) <= 200_000
    assert all(len(shelf._gone) <= 200 for shelf in shelves)
    assert (await mine.known({"previous_response_id": "resp_999"})).reach[-1] == Picture("ig_999")
    assert await mine.picture("ig_0") is None
    assert await store.get(mine._keys.of("response", "resp_900")) in (GONE, None)
