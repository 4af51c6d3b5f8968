"""openai-python: the response continued by its id, replayed whole, by the items' ids or by references."""

import openai
from driver import AGAIN, BASE_URL, FORCED, FORM, KEY, PROMPT, TOOL, tell

client = openai.OpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0)
choice = {"tool_choice": {"type": "image_generation"}} if FORCED else {}
previews = []


def respond(given, **more):
    """Stream one response through the SDK's own accumulator, or get it whole."""
    asked = {"model": "local", "input": given, "tools": [TOOL], **choice, **more}
    if FORM == "whole":
        return client.responses.create(**asked)
    with client.responses.stream(**asked) as stream:
        kind = "response.image_generation_call.partial_image"
        previews.extend(event.partial_image_b64 for event in stream if event.type == kind)
        return stream.get_final_response()


def over_websocket():
    with client.responses.connect() as connection:
        previous = {}
        for given in (PROMPT, AGAIN):
            connection.response.create(model="local", input=given, tools=[TOOL], **previous)
            for event in connection:
                assert event.type != "error", event
                if event.type == "response.completed":
                    break
            yield event.response
            previous = {"previous_response_id": event.response.id}


def over_http():
    first = respond(PROMPT)
    yield first
    if AGAIN:
        [picture] = [item for item in first.output if item.type == "image_generation_call"]
        asked, again = {"role": "user", "content": PROMPT}, {"role": "user", "content": AGAIN}
        if FORM == "previous":
            yield respond([again], previous_response_id=first.id)
        elif FORM == "id":
            yield respond([asked, {"type": "image_generation_call", "id": picture.id}, again])
        elif FORM == "reference":
            yield respond([asked, {"type": "item_reference", "id": picture.id}, again])
        else:
            # The accumulator adds `parsed: null` to texts, which no strict server takes.
            yield respond([asked, *[item.to_dict(exclude_none=True) for item in first.output], again])


responses = list(over_websocket() if FORM == "websocket" else over_http())
pictures = [item for one in responses for item in one.output if item.type == "image_generation_call"]
tell(
    pictures=[item.result for item in pictures],
    texts=[one.output_text for one in responses],
    states=[f"{item.status}: {item.error.message}" if item.error else item.status for item in pictures],
    ends=[one.status for one in responses],
    previews=previews,
)
