"""The backends that have a name, built from the settings."""

from __future__ import annotations

from ..settings import Settings, SettingsError
from .base import ImageBackend
from .option_error import OptionError

__all__ = ["named_backend", "wrong_setting"]


def named_backend(settings: Settings, route: str | None = None) -> ImageBackend | None:
    """Build the backend that the settings name; None if they name none.

    What a backend needs (an SDK, a font) is imported only with it.

    Args:
        settings: `backend` is a name, the other `backend_*` belong to it.
        route: the glob that leads to this backend, for errors to name.

    Raises:
        SettingsError: an option that the backend needs is missing or wrong, or two contradict each other.
        ImportError: an extra is not installed; the message says which.
    """
    _check(settings, route)
    try:
        match settings.backend:
            case "scene":
                from .scene import SceneBackend

                return SceneBackend(max_pixels=settings.max_pixels)
            case "openai":
                return _openai(settings)
            case "mcp":
                return _mcp(settings)
    except OptionError as error:
        raise wrong_setting(f"backend_{error.option}", str(error).removesuffix("."), route) from None
    return None


def wrong_setting(name: str, reason: str, route: str | None = None) -> SettingsError:
    """Make the error about a setting: the process's own, or one of a route's."""
    if route is None:
        return SettingsError(f"{name} (IMAGECALL_{name.upper()}): {reason}.")
    name = name.removeprefix("backend_")
    return SettingsError(f"backend (IMAGECALL_BACKEND), for {route!r}: {name}: {reason}.")


def _check(settings: Settings, route: str | None) -> None:
    url, command = settings.backend_url, settings.backend_command
    if settings.backend == "openai" and not url:
        need = "the backend openai needs the Images API's base, such as http://127.0.0.1:8000/v1"
        raise wrong_setting("backend_url", need, route)
    if settings.backend == "mcp" and url and command:
        raise wrong_setting("backend_command", "the backend mcp takes a URL or a command, not both", route)
    if settings.backend == "mcp" and not (url or command):
        need = "the backend mcp needs the server's URL, or a command that starts it"
        raise wrong_setting("backend_url", need, route)


def _openai(settings: Settings) -> ImageBackend:
    from .openai_images import OpenAIImagesBackend

    assert settings.backend_url
    return OpenAIImagesBackend(
        settings.backend_url,
        api_key=_key(settings),
        model=settings.backend_model,
        models=settings.backend_models,
        headers=settings.backend_headers,
        body=settings.backend_body,
        drop=settings.backend_drop,
        pass_on=settings.backend_pass_on,
        edits=settings.backend_edits,
        response_format=settings.backend_response_format,
        stream=settings.backend_stream,
        origins=settings.backend_origins,
        timeout=settings.backend_timeout,
        retries=settings.backend_retries,
        max_bytes=settings.max_image,
    )


def _mcp(settings: Settings) -> ImageBackend:
    from .mcp import MCPBackend

    return MCPBackend(
        url=settings.backend_url or None,
        command=settings.backend_command or None,
        headers=settings.backend_headers,
        env=settings.backend_env,
        api_key=_key(settings),
        tool=settings.backend_tool,
        edit_tool=settings.backend_edit_tool,
        arguments=settings.backend_arguments,
        model=settings.backend_model,
        files_dir=settings.backend_files_dir,
        origins=settings.backend_origins,
        timeout=settings.backend_timeout,
        max_bytes=settings.max_image,
    )


def _key(settings: Settings) -> str | None:
    key = settings.backend_api_key
    return key.get_secret_value() if key else None
