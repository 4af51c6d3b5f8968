import asyncio
import base64
import pathlib

import openai
from agents import Agent, ImageGenerationTool, OpenAIResponsesModel, Runner, set_tracing_disabled

set_tracing_disabled(True)  # traces go to OpenAI
client = openai.AsyncOpenAI(base_url="http://127.0.0.1:8766/v1", api_key="-")
agent = Agent(
    name="painter",
    model=OpenAIResponsesModel("local", client),
    tools=[ImageGenerationTool(tool_config={"type": "image_generation"})],
)
result = asyncio.run(Runner.run(agent, "Draw a red cat"))
for item in result.new_items:
    if getattr(item.raw_item, "type", "") == "image_generation_call" and item.raw_item.result:
        pathlib.Path("cat.png").write_bytes(base64.b64decode(item.raw_item.result))
print(result.final_output)
