"""Which backend makes which picture: by the image model that the client declared."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from pydantic import ValidationError

from ..settings import Settings
from .base import ImageBackend, ImageError
from .named import named_backend, wrong_setting
from .owner import BackendOwner

__all__ = ["Routing", "make_routing"]

_DEFAULT = "*"

_SHARED = ("backend_timeout", "backend_retries", "backend_concurrency", "backend_queue")
"""The backend settings that are also a route's defaults. The others belong to one server: above all, no
route's server gets another one's key."""


class Routing:
    """Globs of the declared model, each with the owner of its backend.

    Args:
        owners: in the order in which the globs are tried; `*` stands for the rest, wherever it is.
    """

    def __init__(self, owners: Mapping[str, BackendOwner]) -> None:
        self._owners = {glob: owner for glob, owner in owners.items() if glob != _DEFAULT}
        self._default = owners.get(_DEFAULT)

    @property
    def present(self) -> bool:
        """Whether there is a backend at all."""
        return bool(self._owners) or self._default is not None

    def owner(self, model: str | None) -> BackendOwner:
        """Choose the backend for a declared model; None, where none was declared, takes the default.

        Raises:
            ImageError: no glob matches and there is no default (`model_not_found`).
        """
        if model is not None:
            for glob, owner in self._owners.items():
                if fnmatchcase(model, glob):
                    return owner
        if self._default is not None:
            return self._default
        which = "pictures without a declared model" if model is None else f"the image model {model[:60]!r}"
        raise ImageError(f"There is no image backend for {which}.", code="model_not_found", param="model")

    async def close(self) -> None:
        """Close each backend that was ever opened."""
        async with asyncio.TaskGroup() as group:
            for owner in {id(owner): owner for owner in [*self._owners.values(), self._default]}.values():
                if owner is not None:
                    group.create_task(owner.close())


def make_routing(settings: Settings, backend: ImageBackend | None = None) -> Routing:
    """Build the backends, none of them opened yet.

    Args:
        settings: `backend` names one, or maps globs to several: to names, to objects, or to mappings of
            the backend settings without their prefix, such as `{"backend": "openai", "url": …}`.
        backend: the one backend, in place of the settings'.

    Raises:
        SettingsError: an option is missing or wrong.
        ImportError: an extra is not installed.
    """
    routes = settings.backend if backend is None else backend
    if not isinstance(routes, dict):
        maker = named_backend(settings) if backend is None else backend
        return Routing({} if maker is None else {_DEFAULT: _owner(maker, settings)})
    built: list[tuple[object, BackendOwner]] = []
    owners = {}
    for glob, route in routes.items():
        owner = next((owner for other, owner in built if _same(route, other)), None)
        if owner is None:
            owner = _routed(glob, route, settings)
            built.append((route, owner))
        owners[glob] = owner
    return Routing(owners)


def _same(route: object, other: object) -> bool:
    """Tell whether two globs lead to the same backend, whose places they then share."""
    return route is other or (isinstance(route, str | dict) and route == other)


def _owner(backend: ImageBackend, settings: Settings) -> BackendOwner:
    return BackendOwner(backend, concurrency=settings.backend_concurrency, queue=settings.backend_queue)


def _routed(glob: str, route: Any, settings: Settings) -> BackendOwner:
    if callable(getattr(route, "generate", None)):
        return _owner(route, settings)
    if not isinstance(route, str | Mapping):
        kinds = "it is neither a name nor a mapping of settings nor an object with generate()"
        raise wrong_setting("backend", kinds, glob)
    own = _route_settings(glob, route, settings)
    maker = named_backend(own, glob)
    assert maker is not None
    return _owner(maker, own)


def _route_settings(glob: str, route: str | Mapping[str, Any], settings: Settings) -> Settings:
    """Make a route's settings: a name has the process's own, a mapping brings its server's with it."""
    values = {name: getattr(settings, name) for name in Settings.model_fields}
    if isinstance(route, str):
        given: dict[str, Any] = {"backend": route}
    else:
        given = {key if key == "backend" else f"backend_{key}": value for key, value in route.items()}
        own = (name for name in values if name.startswith("backend_") and name not in _SHARED)
        values |= {name: Settings.model_fields[name].default for name in own}
    for name in given:
        if name not in values:
            raise wrong_setting(name, "there is no such setting", glob)
    if not isinstance(given.get("backend"), str):
        raise wrong_setting("backend", "it must name one", glob)
    try:
        return Settings(**(values | given))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise wrong_setting(str(first["loc"][0]), first["msg"], glob) from None
