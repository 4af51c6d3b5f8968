"""What the MCP SDK and its HTTP client log, without the secrets that they know nothing of.

They log URLs at INFO, what breaks the protocol at ERROR, all messages at DEBUG. A key may stand in any of
these: some servers take it in their URL only, and some repeat it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ..secret_values import Secrets

__all__ = ["without_secrets"]

_FAMILIES = frozenset({"mcp", "client", "httpx2", "httpcore2"})
"""How their loggers' names begin; `client` is the SDK's, too."""

_LONGEST = 64 << 10
"""Characters of one line: a picture in base64 has millions."""

_formatter = logging.Formatter()


class _Striking(logging.Filter):
    """Lets all records pass, struck of secrets."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__()
        self._secrets = secrets

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self._struck(record.getMessage()), None
        if record.exc_info:
            record.exc_text = self._struck(_formatter.formatException(record.exc_info))
            record.exc_info = None
        return True

    def _struck(self, text: str) -> str:
        return self._secrets.strike(text[:_LONGEST])


@contextmanager
def without_secrets(secrets: Secrets) -> Iterator[None]:
    """Strike secrets out of all that these packages log in the meantime, whoever made them log it."""
    import httpcore2  # noqa: F401  a logger must be there to be found
    import mcp  # noqa: F401  the same

    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _FAMILIES]
    striking = _Striking(secrets)
    for name in names:
        logging.getLogger(name).addFilter(striking)
    try:
        yield
    finally:
        for name in names:
            logging.getLogger(name).removeFilter(striking)
