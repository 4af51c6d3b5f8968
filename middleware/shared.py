"""What all exchanges of one middleware share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.types import ASGIApp

from .backends.routing import Routing
from .edits.artifacts import Artifacts
from .settings import Settings
from .shutdown import Shutdown
from .telemetry.telemetry import Telemetry

__all__ = ["Shared"]


@dataclass(frozen=True, slots=True)
class Shared:
    """Parts that live as long as the middleware.

    Attributes:
        app: the inner application.
        settings: all of them.
        routing: gives each picture its backend.
        slots: bounds the pictures made at a time in this process.
        shutdown: tells when the server stops.
        telemetry: where spans and measurements go.
        artifacts: where finished pictures are also written; None for nowhere.
    """

    app: ASGIApp
    settings: Settings
    routing: Routing
    slots: asyncio.Semaphore
    shutdown: Shutdown
    telemetry: Telemetry
    artifacts: Artifacts | None
