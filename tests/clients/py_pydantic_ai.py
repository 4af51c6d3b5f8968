"""pydantic-ai: the message history, streamed or not, or over a WebSocket."""

import asyncio

from driver import BASE_URL, FIRST, FORM, KEY, SECOND, tell
from pydantic_ai import Agent, BinaryImage, ImageGenerationTool
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


async def run(agent, given, **more):
    if FORM != "stream":
        return await agent.run(given, **more)
    async with agent.run_stream(given, **more) as result:
        await result.get_output()
        return result


async def main():
    settings = {"openai_transport": "websocket"} if FORM == "websocket" else {}
    model = OpenAIResponsesModel("gpt-5.2", provider=OpenAIProvider(base_url=BASE_URL, api_key=KEY))
    agent = Agent(
        model,
        output_type=str,
        capabilities=[NativeTool(ImageGenerationTool())],
        model_settings=settings,
    )
    first = await run(agent, FIRST)
    second = await run(agent, SECOND, message_history=first.all_messages())
    parts = [part for message in second.all_messages() for part in message.parts]
    contents = [part.content for part in parts if part.part_kind == "file"]
    pictures = [content.data for content in contents if isinstance(content, BinaryImage)]
    outputs = (
        [first.output, second.output]
        if FORM != "stream"
        else [await first.get_output(), await second.get_output()]
    )
    tell(pictures, outputs)


asyncio.run(main())
