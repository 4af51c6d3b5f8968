import pathlib

from pydantic_ai import Agent, ImageGenerationTool
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

provider = OpenAIProvider(base_url="http://127.0.0.1:8766/v1", api_key="-")
agent = Agent(
    OpenAIResponsesModel("gpt-5.2", provider=provider),
    capabilities=[NativeTool(ImageGenerationTool())],
)
result = agent.run_sync("Draw a red cat")
for image in result.response.images:
    pathlib.Path("cat.png").write_bytes(image.data)
print(result.output)
