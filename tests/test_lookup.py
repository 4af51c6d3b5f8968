"""Turn two: what a request refers to, and whose that is."""

from __future__ import annotations

from typing import Any

import pytest
from imagecall.events.known import Known
from imagecall.events.pictures import Picture
from imagecall.middleware.store import Store
from imagecall.middleware.stored import lookup
from imagecall.middleware.stored.lookup import conversation_id, reach_of
from imagecall.middleware.stored.owned_store import OwnedStore
from owning import DATA, KITE, SKY, TEXT, refusal, response

pytest_plugins = ["two_owners"]


async def test_nothing_is_known_of_a_request_that_refers_to_nothing(mine: OwnedStore) -> None:
    assert await mine.known({"input": "Draw a kite."}) == Known()
    assert await mine.known({"input": [{"role": "user", "content": "Hi"}], "conversation": 3}) == Known()


async def test_a_picture_and_its_item_are_found_as_soon_as_it_is_made(mine: OwnedStore) -> None:
    await mine.keep_picture({**KITE, "result": "never kept here"}, DATA)
    assert await mine.picture("ig_kite") == DATA
    known = await mine.known({"input": [{"type": "image_generation_call", "id": "ig_kite"}]})
    assert known == Known(items={"ig_kite": KITE}, pictures=frozenset({"ig_kite"}))


async def test_every_item_of_a_response_can_be_referred_to(mine: OwnedStore) -> None:
    await mine.keep_response(response())
    known = await mine.known({"input": [{"id": "msg_1"}, {"type": "item_reference", "id": "ig_kite"}]})
    assert known == Known(items={"msg_1": TEXT, "ig_kite": KITE})


async def test_ids_never_seen_are_not_known(mine: OwnedStore) -> None:
    body = {"input": [{"type": "item_reference", "id": "msg_9"}], "previous_response_id": "resp_9"}
    assert await mine.known({**body, "conversation": {"id": "conv_9"}}) == Known()


async def test_the_last_turns_own_id_continues_a_response_with_its_pictures_in_reach(
    mine: OwnedStore,
) -> None:
    await mine.keep_picture(KITE, DATA)
    await mine.keep_response(response())
    known = await mine.known({"previous_response_id": "resp_1", "input": "Make it blue."})
    assert known == Known(previous="resp_inner", reach=(Picture("ig_kite"),))


async def test_what_the_model_server_still_waits_for_is_known(mine: OwnedStore) -> None:
    output = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
    await mine.keep_response(response(owed=(output,), conversation="conv_1"))
    assert (await mine.known({"previous_response_id": "resp_1"})).owed == (output,)
    assert (await mine.known({"conversation": "conv_1"})).owed == (output,)


async def test_a_response_without_an_id_at_the_model_server_cannot_be_continued(mine: OwnedStore) -> None:
    await mine.keep_response(response(upstream=()))
    status, message, param, _ = await refusal(mine.known({"previous_response_id": "resp_1"}))
    assert (status, param) == (400, "previous_response_id")
    assert message == (
        "The previous response 'resp_1' cannot be continued: the model server gave it no id, or never began "
        "it. Send its items in 'input' instead."
    )


async def test_pictures_of_the_user_stay_in_reach(mine: OwnedStore) -> None:
    await mine.keep_picture(KITE, DATA)
    parts = [
        {"type": "input_image", "image_url": SKY},
        {"type": "input_image", "image_url": "https://example.org/hill.png"},
        {"type": "input_image", "image_url": "ftp://example.org/lake.png"},
        {"type": "input_image", "file_id": "file_1"},
    ]
    output = [{"type": "input_image", "image_url": "data:image/png;base64,dHJlZQ=="}]
    given = [
        {"role": "user", "content": parts},
        {"type": "function_call_output", "call_id": "call_1", "output": output},
    ]
    await mine.keep_response(response(input=given))
    known = await mine.known({"previous_response_id": "resp_1"})
    sky, hill, tree, kite = known.reach
    assert hill == Picture(url="https://example.org/hill.png")
    assert kite == Picture("ig_kite")
    assert [await mine.picture(picture.id) for picture in (sky, tree)] == [b"c2t5", b"dHJlZQ=="]


async def test_pictures_of_all_turns_before_stay_in_reach(mine: OwnedStore) -> None:
    await mine.keep_picture(KITE, DATA)
    first = [{"role": "user", "content": [{"type": "input_image", "image_url": SKY}]}]
    await mine.keep_response(response(input=first))
    before = await mine.known({"previous_response_id": "resp_1"})
    blue = {**KITE, "id": "ig_blue"}
    await mine.keep_picture(blue, b"Ymx1ZQ==")
    second = response("resp_2", upstream=("resp_2",), body={"output": [blue]}, reach=reach_of(before))
    await mine.keep_response(second)
    known = await mine.known({"previous_response_id": "resp_2"})
    assert known.reach == (*before.reach, Picture("ig_blue"))
    assert len(known.reach) == 3


