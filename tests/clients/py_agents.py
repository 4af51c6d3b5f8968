"""openai-agents: the run's own input list, or the previous response's id, over HTTP or a WebSocket."""

import asyncio

from agents import Agent, ImageGenerationTool, OpenAIResponsesModel, Runner, set_tracing_disabled
from agents.models.openai_responses import OpenAIResponsesWSModel
from driver import BASE_URL, FIRST, FORM, KEY, SECOND, TOOL, tell
from openai import AsyncOpenAI


async def run(agent, given, **more):
    """Run the agent, streamed or not."""
    if FORM == "whole":
        return await Runner.run(agent, given, **more)
    result = Runner.run_streamed(agent, given, **more)
    async for _ in result.stream_events():
        pass
    return result


async def main():
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0)
    kind = OpenAIResponsesWSModel if FORM == "websocket" else OpenAIResponsesModel
    tools = [ImageGenerationTool(tool_config=TOOL)]
    agent = Agent(name="painter", instructions="You draw.", model=kind("local", client), tools=tools)
    first = await run(agent, FIRST)
    if FORM == "previous":
        second = await run(agent, SECOND, previous_response_id=first.last_response_id)
    else:
        second = await run(agent, [*first.to_input_list(), {"role": "user", "content": SECOND}])
    calls = [item.raw_item for one in (first, second) for item in one.new_items]
    pictures = [call.result for call in calls if getattr(call, "type", "") == "image_generation_call"]
    tell(pictures, [first.final_output, second.final_output])


asyncio.run(main())
