"""What image servers say when they make no picture, in every dialect, as one `ImageError`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from ....events.wire import dumps, loads
from ..base import ImageError
from ..secret_values import Secrets
from ..words import Words
from .reset_time import Reset, find_reset

__all__ = ["AnswerError", "ErrorReader", "TryLaterError", "is_html"]

_LONGEST = 16 << 10
_LONGEST_NAME = 256
"""Characters of a server's own words, and of its names, that are searched for what they mean."""

_DETAILS = 4_096
"""Bytes of `moderation_details` that are handed on; longer ones are left out."""

_NAME = re.compile(r"[A-Za-z][\w.:-]{0,63}")
_SPOKEN_NAME = re.compile(r"[a-z]+(?:_[a-z]+)+")

_MODERATION = re.compile(
    r"moderation_blocked|content_?policy_?violation|content_?filter|ResponsibleAIPolicyViolation"
    r"|rejected (?:by|as a result of) (?:our|the) safety system",
    re.IGNORECASE,
)
"""OpenAI's codes, Azure's, and the sentence that is all LiteLLM leaves of them."""

_USED_UP = re.compile(r"quota|billing|budget|credit|usage_?(?:limit|not_included)", re.IGNORECASE)
"""Names of limits that no short wait lifts, as opposed to `rate_limit_exceeded`."""

_USED_UP_WORDS = {
    "usage_limit_reached": re.compile(r"usage_limit_reached|usage limit has been reached", re.IGNORECASE),
    "insufficient_quota": re.compile(r"insufficient_quota|exceeded your current quota", re.IGNORECASE),
    "billing_hard_limit_reached": re.compile(r"billing[_ ]hard[_ ]limit", re.IGNORECASE),
}
"""Their codes where a gateway has left nothing but the sentence, or has buried the code in it."""

_RATE = re.compile(r"rate_?limit", re.IGNORECASE)