async def test_earlier_pictures_that_the_client_replays_are_in_reach_later(mine: OwnedStore) -> None:
    await mine.keep_picture(KITE, DATA)
    await mine.keep_picture({**KITE, "id": "ig_old"}, DATA)
    given = [
        {"type": "item_reference", "id": "ig_old"},
        {"type": "item_reference", "id": "msg_0"},
        {"type": "image_generation_call", "id": "ig_kite"},
        {"type": "image_generation_call", "id": "ig_sent", "result": "c2VudA=="},
        {"type": "image_generation_call", "id": "ig_bad", "status": "failed", "result": ""},
        {"type": "image_generation_call", "id": "ig_lost", "status": "completed", "result": None},
    ]
    await mine.keep_response(response(input=given, body={"output": [TEXT]}))
    known = await mine.known({"previous_response_id": "resp_1"})
    assert known.reach == (Picture("ig_old"), Picture("ig_kite"), Picture("ig_sent"))
    assert await mine.picture("ig_sent") == b"c2VudA=="


async def test_a_replayed_item_does_not_replace_the_one_that_was_made_here(mine: OwnedStore) -> None:
    await mine.keep_picture(KITE, DATA)
    await mine.keep_response(response(input=[{**KITE, "revised_prompt": "a lie", "result": "bGll"}]))
    assert await mine.picture("ig_kite") == DATA
    assert (await mine.known({"input": [{"id": "ig_kite"}]})).items == {"ig_kite": KITE}


async def test_pictures_whose_bytes_are_gone_are_not_in_reach(mine: OwnedStore) -> None:
    failed = {**KITE, "id": "ig_failed", "status": "failed"}
    await mine.keep_response(response(body={"output": [KITE, failed]}))
    assert (await mine.known({"previous_response_id": "resp_1"})).reach == ()


async def test_only_the_last_20_pictures_stay_in_reach(mine: OwnedStore) -> None:
    urls = [f"https://example.org/{number}.png" for number in range(25)]
    content = [{"type": "input_image", "image_url": url} for url in urls]
    await mine.keep_response(response(input=[{"role": "user", "content": content}]))
    known = await mine.known({"previous_response_id": "resp_1"})
    assert [picture.url for picture in known.reach] == urls[-19:]  # and the kite, whose bytes are gone


async def test_a_conversation_remembers_its_pictures(mine: OwnedStore) -> None:
    await mine.keep_picture(KITE, DATA)
    await mine.keep_response(response(conversation="conv_1"))
    for conversation in ("conv_1", {"id": "conv_1"}):
        known = await mine.known({"conversation": conversation})
        assert known == Known(reach=(Picture("ig_kite"),))


async def test_a_response_that_still_runs_cannot_be_continued(mine: OwnedStore) -> None:
    await mine.keep_response(response(status="in_progress", background=True))
    assert await refusal(mine.known({"previous_response_id": "resp_1"})) == (
        400,
        "The previous response 'resp_1' has not finished yet: wait for it, or cancel it.",
        "previous_response_id",
        None,
    )


async def test_an_id_of_somebody_else_an_inner_one_and_a_gone_one_are_refused_in_the_same_words(
    mine: OwnedStore, yours: OwnedStore
) -> None:
    await mine.keep_response(response())
    await mine.keep_response(response("resp_2", upstream=("resp_2",)))
    await mine.delete("resp_2")
    for store, name in ((yours, "resp_1"), (mine, "resp_inner"), (mine, "resp_2"), (yours, "resp_2")):
        assert await refusal(store.response(name)) == (
            404,
            f"Response with id '{name}' not found.",
            None,
            None,
        )
        assert await refusal(store.delete(name)) == (404, f"Response with id '{name}' not found.", None, None)
        assert await refusal(store.known({"previous_response_id": name})) == (
            404,
            f"Previous response with id '{name}' not found.",
            "previous_response_id",
            "previous_response_not_found",
        )


