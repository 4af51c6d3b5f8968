"""One measurement: contenders in turn, round after round, and what each cost."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .contenders import Contender
from .load import Load
from .process import LOAD_CORE
from .stream import PICTURE_BYTES, request

__all__ = ["Series", "cpu_per_event", "drive", "first_event", "growth", "idle_memory", "picture_cost"]


@dataclass(slots=True)
class Series:
    """What each contender cost in each round.

    Attributes:
        unit: of the values.
        values: by contender, a value for each round.
    """

    unit: str
    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        """Note a value."""
        self.values.setdefault(name, []).append(value)

    def median(self, name: str) -> float:
        """Return the median of the rounds."""
        return statistics.median(self.values[name])

    def spread(self, name: str) -> tuple[float, float]:
        """Return the least and the greatest value."""
        return min(self.values[name]), max(self.values[name])

    def ratio(self, name: str, other: str) -> float:
        """Return the median of the ratios within a round: the machine's pace drifts from one to the next."""
        pairs = zip(self.values[name], self.values[other], strict=True)
        return statistics.median(one / two for one, two in pairs)

    def difference(self, name: str, other: str) -> float:
        """Return the median of the differences within a round."""
        pairs = zip(self.values[name], self.values[other], strict=True)
        return statistics.median(one - two for one, two in pairs)


def drive(contender: Contender, model: str, **options: Any) -> dict[str, Any]:
    """Let the clients ask; return what they saw."""
    load = Load(contender.url, request(model).decode(), **options)
    command = ["taskset", "-c", str(LOAD_CORE), sys.executable, "-m", "bench.load", json.dumps(asdict(load))]
    ended = subprocess.run(command, check=True, capture_output=True, timeout=600)
    result: dict[str, Any] = json.loads(ended.stdout)
    return result


def _rounds(contenders: Iterable[Contender], count: int, once: Callable[[Contender], float]) -> Series:
    series = Series("")
    for contender in contenders:
        once(contender)  # to warm up
    for _ in range(count):
        for contender in contenders:
            series.add(contender.name, once(contender))
    return series


def cpu_per_event(
    contenders: Iterable[Contender],
    model: str | Mapping[str, str],
    events: int,
    rounds: int,
    *,
    clients: int,
    requests: int = 1,
) -> Series:
    """Measure CPU microseconds of the server per event.

    Args:
        contenders: the servers.
        model: what to ask for, for all or by the contender's name.
        events: those of one request.
        rounds: how many times.
        clients: how many at a time.
        requests: of each client, one after the other.
    """

    def once(contender: Contender) -> float:
        asked = model if isinstance(model, str) else model[contender.name]
        before = contender.process.cpu()
        drive(contender, asked, clients=clients, requests=requests)
        return (contender.process.cpu() - before) / (clients * requests * events) * 1e6

    series = _rounds(contenders, rounds, once)
    series.unit = "µs/event"
    return series


def growth(
    contender: Contender, sizes: dict[str, tuple[str, int]], rounds: int, *, clients: dict[str, int]
) -> Series:
    """Measure CPU microseconds per event of one contender at several sizes, in turn.

    Args:
        contender: the server.
        sizes: what to ask for and how many events that makes, by the size's name.
        rounds: how many times.
        clients: how many at a time, by the size's name.
    """
    series = Series("µs/event")
    for number in range(rounds + 1):
        for name, (model, events) in sizes.items():
            before = contender.process.cpu()
            drive(contender, model, clients=clients[name], requests=2)
            if number:  # the first one warms up
                series.add(name, (contender.process.cpu() - before) / (clients[name] * 2 * events) * 1e6)
    return series


def first_event(contenders: Iterable[Contender], rounds: int) -> Series:
    """Measure the milliseconds from a request to its first event, one request at a time."""

    def once(contender: Contender) -> float:
        return float(drive(contender, "burst-1", clients=1, requests=50)["first"]) * 1e3

    series = _rounds(contenders, rounds, once)
    series.unit = "ms"
    return series


def picture_cost(contenders: Sequence[Contender], rounds: int) -> tuple[Series, Series]:
    """Measure one response with a picture: CPU milliseconds, and how many bytes the memory grows at most."""
    peaks = Series("MB")
    for contender in contenders:
        _wait_for_a_picture(contender)

    def once(contender: Contender) -> float:
        contender.process.forget_peak()
        before, resident = contender.process.cpu(), contender.process.memory()
        drive(contender, "picture-20", clients=1, requests=1)
        peaks.add(contender.name, (contender.process.peak() - resident) / 1e6)
        return (contender.process.cpu() - before) * 1e3

    series = _rounds(contenders, rounds, once)
    series.unit = "ms"
    return series, peaks


def _wait_for_a_picture(contender: Contender) -> None:
    """Ask until a picture comes: a contender may answer before it has found its picture maker."""
    for _ in range(20):
        if drive(contender, "picture-20", clients=1)["bytes"] > PICTURE_BYTES:
            return
    raise RuntimeError(f"{contender.name} makes no picture")


def idle_memory(contender: Contender, streams: int = 400) -> float:
    """Measure the resident KiB per stream that is open and silent, less what twenty of them need."""
    few = _resident(contender, 20)
    return (_resident(contender, 20 + streams) - few) / streams / 1024


def _resident(contender: Contender, streams: int) -> int:
    load = Load(contender.url, request("idle").decode(), clients=streams, hold=True)
    command = ["taskset", "-c", str(LOAD_CORE), sys.executable, "-m", "bench.load", json.dumps(asdict(load))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as clients:
        assert clients.stdin
        assert clients.stdout
        clients.stdout.readline()
        resident = contender.process.memory()
        clients.stdin.close()
    return resident
