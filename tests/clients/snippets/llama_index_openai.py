import pathlib

from llama_index.core.llms import ChatMessage, ImageBlock
from llama_index.llms.openai import OpenAIResponses

llm = OpenAIResponses(
    model="gpt-5.2",
    api_base="http://127.0.0.1:8766/v1",
    api_key="-",
    built_in_tools=[{"type": "image_generation"}],
)
answer = llm.chat([ChatMessage(role="user", content="Draw a red cat")])
for block in answer.message.blocks:
    if isinstance(block, ImageBlock):
        pathlib.Path("cat.png").write_bytes(block.resolve_image().read())
print(answer.message.content)
