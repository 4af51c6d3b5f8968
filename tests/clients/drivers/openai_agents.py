"""openai-agents: the run's own input list, or the previous response's id, over HTTP or a WebSocket."""

import asyncio

from agents import (
    Agent,
    ImageGenerationTool,
    ModelSettings,
    OpenAIResponsesModel,
    Runner,
    set_tracing_disabled,
)
from agents.models.openai_responses import OpenAIResponsesWSModel
from driver import AGAIN, BASE_URL, FORCED, FORM, KEY, PROMPT, TOOL, tell
from openai import AsyncOpenAI
from openai.types.responses import ResponseImageGenCallPartialImageEvent

previews = []


async def run(agent, given, **more):
    """Run the agent, streamed or not."""
    if FORM == "whole":
        return await Runner.run(agent, given, **more)
    result = Runner.run_streamed(agent, given, **more)
    async for event in result.stream_events():
        raw = event.data if event.type == "raw_response_event" else None
        if isinstance(raw, ResponseImageGenCallPartialImageEvent):
            previews.append(raw.partial_image_b64)
    return result


async def main():
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0)
    kind = OpenAIResponsesWSModel if FORM == "websocket" else OpenAIResponsesModel
    agent = Agent(
        name="painter",
        instructions="You draw.",
        model=kind("local", client),
        model_settings=ModelSettings(tool_choice="image_generation" if FORCED else None),
        tools=[ImageGenerationTool(tool_config=TOOL)],
    )
    runs = [await run(agent, PROMPT)]
    if AGAIN and FORM == "previous":
        runs.append(await run(agent, AGAIN, previous_response_id=runs[0].last_response_id))
    elif AGAIN:
        runs.append(await run(agent, [*runs[0].to_input_list(), {"role": "user", "content": AGAIN}]))
    items = [item.raw_item for one in runs for item in one.new_items]
    pictures = [item for item in items if getattr(item, "type", "") == "image_generation_call"]
    tell(
        pictures=[item.result for item in pictures],
        texts=[one.final_output for one in runs],
        states=[f"{item.status}: {item.error.message}" if item.error else item.status for item in pictures],
        previews=previews,
    )


asyncio.run(main())
