"""LlamaIndex: the messages of the conversation, or the previous response's id, which it keeps by itself."""

from driver import AGAIN, BASE_URL, FORCED, FORM, KEY, PROMPT, TOOL, tell
from llama_index.core.llms import ChatMessage, ImageBlock
from llama_index.llms.openai import OpenAIResponses

choice = {"tool_choice": {"type": "image_generation"}} if FORCED else {}
llm = OpenAIResponses(
    model="gpt-5.2",
    api_base=BASE_URL,
    api_key=KEY,
    max_retries=0,
    built_in_tools=[TOOL],
    additional_kwargs=choice,
    track_previous_responses=FORM == "previous",
)
previews = []


def respond(messages):
    """Chat, streamed or not. While it streams, partial pictures come as picture blocks of their own."""
    if FORM == "whole":
        return llm.chat(messages)
    *parts, last = llm.stream_chat(messages)
    blocks = [block for part in parts for block in part.message.blocks]
    previews.extend(block.resolve_image().read() for block in blocks if isinstance(block, ImageBlock))
    return last


asked, again = ChatMessage(role="user", content=PROMPT), ChatMessage(role="user", content=AGAIN)
answers = [respond([asked])]
if AGAIN:
    answers.append(respond([again] if FORM == "previous" else [asked, answers[0].message, again]))
blocks = [block for one in answers for block in one.message.blocks]
raw = [one.raw if FORM == "whole" else one.raw.response for one in answers]
pictures = [item for one in raw for item in one.output if item.type == "image_generation_call"]
tell(
    pictures=[block.resolve_image().read() for block in blocks if isinstance(block, ImageBlock)],
    texts=[one.message.content for one in answers],
    states=[item.status for item in pictures],
    ends=[one.status for one in raw],
    previews=previews,
)
