"""Which requests are ours to look at: the Responses endpoint and what lies below it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from starlette.types import Scope

__all__ = ["Route", "Routes"]

Kind = Literal["create", "derive", "get", "delete", "input_items", "cancel"]

_DERIVED = ("input_tokens", "compact")


@dataclass(frozen=True, slots=True)
class Route:
    """What a request wants.

    Attributes:
        kind: `create` a response; `derive` something else from such a request (the number of its
            tokens, a compacted history); or one of the things to do with a response that is there.
        response_id: the client's id of that response.
    """

    kind: Kind
    response_id: str = ""


_CREATE = Route("create")
_DERIVE = Route("derive")


class Routes:
    """Finds routes below the configured paths, wherever the application is mounted."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(path.rstrip("/") for path in paths)

    def is_endpoint(self, scope: Scope) -> bool:
        """Whether it is the endpoint itself that is asked for, in whatever way."""
        return _path(scope) in self._paths

    def find(self, scope: Scope) -> Route | None:
        """Return what an HTTP request wants, None if that is nothing of ours.

        Its content type does not matter: many servers read JSON whatever it is.
        """
        method, path = scope["method"], _path(scope)
        if path in self._paths:
            return _CREATE if method == "POST" else None
        above, _, name = path.rpartition("/")
        if above in self._paths:
            match method:
                case "POST" if name in _DERIVED:
                    return _DERIVE
                case "GET" | "HEAD":
                    return Route("get", name)
                case "DELETE":
                    return Route("delete", name)
            return None
        above, _, response_id = above.rpartition("/")
        if above in self._paths:
            match method, name:
                case "GET" | "HEAD", "input_items":
                    return Route("input_items", response_id)
                case "POST", "cancel":
                    return Route("cancel", response_id)
        return None


def _path(scope: Scope) -> str:
    """Return the path below the mount, tidied as some servers do it: `//` merged, `.` and `..` resolved."""
    path: str = scope["path"].removeprefix(scope.get("root_path", "").rstrip("/"))
    if "//" in path or "/." in path:
        path = posixpath.normpath(f"/{path.lstrip('/')}")
    return path.rstrip("/")
