"""What is done about the wire: the ASGI middleware, its backends, and the programs around it."""

from .asgi import ImageGenerationMiddleware
from .backends.base import Image, ImageBackend, ImageError, ImageRequest, OnPartial
from .settings import SettingsError

__all__ = [
    "Image",
    "ImageBackend",
    "ImageError",
    "ImageGenerationMiddleware",
    "ImageRequest",
    "OnPartial",
    "SettingsError",
]
