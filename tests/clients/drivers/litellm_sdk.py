"""LiteLLM's SDK: the response continued by its id, or replayed whole."""

import litellm
from driver import AGAIN, BASE_URL, FORCED, FORM, KEY, PROMPT, TOOL, tell

choice = {"tool_choice": {"type": "image_generation"}} if FORCED else {}


def respond(given, **more):
    """Get one response, streamed or not."""
    asked = {"model": "openai/local", "input": given, "tools": [TOOL], **choice, **more}
    streamed = FORM != "whole"
    answer = litellm.responses(**asked, api_base=BASE_URL, api_key=KEY, stream=streamed, max_retries=0)
    if not streamed:
        return answer
    *_, last = answer
    return last.response


first = respond(PROMPT)
responses = [first]
if AGAIN:
    again = {"role": "user", "content": AGAIN}
    if FORM == "previous":
        responses.append(respond([again], previous_response_id=first.id))
    else:
        past = [item.model_dump(exclude_none=True) for item in first.output]
        responses.append(respond([{"role": "user", "content": PROMPT}, *past, again]))
items = [item for one in responses for item in one.output]
pictures = [item for item in items if item.type == "image_generation_call"]
tell(
    pictures=[item.result for item in pictures],
    texts=[one.output_text for one in responses],
    states=[f"{item.status}: {item.error.message}" if item.error else item.status for item in pictures],
    ends=[one.status for one in responses],
)
