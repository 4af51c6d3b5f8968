"""Each rule, broken once in a stream that is otherwise valid, is named."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
from sample_stream import (
    IMAGE,
    MESSAGE,
    PART,
    all_responses,
    ask,
    check,
    done_item,
    drop,
    fail_image,
    failed_stream,
    get,
    put_last,
    stream,
    twice,
    valid,
    without_field,
)
from transcript import Event, encode, event, number

Mutation = Callable[[list[Event]], object]

BREACHES: dict[str, tuple[Mutation, str]] = {
    "a gap in the numbers": (lambda e: e[4].update(sequence_number=9), "sequence_number does not run"),
    "a boolean for a number": (lambda e: e[1].update(sequence_number=True), "sequence_number does not run"),
    "no created": (lambda e: drop(e, "created"), "opens with"),
    "created twice": (lambda e: twice(e, "created"), "is sent 2 times"),
    "in_progress twice": (lambda e: twice(e, "in_progress"), "is sent 2 times"),
    "no terminal event": (lambda e: drop(e, "completed"), "not exactly one terminal event"),
    "two terminal events": (lambda e: twice(e, "completed"), "not exactly one terminal event"),
    "an event after the end": (lambda e: e.insert(2, e.pop()), "not exactly one terminal event"),
    "an error before success": (lambda e: number(e).insert(-1, {"type": "error"}), "An error frame stands"),
    "an error with no nested error": (lambda e: e.insert(-1, {"type": "error"}), "no full nested error"),
    "a top-level error key": (lambda e: e[3].update(error=None), "top-level error key"),
    "another response id": (lambda e: e[-1]["response"].update(id="resp_2"), "The response's id changes"),
    "another creation time": (lambda e: e[-1]["response"].update(created_at=2), "created_at changes"),
    "an item id twice": (
        lambda e: get(e, "output_item.added", 2)["item"].update(id="ig_1"),
        "The item id 'ig_1' is used twice",
    ),
    "a skipped index": (lambda e: get(e, "output_item.added", 3).update(output_index=4), "output_index 4"),
    "an index that is text": (
        lambda e: get(e, "output_text.delta").update(output_index="2"),
        "output_index '2'",
    ),
    "a taken index": (lambda e: get(e, "output_item.added", 1).update(output_index=0), "which is taken"),
    "content before its item": (lambda e: drop(e, "output_item.added", 2), "is new"),
    "an item announced twice": (lambda e: twice(e, "output_item.added", 2), "not announced once"),
    "an item not done": (lambda e: drop(e, "output_item.done", 2), "not done once and last"),
    "an item done twice": (lambda e: twice(e, "output_item.done", 2), "not done once and last"),
    "something behind done": (lambda e: put_last(e, "output_text.delta"), "not done once and last"),
    "another item_id": (lambda e: get(e, "output_text.delta").update(item_id="msg_2"), "names 'msg_2'"),
    "an event of another type's": (
        lambda e: e.insert(-1, event("output_text.delta", 3, "fc_1", delta="")),
        "is sent about a function_call",
    ),
    "an id that changes": (lambda e: done_item(e, 2, id="msg_2"), "id changes"),
    "a call_id that changes": (lambda e: done_item(e, 3, call_id="call_2"), "call_id changes"),
    "an empty id": (lambda e: get(e, "output_item.added")["item"].update(id=""), "its id is ''"),
    "done at the start": (
        lambda e: get(e, "output_item.added", 3)["item"].update(status="completed"),
        "announced with the status 'completed'",
    ),
    "in progress at the end": (lambda e: done_item(e, 2, status="in_progress"), "done with the status"),
    "a call without its name": (
        lambda e: [
            i.pop("name")
            for i in (get(e, "output_item.added", 3)["item"], get(e, "output_item.done", 3)["item"])
        ],
        "call_id or name is missing",
    ),
    "a message that starts full": (
        lambda e: get(e, "output_item.added", 2)["item"].update(content=[PART]),
        "start as an assistant's with no content",
    ),
    "arguments unlike their deltas": (lambda e: done_item(e, 3, arguments="{}"), "was streamed"),
    "arguments.done unlike the item's": (
        lambda e: get(e, "function_call_arguments.done").update(arguments="{}"),
        "is not the last word",
    ),
    "no arguments.done": (lambda e: drop(e, "function_call_arguments.done"), "is complete without"),
    "arguments.done twice": (lambda e: twice(e, "function_call_arguments.done"), "is not the last word"),
    "a part added at the wrong place": (
        lambda e: get(e, "content_part.added").update(content_index=1),
        "part 1",
    ),
    "a part of the wrong type": (
        lambda e: get(e, "content_part.added")["part"].update(type="summary_text"),
        "is added to a message",
    ),
    "a part added with text": (lambda e: get(e, "content_part.added")["part"].update(text="H"), "text in it"),
    "no part": (lambda e: drop(e, "content_part.added"), "was not added as output_text"),
    "no index of the part": (lambda e: get(e, "output_text.delta").pop("content_index"), "was not added"),
    "a delta after the text's end": (
        lambda e: e.insert(e.index(get(e, "content_part.done")), copy.deepcopy(get(e, "output_text.delta"))),
        "after the end of its part",
    ),
    "text.done unlike its deltas": (
        lambda e: get(e, "output_text.done").update(text="There."),
        "was streamed",
    ),
    "part.done unlike its deltas": (
        lambda e: get(e, "content_part.done")["part"].update(text="x"),
        "was streamed",
    ),
    "no text.done": (lambda e: drop(e, "output_text.done"), "is done before its text is"),
    "no part.done": (lambda e: drop(e, "content_part.done"), "is never done"),
    "part.done twice": (lambda e: twice(e, "content_part.done"), "not open in this message"),
    "an item unlike its stream": (
        lambda e: done_item(e, 2, content=[{**PART, "text": "x"}]),
        "its content is",
    ),
    "no summary part": (lambda e: drop(e, "reasoning_summary_part.added"), "was not added as summary_text"),
    "text without annotations": (
        lambda e: done_item(e, 2, content=[{"type": "output_text", "text": "Here."}]),
        "no list of annotations",
    ),
    "an announced result": (
        lambda e: get(e, "output_item.added", 1)["item"].update(result=None),
        "instead of id, type, status",
    ),
    "no generating": (lambda e: drop(e, "image_generation_call.generating"), "it goes through"),
    "no completed": (lambda e: drop(e, "image_generation_call.completed"), "it goes through"),
    "a stray key": (
        lambda e: get(e, "image_generation_call.completed").update(result="x"),
        "image_generation_call.completed has the keys",
    ),
    "a stray key of a preview": (
        lambda e: get(e, "image_generation_call.partial_image").update(result="x"),
        "image_generation_call.partial_image has the keys",
    ),
    "a preview that nobody asked for": (
        lambda e: twice(e, "image_generation_call.partial_image"),
        "2 partial",
    ),
    "a preview counted from one": (
        lambda e: get(e, "image_generation_call.partial_image").update(partial_image_index=1),
        "has index 1",
    ),
    "a preview that is the picture": (
        lambda e: get(e, "image_generation_call.partial_image").update(partial_image_b64=IMAGE["result"]),
        "is the final picture",
    ),
    "a preview without a format": (
        lambda e: without_field(get(e, "image_generation_call.partial_image"), "output_format"),
        "has no output_format",
    ),
    "a preview of another size": (
        lambda e: get(e, "image_generation_call.partial_image").update(size="9x9"),
        "partial image 0: size is '9x9'",
    ),
    "another final output": (lambda e: e[-1]["response"]["output"].pop(), "The final output is not"),
    "a lifecycle event without response": (
        lambda e: e[1].update(response=None),
        "there is no response object",
    ),
    "a status unlike the event": (lambda e: e[-1]["response"].update(status="in_progress"), "status is"),
    "output at the start": (lambda e: e[0]["response"].update(output=[MESSAGE]), "not empty at the start"),
    "a missing field": (lambda e: e[0]["response"].pop("metadata"), "lacks ['metadata']"),
    "no model": (lambda e: all_responses(e, model=""), "model is ''"),
    "another object": (lambda e: all_responses(e, object="list"), "object or created_at is wrong"),
    "an error in a success": (lambda e: e[-1]["response"].update(error={}), "has the error"),
    "details in a success": (lambda e: e[-1]["response"].update(incomplete_details={}), "incomplete_details"),
    "output that is no list": (
        lambda e: e[-1]["response"].update(output=None),
        "output or tools is not a list",
    ),
    "other tools": (lambda e: all_responses(e, tools=[]), "tools are not the client's own"),
    "another choice": (lambda e: all_responses(e, tool_choice="none"), "tool_choice is not the client's own"),
    "our function among the tools": (
        lambda e: all_responses(e, tools=[{"type": "function", "name": "image_generation"}]),
        "the internal function shows",
    ),
    "our function as the choice": (
        lambda e: all_responses(e, tool_choice={"type": "function", "name": "image_generation"}),
        "the internal function shows",
    ),
    "usage that is a number": (lambda e: e[-1]["response"].update(usage=3), "usage is neither"),
    "usage without details": (
        lambda e: without_field(e[-1]["response"]["usage"], "input_tokens_details"),
        "usage is not",
    ),
    "our call": (
        lambda e: done_item(e, 3, name="functions.image_generation<|x|>"),
        "the internal call leaks",
    ),
    "our call's output": (lambda e: done_item(e, 3, type="function_call_output"), "the internal call leaks"),
    "no message behind the picture": (
        lambda e: [e[-1]["response"].update(output=e[-1]["response"]["output"][:2])],
        "no message follows",
    ),
    "an unpublished key": (lambda e: done_item(e, 1, prompt="x"), "unpublished keys ['prompt']"),
    "a failed picture with null": (
        lambda e: fail_image(e, result=None),
        "failed image has the result 'None'",
    ),
    "a failed picture without error": (lambda e: fail_image(e, error=None), "failed image has the error"),
    "a picture left generating": (lambda e: done_item(e, 1, status="generating"), "ends with the status"),
    "a picture without its size": (lambda e: done_item(e, 1, size=None), "does not say its ['size']"),
    "a data URL": (lambda e: done_item(e, 1, result="data:image/png;base64,aaaa"), "bare base64"),
    "base64 of no picture": (lambda e: done_item(e, 1, result="aaaa"), "bare base64"),
    "no base64 at all": (lambda e: done_item(e, 1, result=None), "bare base64"),
    "another format": (lambda e: done_item(e, 1, output_format="webp"), "output_format is 'webp' for a png"),
    "another size": (lambda e: done_item(e, 1, size="1024x1024"), "size is '1024x1024' for a picture of 4x2"),
    "an alpha channel that is none": (lambda e: done_item(e, 1, background="transparent"), "alpha channel"),
    "content that is text": (lambda e: done_item(e, 2, content="Here."), "of another type"),
    "a wrong prefix": (
        lambda e: [
            one.update(item_id="fc_9") if "item_id" in one else one["item"].update(id="fc_9")
            for one in e
            if one.get("output_index") == 1
        ],
        "does not start with ig_",
    ),
}


@pytest.mark.parametrize("breach", BREACHES)
def test_a_broken_rule_is_named(breach: str) -> None:
    mutate, sentence = BREACHES[breach]
    events = valid()
    mutate(events)
    assert any(sentence in found for found in check(encode(events))), check(encode(events))


def test_the_same_call_id_twice_is_named() -> None:
    events = stream(ask(0), [{**one, "output_index": 1} for one in ask(1)])
    assert any(
        "The call_id 'call_1' is used twice" in found for found in check(encode(copy.deepcopy(events)))
    )


def test_an_error_frame_that_says_two_things_is_named() -> None:
    events = failed_stream()
    events[-2]["message"] = "Something else."
    assert any("does not say the same flat and nested" in found for found in check(encode(events)))


def test_an_error_frame_after_a_finished_picture_is_named() -> None:
    assert any(
        "a picture was finished" in found for found in check(encode(failed_stream(finished_picture=True)))
    )
