"""LangChain: the messages of the conversation, streamed or not, with `store` left out or off."""

from driver import AGAIN, BASE_URL, FORCED, FORM, KEY, PROMPT, TOOL, tell
from langchain_openai import ChatOpenAI

more = {"store": False} if FORM == "unstored" else {}
model = ChatOpenAI(
    model="local", base_url=BASE_URL, api_key=KEY, max_retries=0, use_responses_api=True, **more
)
painter = model.bind_tools([TOOL], **({"tool_choice": "image_generation"} if FORCED else {}))


def respond(messages):
    if FORM != "stream":
        return painter.invoke(messages)
    whole = None
    for chunk in painter.stream(messages):
        whole = chunk if whole is None else whole + chunk
    return whole


def _message(block):
    return [block["error"]["message"]] if "error" in block else []


asked = {"role": "user", "content": PROMPT}
answers = [respond([asked])]
if AGAIN:
    answers.append(respond([asked, answers[0], {"role": "user", "content": AGAIN}]))
blocks = [block for one in answers for block in one.content if isinstance(block, dict)]
pictures = [block for block in blocks if block["type"] == "image_generation_call"]
tell(
    pictures=[block["result"] for block in pictures],
    texts=[str(one.text) for one in answers],
    states=[": ".join([block["status"], *_message(block)]) for block in pictures],
    ends=[one.response_metadata["status"] for one in answers],
)
