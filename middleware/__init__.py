"""What is done about the wire: the ASGI middleware, its backends, and the programs around it.

The names are imported when they are first used: pytest loads the plugin in `testing/` in every run, and
that must cost nothing where nobody uses it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "Image",
    "ImageBackend",
    "ImageError",
    "ImageGenerationMiddleware",
    "ImageRequest",
    "OnPartial",
    "SettingsError",
]

if TYPE_CHECKING:
    from .asgi import ImageGenerationMiddleware
    from .backends.base import Image, ImageBackend, ImageError, ImageRequest, OnPartial
    from .settings import SettingsError
else:

    def __getattr__(name: str) -> object:
        """Import a public name from the module it lives in (PEP 562)."""
        homes = {"ImageGenerationMiddleware": ".asgi", "SettingsError": ".settings"}
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value = getattr(import_module(homes.get(name, ".backends.base"), __name__), name)
        return value
