"""A FastAPI app of your own, and the hosted image_generation tool in front of its /v1/responses.

pip install 'imagecall[scene]' fastapi
uvicorn quickstart:app --port 8000
"""

from fastapi import FastAPI
from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.embedded.scripted import scripted_app

app = FastAPI()
app.add_middleware(ImageGenerationMiddleware, backend="scene")


@app.get("/hello")
def hello() -> dict[str, str]:
    """Whatever else your app does passes through untouched."""
    return {"message": "Hello!"}


# Your own endpoint stands here: routes of this app, or imagecall.middleware.proxy.ProxyApp(url).
app.mount("/", scripted_app())
