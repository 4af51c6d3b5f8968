import base64
import pathlib

from langchain_openai import ChatOpenAI

model = ChatOpenAI(model="local", base_url="http://127.0.0.1:8766/v1", api_key="-", use_responses_api=True)
answer = model.bind_tools([{"type": "image_generation"}]).invoke("Draw a red cat")
for block in answer.content:
    if block["type"] == "image_generation_call" and block["result"]:
        pathlib.Path("cat.png").write_bytes(base64.b64decode(block["result"]))
print(answer.text)
