"""LangChain: the messages of the conversation, streamed or not, with `store` left out or off."""

from driver import BASE_URL, FIRST, FORM, KEY, SECOND, TOOL, tell
from langchain_openai import ChatOpenAI

more = {"store": False} if FORM == "unstored" else {}
model = ChatOpenAI(
    model="local", base_url=BASE_URL, api_key=KEY, max_retries=0, use_responses_api=True, **more
)
painter = model.bind_tools([TOOL])


def respond(messages):
    if FORM != "stream":
        return painter.invoke(messages)
    whole = None
    for chunk in painter.stream(messages):
        whole = chunk if whole is None else whole + chunk
    return whole


asked = {"role": "user", "content": FIRST}
first = respond([asked])
second = respond([asked, first, {"role": "user", "content": SECOND}])
blocks = [block for one in (first, second) for block in one.content if isinstance(block, dict)]
tell(
    [block["result"] for block in blocks if block["type"] == "image_generation_call"],
    [str(one.text) for one in (first, second)],
)