class AnswerError(ImageError):
    """The server answered, but not with a picture.

    Attributes:
        status: the HTTP status; 200 for an error inside a good answer.
    """

    def __init__(self, message: str, *, status: int, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.status = status

    @property
    def is_passing(self) -> bool:
        """Whether whoever runs the server need not know: it is busy, or refused this one prompt."""
        return isinstance(self, TryLaterError) or bool(_MODERATION.search(f"{self.code} {self.type}"))

    def names(self, param: str) -> bool:
        """Tell whether the request was refused for this very parameter."""
        return self.status in (400, 422) and (self.param == param or param in self.message)


class TryLaterError(AnswerError):
    """The server is busy or cannot be reached: the same request may well succeed later.

    Attributes:
        wait: the seconds that the server asks to wait; None if it does not say.
    """

    def __init__(self, message: str, *, wait: float | None = None, status: int = 0, **fields: Any) -> None:
        super().__init__(message, status=status, **fields)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class _Reason:
    """The parts of an error, whatever they were called."""

    text: str = ""
    code: str | None = None
    type: str | None = None
    param: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> str:
        return f"{self.code or ''} {self.type or ''}"


class ErrorReader:
    """Reads the errors of one server.

    Args:
        secrets: struck out of everything the server says.
        now: seconds since the epoch.
    """

    def __init__(self, secrets: Secrets, now: Callable[[], float]) -> None:
        self._secrets = secrets
        self._words = Words(secrets)
        self._now = now

    def refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> AnswerError:
        """Read an answer with an error status."""
        try:
            payload = loads(body)
        except ValueError:
            payload = body.decode(errors="replace")
        reason = _reason("" if is_html(body) else payload)
        return self._error(reason, status, headers, _opening(status, reason, html=is_html(body)))

    def answered(self, payload: object) -> AnswerError:
        """Read a good answer that holds no picture, or an error event of a stream."""
        reason = _reason(payload)
        if isinstance(payload, dict) and payload.get("error"):
            return self._error(reason, 200, {}, "The image server failed")
        return self._error(reason, 200, {}, "The image server answered without a picture", code="no_image")

    def _error(
        self, reason: _Reason, status: int, headers: Mapping[str, str], opening: str, code: str | None = None
    ) -> AnswerError:
        text = self._words.show(reason.text)
        named: dict[str, Any] = {
            "code": self._name(reason.code) or code or _code(status),
            "type": self._name(reason.type) or "image_generation_error",
            "param": self._name(reason.param),
        }
        if _MODERATION.search(reason.names) or _MODERATION.search(reason.text):
            return self._blocked(reason, status, text, named)
        reset = find_reset(headers, reason.fields, self._now())
        if _is_used_up(reason, status):
            return self._used_up(reason, status, text, named, reset)
        message = f"{opening}: {text}" if text else f"{opening}."
        if status not in (429, 503):
            return AnswerError(message, status=status, **named)
        if status == 429 and reset:
            named["details"] = _limit(named["code"], reset)
        return TryLaterError(message, status=status, wait=reset.seconds if reset else None, **named)

    def _blocked(self, reason: _Reason, status: int, text: str, named: dict[str, Any]) -> AnswerError:
        """The safety system said no; it will say so again."""
        if not _MODERATION.search(reason.names):
            named["code"] = "moderation_blocked"
        if not reason.type:
            named["type"] = "image_generation_user_error"
        details = reason.fields.get("moderation_details")
        if isinstance(details, dict) and len(dumps(details)) <= _DETAILS:
            named["details"] = {"moderation_details": self._secrets.strike_all(details)}
        return AnswerError(text or "The safety system refused this picture.", status=status, **named)

    def _used_up(
        self, reason: _Reason, status: int, text: str, named: dict[str, Any], reset: Reset | None
    ) -> AnswerError:
        """A limit is used up that no short wait lifts: say which, and when there is more."""
        code = next((name for name in (reason.code, reason.type) if name and _USED_UP.search(name)), None)
        named["code"] = self._name(code) or _buried_limit(reason) or named["code"]
        limit = reason.fields.get("limit")
        name = self._name(limit if isinstance(limit, str) else None) or named["code"]
        message = f"The image server's limit is used up ({name})"
        if reset:
            message += f"; it resets {reset.words()}"
        message = f"{message}: {text}" if text else f"{message}."
        return AnswerError(message, status=status, **named, details=_limit(name, reset))

    def _name(self, value: str | None) -> str | None:
        """Let a name pass only if it is one and no secret."""
        if value is None or not _NAME.fullmatch(value) or self._secrets.strike(value) != value:
            return None
        return value


def _limit(name: str, reset: Reset | None) -> dict[str, Any]:
    if reset is None:
        return {"limit": name}
    return {"limit": name, "resets_at": round(reset.at), "resets_in_seconds": round(reset.seconds)}


def is_html(body: bytes) -> bool:
    """Tell whether a body is a page for people."""
    start = body[:256].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return start.startswith((b"<!doctype", b"<html", b"<head", b"<body", b"<?xml"))


def _is_used_up(reason: _Reason, status: int) -> bool:
    if status == 402 or _USED_UP.search(reason.names) or _buried_limit(reason):
        return True
    named = any(reason.fields.get(key) for key in ("limit", "resets_at", "resets_in_seconds"))
    return status == 429 and named and not _RATE.search(reason.names)


def _buried_limit(reason: _Reason) -> str | None:
    return next((code for code, words in _USED_UP_WORDS.items() if words.search(reason.text)), None)


def _opening(status: int, reason: _Reason, *, html: bool) -> str:
    try:
        opening = f"The image server answered {status} ({HTTPStatus(status).phrase})"
    except ValueError:
        opening = f"The image server answered {status}"
    if html:
        opening += " with an HTML page"
    if status in (404, 405) and reason.code is None:
        opening += "; its URL must be the Images API's base, such as http://host:8000/v1"
    return opening


def _code(status: int) -> str:
    if status == 200 or status >= 500:
        return "image_backend_error"
    names = {401: "unauthorized", 403: "unauthorized", 404: "not_found", 429: "busy"}
    return f"image_backend_{names.get(status, 'refused')}"


def _reason(payload: object) -> _Reason:
    """Find the parts of an error in `error.message`, `error`, `message`, `detail`, or a bare text."""
    if not isinstance(payload, dict):
        return _Reason(_text(payload)[:_LONGEST])
    error = payload.get("error")
    if isinstance(error, dict) and error:
        fields, text = error, _text(error)
    else:
        fields = payload
        texts = (_text(payload.get(key)) for key in ("error", "message", "detail"))
        text = ": ".join(dict.fromkeys(filter(None, texts)))
    told = {key: fields.get(key) for key in ("code", "type", "param")}
    names = {key: value[:_LONGEST_NAME] for key, value in told.items() if isinstance(value, str)}
    code = names.get("code")
    if not (code and _NAME.fullmatch(code)):  # LiteLLM has the status there, vLLM has it as a number
        spoken = error[:_LONGEST_NAME] if isinstance(error, str) else ""
        code = spoken if _SPOKEN_NAME.fullmatch(spoken) else None
    return _Reason(text[:_LONGEST], code, names.get("type"), names.get("param"), fields)


def _text(value: object) -> str:
    """Join whatever words there are; FastAPI's lists name the field before each complaint."""
    if isinstance(value, list):
        return "; ".join(filter(None, map(_text, value[:8])))
    if not isinstance(value, dict):
        return value.strip() if isinstance(value, str) else ""
    if isinstance(value.get("msg"), str):
        place = value.get("loc")
        where = ".".join(map(str, place)) if isinstance(place, list) else ""
        return f"{where}: {value['msg']}" if where else str(value["msg"])
    return next(filter(None, (_text(value.get(key)) for key in ("message", "detail", "error"))), "")
