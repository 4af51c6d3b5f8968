"""pydantic-ai: the message history, streamed or not, or over a WebSocket."""

import asyncio

from driver import AGAIN, BASE_URL, FORCED, FORM, KEY, ORDER, PROMPT, tell
from pydantic_ai import Agent, AgentRunResultEvent, FilePart, ImageGenerationTool, PartStartEvent
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

shown = []


async def run(agent, given, **more):
    """Run the agent. While it streams, each preview of a picture begins the file part anew."""
    if FORM != "stream":
        return await agent.run(given, **more)
    async with agent.run_stream_events(given, **more) as events:
        async for event in events:
            if isinstance(event, PartStartEvent) and isinstance(event.part, FilePart):
                shown.append(event.part.content.data)
        assert isinstance(event, AgentRunResultEvent), event
        return event.result


async def main():
    model = OpenAIResponsesModel("gpt-5.2", provider=OpenAIProvider(base_url=BASE_URL, api_key=KEY))
    settings = {"openai_transport": "websocket"} if FORM == "websocket" else {}
    if FORCED:
        settings["extra_body"] = {"tool_choice": {"type": "image_generation"}}
    tool = ImageGenerationTool(provider_settings={"openai": ORDER["tool"]})
    agent = Agent(model, output_type=str, capabilities=[NativeTool(tool)], model_settings=settings)
    runs = [await run(agent, PROMPT)]
    if AGAIN:
        runs.append(await run(agent, AGAIN, message_history=runs[0].all_messages()))
    messages = runs[-1].all_messages()
    parts = [part for message in messages for part in message.parts]
    pictures = [part.content.data for part in parts if part.part_kind == "file"]
    tell(
        pictures=pictures,
        texts=[one.output for one in runs],
        states=[part.content["status"] for part in parts if part.part_kind == "builtin-tool-return"],
        ends=[message.finish_reason for message in messages if message.kind == "response"],
        previews=[one for one in shown if one not in pictures],
    )


asyncio.run(main())
