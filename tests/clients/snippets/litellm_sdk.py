import base64
import pathlib

import litellm

response = litellm.responses(
    model="openai/local",
    input="Draw a red cat",
    tools=[{"type": "image_generation"}],
    api_base="http://127.0.0.1:8766/v1",
    api_key="-",
)
for item in response.output:
    if item.type == "image_generation_call" and item.result:
        pathlib.Path("cat.png").write_bytes(base64.b64decode(item.result))
print(response.output_text)