def lose_responses(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a store keep everything but responses."""
    put = store.put

    async def fails(key: str, value: bytes, *, ttl: float) -> None:
        if ":response:" in key:
            raise ConnectionError
        await put(key, value, ttl=ttl)

    monkeypatch.setattr(store, "put", fails)


async def test_a_response_that_the_store_has_lost_is_left_to_the_model_server(
    store: Store, mine: OwnedStore, yours: OwnedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_responses(store, monkeypatch)
    await mine.keep_response(response())
    assert await mine.response("resp_1") is None
    assert await mine.known({"previous_response_id": "resp_1"}) == Known()
    for owned, name in ((yours, "resp_1"), (mine, "resp_inner")):
        assert (await refusal(owned.response(name)))[0] == 404


async def test_a_response_in_the_background_that_the_store_has_lost_is_gone_since_nobody_else_knew_it(
    store: Store, mine: OwnedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_responses(store, monkeypatch)
    await mine.keep_response(response(background=True))
    assert (await refusal(mine.response("resp_1")))[0] == 404
    assert (await refusal(mine.known({"previous_response_id": "resp_1"})))[0] == 404


async def test_too_many_references_are_refused_before_the_store_is_asked(
    store: Store, mine: OwnedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "_MAX_REFERENCES", 60)
    await mine.keep_response(response())
    names = ["msg_1", *(f"msg_{number}" for number in range(100, 159))]
    given = [{"type": "item_reference", "id": name} for name in (*names, *names)]
    assert await mine.known({"input": given}) == Known(items={"msg_1": TEXT})
    monkeypatch.setattr(store, "get", None)
    assert await refusal(mine.known({"input": [*given, {"id": "ig_1"}]})) == (
        400,
        (
            "The input names 61 items by their ids alone, more than the 60 that are looked up; "
            "send the items themselves, or go on with 'previous_response_id'."
        ),
        "input",
        None,
    )


async def test_an_item_of_somebody_else_does_not_reach_the_model_server(
    mine: OwnedStore, yours: OwnedStore
) -> None:
    await mine.keep_response(response())
    given = [{"role": "user", "content": "Hi", "id": "msg_1"}, 3, {"type": "item_reference", "id": "msg_1"}]
    assert await refusal(yours.known({"input": given})) == (
        404,
        (
            "Item with id 'msg_1' not found. Items are not persisted when `store` is set to false. "
            "Try again with `store` set to true, or remove this item from your input."
        ),
        "input[2].id",
        None,
    )


async def test_a_picture_of_somebody_else_is_as_unknown_as_any(mine: OwnedStore, yours: OwnedStore) -> None:
    await mine.keep_picture(KITE, DATA)
    assert await yours.picture("ig_kite") is None
    for kind in ("image_generation_call", "item_reference"):
        given = [{"type": kind, "id": "ig_kite"}]
        assert await yours.known({"input": given}) == Known()


async def test_replaying_somebody_elses_picture_neither_reads_nor_takes_it(
    mine: OwnedStore, yours: OwnedStore
) -> None:
    await mine.keep_picture(KITE, DATA)
    await yours.keep_response(response("resp_2", upstream=(), input=[{**KITE, "result": "bGll"}]))
    assert (await mine.picture("ig_kite"), await yours.picture("ig_kite")) == (DATA, b"bGll")
    assert (await mine.known({"input": [{"id": "ig_kite"}]})).pictures == {"ig_kite"}


async def test_logs_and_conversations_are_the_owners_too(mine: OwnedStore, yours: OwnedStore) -> None:
    await mine.keep_picture(KITE, DATA)
    await mine.keep_response(response(conversation="conv_1"))
    await mine.log("resp_1", b"piece")
    assert await yours.read_log("resp_1", 0) == []
    assert await yours.known({"conversation": "conv_1"}) == Known()


async def test_two_owners_of_one_id_each_have_their_own(mine: OwnedStore, yours: OwnedStore) -> None:
    await mine.keep_response(response(input="mine"))
    await yours.keep_response(response(input="yours"))
    for store, text in ((mine, "mine"), (yours, "yours")):
        stored = await store.response("resp_1")
        assert stored is not None
        assert stored.input[0]["content"][0]["text"] == text


async def test_ids_of_any_text_are_only_ids(mine: OwnedStore) -> None:
    names = ["a b", "ä", "\ud800", "x" * 5_000, "conversation:1", "\n"]
    for name in names:
        await mine.keep_response(response(name, upstream=()))
    found = [await mine.response(name) for name in names]
    assert [one and one.id for one in found] == names


def test_a_conversation_is_named_by_its_id_or_an_object_with_it() -> None:
    bodies: list[dict[str, Any]] = [
        {},
        {"conversation": ""},
        {"conversation": "c"},
        {"conversation": {"id": "c"}},
        {"conversation": {}},
    ]
    assert [conversation_id(body) for body in bodies] == [None, None, "c", "c", None]
