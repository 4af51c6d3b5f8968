"""Every setting as a command-line option of the same name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args

import typer

from .settings import Settings

__all__ = ["with_settings"]


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes `**settings` an option for each setting.

    Values stay text: `Settings` reads them as it reads the `IMAGECALL_*` variables, which typer
    therefore need not know; an option that is left out is not passed on.
    """
    hints = inspect.get_annotations(command, eval_str=True)
    own = [
        parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(command).parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    parameters = [*own, *(_option(name) for name in Settings.model_fields)]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        command(**{name: value for name, value in given.items() if value is not None})

    # `inspect` reads this attribute of any callable; the stubs know it of none.
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _option(name: str) -> inspect.Parameter:
    field = Settings.model_fields[name]
    flags = [f"--{name.replace('_', '-')}"]
    if name == "paths":
        flags.append("--path")
    words = [word for word in get_args(field.annotation) if isinstance(word, str)]
    option = typer.Option(
        *flags,
        help=f"{field.description} [IMAGECALL_{name.upper()}; default: {_shown(field.default)}]",
        metavar="|".join(words) if words else "VALUE",
        show_default=False,
    )
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, option]
    )


def _shown(default: object) -> str:
    if isinstance(default, tuple):
        return ",".join(default) or "none"
    return "none" if default is None or default == {} else str(default)
