"""openai-python: the response continued by its id, replayed whole, by the items' ids or by references."""

import openai
from driver import BASE_URL, FIRST, FORM, KEY, SECOND, TOOL, tell

client = openai.OpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0)


def respond(given, **more):
    """Stream one response through the SDK's own accumulator, or get it whole, or over a WebSocket."""
    asked = {"model": "local", "input": given, "tools": [TOOL], **more}
    if FORM == "whole":
        return client.responses.create(**asked)
    with client.responses.stream(**asked) as stream:
        return stream.get_final_response()


def over_websocket():
    with client.responses.connect() as connection:
        previous = {}
        for given in (FIRST, SECOND):
            connection.response.create(model="local", input=given, tools=[TOOL], **previous)
            for event in connection:
                assert event.type != "error", event
                if event.type == "response.completed":
                    break
            yield event.response
            previous = {"previous_response_id": event.response.id}


def over_http():
    first = respond(FIRST)
    yield first
    [picture] = [item for item in first.output if item.type == "image_generation_call"]
    asked, again = {"role": "user", "content": FIRST}, {"role": "user", "content": SECOND}
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
pictures = [item.result for one in responses for item in one.output if item.type == "image_generation_call"]
tell(pictures, [one.output_text for one in responses])
