"""The two ways in which a conversation on the wire can go wrong, named after whose fault it is."""

from __future__ import annotations

__all__ = ["LocalProtocolError", "RemoteProtocolError", "RequestError"]


class LocalProtocolError(Exception):
    """This program broke the protocol: a bug here, never the peer's doing."""


class RemoteProtocolError(Exception):
    """The model server sent something that cannot be understood.

    The message is for the log only; the client gets a short neutral text.
    """


class RequestError(Exception):
    """The client's request is wrong; it is answered before anything is sent upstream.

    Args:
        message: one sentence: what is wrong, where, and how to mend it.
        param: the path of the wrong field, such as `tools[2].partial_images`.
        code: a machine-readable reason, where OpenAI has one.
        status: the HTTP status, 400 unless told otherwise.
    """

    def __init__(
        self, message: str, *, param: str | None = None, code: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
        self.status = status
