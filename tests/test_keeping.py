"""What is handed to the store: each picture before the client sees it, the response before its end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from driving import JsonAnswer, Refusal, drive, fail, paint
from exchanges import Steps, ask, exchange, oslo, outline, painting, said, says, turn
from imagecall.events.actions import KeepPicture, KeepResponse
from imagecall.events.tools.base import ToolCall, ToolOutcome
from kite import HOSTED
from rules import check_stream, read_events
from transcript import Event, encode, event, number

KITE = turn(painting("a kite"))
DONE = turn(says("Done."), number_of=2)
ITEM = {
    "id": "ig_1",
    "type": "image_generation_call",
    "status": "completed",
    "revised_prompt": "a kite",
    "action": "generate",
    "size": "48x32",
    "output_format": "png",
    "background": "opaque",
    "quality": "auto",
}


def final(body: bytes) -> Event:
    response: Event = read_events(body)[-1]["response"]
    return response


def without_pictures(response: Event) -> Event:
    """Return a response object as it is kept."""
    kept = [
        {
            key: value
            for key, value in item.items()
            if (item["type"], key) != ("image_generation_call", "result")
        }
        for item in response["output"]
    ]
    return {**response, "output": kept}


# -- pictures --------------------------------------------------------------------------------------


def test_a_picture_is_kept_before_the_client_sees_it() -> None:
    steps = Steps(ask())
    assert "keep ig_1" not in steps.turn(KITE)
    assert steps.finished("ig_1") == [
        "keep ig_1",
        "0 completed",
        "0 - image_generation_call completed a kite",
        "ask again",
    ]
    (kept,) = (action for action in steps.actions if isinstance(action, KeepPicture))
    assert kept.item == ITEM
    assert kept.data == read_events(steps.body)[-1]["item"]["result"].encode()


def test_the_picture_of_an_equal_call_is_kept_under_its_own_id() -> None:
    driven = exchange(ask(), KITE, turn(painting("A  KITE", 0, "fc_b")), DONE)
    first, second, response = driven.kept
    assert isinstance(first, KeepPicture)
    assert isinstance(second, KeepPicture)
    assert (first.item["id"], second.item["id"]) == ("ig_1", "ig_2")
    assert first.data == second.data
    assert isinstance(response, KeepResponse)
    assert response.pictures == ("ig_1", "ig_2")


def test_pictures_are_told_in_the_order_of_the_output() -> None:
    steps = Steps(ask())
    steps.turn(turn(painting("a cat"), painting("a dog", 1, "fc_b")))
    steps.finished("ig_2")
    steps.finished("ig_1")
    steps.turn(DONE)
    (response,) = (action for action in steps.actions if isinstance(action, KeepResponse))
    assert response.pictures == ("ig_1", "ig_2")


def test_a_failed_picture_is_not_kept_but_told() -> None:
    driven = exchange(ask(), KITE, DONE, outcome=fail)
    (response,) = driven.kept
    assert isinstance(response, KeepResponse)
    assert response.pictures == ()
    assert response.response == without_pictures(final(driven.body))


def test_the_picture_of_a_model_that_has_the_tool_itself_is_kept_as_well() -> None:
    native = {"id": "ig_n", "type": "image_generation_call", "status": "completed", "result": "AAAA"}
    made = [
        event("output_item.added", output_index=0, item={**native, "status": "in_progress", "result": None}),
        event("output_item.done", output_index=0, item=native),
    ]
    driven = drive(ask(), [turn(made, painting("a kite", 1)), DONE])
    picture, _, response = driven.kept
    shown = {key: native[key] for key in ("id", "type", "status")}
    assert picture == KeepPicture({**shown, "output_format": "png"}, b"AAAA")
    assert isinstance(response, KeepResponse)
    assert response.pictures == ("ig_n", "ig_1")
    assert "AAAA" not in json.dumps(response.response)
    assert final(driven.body)["output"][0]["result"] == "AAAA"


# -- the response ----------------------------------------------------------------------------------


def test_the_response_is_kept_before_the_client_hears_of_its_end() -> None:
    driven = exchange(ask(), KITE, DONE)
    assert driven.response == KeepResponse(
        without_pictures(final(driven.body)), ("resp_1", "resp_2"), ("ig_1",), ()
    )
    steps = Steps(ask())
    lines = steps.turn(DONE)
    assert lines.index("keep the response") < lines.index("completed")


def test_a_client_that_wants_no_stream_has_the_same_kept() -> None:
    streamed = drive(ask(), [KITE, DONE])
    whole = drive(ask(stream=False), [KITE, DONE])
    assert whole.kept == streamed.kept
    assert whole.sends == []
    response = json.loads(whole.finish.response) if whole.finish and whole.finish.response else {}
    assert whole.response.response == without_pictures(response)


def test_an_answer_in_json_is_kept() -> None:
    answer = {"id": "resp_9", "object": "response", "status": "completed", "model": "m", "output": []}
    driven = drive(ask(stream=False), [JsonAnswer(json.dumps(answer).encode())])
    assert (driven.response.upstream, driven.response.response["status"]) == (("resp_9",), "completed")


@pytest.mark.parametrize("status", ["failed", "incomplete"])
def test_a_response_that_ends_badly_is_kept_as_it_is(status: str) -> None:
    fields: Event = {"error": {"code": "server_error", "message": "x"}} if status == "failed" else {}
    driven = exchange(ask(), KITE, turn(says("Do"), number_of=2, status=status, **fields))
    assert driven.response.response["status"] == status
    assert driven.response.upstream == ("resp_1", "resp_2")
    assert driven.response.response == without_pictures(final(driven.body))


def test_a_follow_up_that_is_refused_leaves_the_turns_before_it() -> None:
    driven = exchange(ask(), KITE, Refusal(400))
    assert driven.response.upstream == ("resp_1",)
    assert (driven.response.response["status"], driven.response.pictures) == ("failed", ("ig_1",))


def test_what_never_began_is_not_kept() -> None:
    assert drive(ask(), [b""]).kept == []


def test_a_failure_that_a_client_without_a_stream_may_try_again_is_not_kept() -> None:
    cut = DONE[: DONE.rindex(b"event: response.completed")]
    assert drive(ask(stream=False), [cut]).kept == []
    assert drive(ask(), [cut]).response.response["status"] == "failed"


@pytest.mark.parametrize(
    ("first", "last", "upstream"),
    [("resp_a", "resp_b", ("resp_b",)), ("resp_a", None, ("resp_a",)), (None, None, ()), (7, "", ())],
)
def test_of_a_turns_ids_the_last_one_counts(first: object, last: object, upstream: tuple[str, ...]) -> None:
    start = {"id": first, "object": "response", "created_at": 1, "model": "m", "status": "in_progress"}
    end = {**start, "id": last, "status": "completed", "output": []}
    body = encode(number([event("created", response=start), event("completed", response=end)]))
    assert drive(ask(), [body]).response.upstream == upstream


def test_a_server_whose_turns_share_one_id_has_one_id_to_ask_for() -> None:
    assert exchange(ask(), KITE, turn(says("Done."))).response.upstream == ("resp_1",)


def test_the_calls_of_a_last_turn_leave_their_outputs_to_be_sent() -> None:
    driven = exchange(ask(max_tool_calls=1), turn(painting("a kite"), painting("a dog", 1, "fc_b"), oslo(2)))
    kite, dog = driven.response.owed
    assert (kite["type"], kite["call_id"], dog["call_id"]) == (
        "function_call_output",
        "call_fc_a",
        "call_fc_b",
    )
    assert json.loads(kite["output"])["image_id"] == "ig_1"
    assert json.loads(dog["output"])["status"] == "not run"


# -- its id ----------------------------------------------------------------------------------------


def test_the_servers_id_for_the_first_turn_is_the_responses() -> None:
    steps = Steps(ask())
    assert steps.translator.response_id == ""
    steps.turn(KITE)
    assert steps.translator.response_id == "resp_1"
    steps.finished("ig_1")
    steps.turn(DONE)
    assert steps.translator.response_id == "resp_1"


def test_an_id_that_the_client_knows_already_is_the_responses() -> None:
    steps = Steps(ask(), response_id="resp_bg")
    assert steps.translator.response_id == "resp_bg"
    steps.turn(DONE)
    assert {one["response"]["id"] for one in read_events(steps.body) if "response" in one} == {"resp_bg"}
    assert steps.translator.response_id == "resp_bg"
    (kept,) = (action for action in steps.actions if isinstance(action, KeepResponse))
    assert (kept.response["id"], kept.upstream) == ("resp_bg", ("resp_2",))


# -- cancelled -------------------------------------------------------------------------------------


def test_a_cancelled_response_ends_with_everything_made_so_far_and_no_error() -> None:
    steps = Steps(ask())
    steps.turn(turn(painting("a cat"), painting("a dog", 1, "fc_b")))
    steps.finished("ig_1")
    assert steps.take(steps.translator.cancel()) == [
        "keep the response",
        "1 - image_generation_call failed cancelled a dog",
        "failed",
        "finish",
    ]
    response = final(steps.body)
    assert (response["status"], response["error"], response["incomplete_details"]) == (
        "cancelled",
        None,
        None,
    )
    assert [item["status"] for item in response["output"]] == ["completed", "failed"]
    assert json.loads(steps.finish.response or b"") == response
    assert not steps.finish.failed
    assert steps.translator.notes == []
    assert steps.take(steps.translator.cancel()) == []


def test_a_response_is_cancelled_while_the_server_speaks() -> None:
    steps = Steps(ask())
    steps.take(steps.translator.receive(DONE[: DONE.index(b"event: response.output_text.done")]))
    assert steps.take(steps.translator.cancel()) == [
        "keep the response",
        *said("Done.")[4:-1],
        "0 - message incomplete Done.",
        "failed",
        "finish",
    ]
    assert final(steps.body)["status"] == "cancelled"
    assert check_stream(steps.body, tools=[HOSTED]) == []


def test_a_response_that_has_ended_cannot_be_cancelled() -> None:
    steps = Steps(ask())
    steps.take(steps.translator.receive(DONE))
    assert steps.take(steps.translator.cancel()) == ["finish"]
    assert final(steps.body)["status"] == "completed"


def test_a_response_that_has_not_begun_is_cancelled_without_a_word() -> None:
    steps = Steps(ask())
    assert steps.take(steps.translator.cancel()) == ["finish"]
    assert (steps.finish.response, steps.body) == (None, b"")


# -- what the model hears of a file ----------------------------------------------------------------


def test_only_the_model_is_told_where_a_picture_was_written() -> None:
    def write(call: ToolCall) -> ToolOutcome:
        made = paint(call)
        return ToolOutcome(data=made.data, facts=made.facts, path="/srv/resp_1/ig_1.png")

    driven = exchange(ask(), KITE, turn(painting("a kite", 0, "fc_b")), DONE, outcome=write)
    outputs = [item for item in driven.asked[2]["input"] if item.get("type") == "function_call_output"]
    assert [json.loads(item["output"])["saved_as"] for item in outputs] == ["/srv/resp_1/ig_1.png"] * 2
    assert b"/srv/" not in driven.body
    assert "/srv/" not in repr(driven.kept)
    plain: Any = exchange(ask(), KITE, DONE).asked[1]["input"][-1]
    assert "saved_as" not in json.loads(plain["output"])
    assert outline(driven)[-1] == "completed"
