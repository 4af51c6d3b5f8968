"""`python -m bench`: start everything, measure it round by round, print the table."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from .contenders import Contender, Site
from .measuring import Series, cpu_per_event, first_event, growth, idle_memory, picture_cost
from .report import Finding, table, write_chart
from .stream import call_turn, picture, text_turn

EVENTS = len(text_turn())
LONG = 20_000


def in_process(site: Site, rounds: int) -> Iterator[Finding]:
    """Measure the middleware around an application in the same process."""
    names = ("bare", "no-op", "imagecall")
    contenders = [site.in_process(name) for name in names]

    def against(series: Series) -> float:
        return series.ratio("imagecall", "no-op")

    burst = f"burst-{EVENTS - 8}"
    for clients, requests, target in ((1, 10, 1.4), (16, 2, 1.25)):
        series = cpu_per_event(contenders, burst, EVENTS, rounds, clients=clients, requests=requests)
        yield Finding(f"in-process, burst, {clients} client(s)", series, against(series), "×", target)
    paced = cpu_per_event(contenders, "paced-200", 208, rounds, clients=64)
    added = paced.difference("imagecall", "no-op")
    yield Finding("in-process, paced, 64 clients", paced, added, "µs", 5)
    events = LONG + 8 + len(call_turn())
    models = dict.fromkeys(names, f"burst-{LONG}") | {"imagecall": f"picture-{LONG}"}
    series = cpu_per_event(contenders, models, events, rounds, clients=1)
    yield Finding("in-process, after a picture, burst", series, against(series), "×", 1.7)
    first = first_event(contenders, rounds)
    added = first.difference("imagecall", "no-op")
    yield Finding("in-process, time to first event added", first, added, "ms", 0.3)
    yield from _growth(contenders[2], rounds)


def _growth(contender: Contender, rounds: int) -> Iterator[Finding]:
    sizes = {"2,000 events": ("burst-2000", 2_008), "20,000 events": (f"burst-{LONG}", LONG + 8)}
    series = growth(contender, sizes, rounds, clients=dict.fromkeys(sizes, 4))
    value = series.ratio("20,000 events", "2,000 events")
    yield Finding("in-process, ten times the events", series, value, "×", 1.1)
    clients = {"8 streams": 8, "80 streams": 80}
    series = growth(contender, dict.fromkeys(clients, ("burst-2000", 2_008)), rounds, clients=clients)
    value = series.ratio("80 streams", "8 streams")
    yield Finding("in-process, ten times the streams", series, value, "×", 1.1)


def proxies(site: Site, rounds: int) -> Iterator[Finding]:
    """Measure `imagecall serve` beside other proxies."""
    fast = [site.proxy(name) for name in ("aiohttp", "imagecall", "smg")]
    # Before all others: a process that has had much to do opens many streams in memory that it had freed.
    idle = Series("KiB", {contender.name: [idle_memory(contender)] for contender in fast})
    yield Finding("proxy, an open idle stream", idle, idle.median("imagecall"), "KiB", 48)
    litellm = site.proxy("litellm")
    burst = f"burst-{EVENTS - 8}"
    series = cpu_per_event(fast, burst, EVENTS, rounds, clients=64, requests=2)
    slow = cpu_per_event([litellm], burst, EVENTS, rounds, clients=4, requests=1)
    series.values |= slow.values
    yield Finding("proxy, burst, against SMG", series, series.ratio("imagecall", "smg"), "×", 0.20)
    yield Finding("proxy, burst, against LiteLLM", series, series.ratio("imagecall", "litellm"), "×", 0.02)
    series = cpu_per_event(fast, "paced-200", 208, rounds, clients=64)
    slow = cpu_per_event([litellm], "paced-200", 208, rounds, clients=16)
    series.values |= slow.values
    yield Finding("proxy, paced, against SMG", series, series.ratio("imagecall", "smg"), "×", 0.95)
    yield Finding("proxy, paced, against LiteLLM", series, series.ratio("imagecall", "litellm"), "×", 0.15)
    first = first_event([site.direct(), *fast], rounds)
    ratio = first.difference("imagecall", "direct") / first.difference("smg", "direct")
    yield Finding("proxy, time to first event added, against SMG", first, ratio, "×", 1)
    both = fast[1:]
    cpu, peaks = picture_cost(both, rounds)
    yield Finding("proxy, a picture of 3 MB, CPU against SMG", cpu, cpu.ratio("imagecall", "smg"), "×", 0.8)
    encoded = len(picture()) * 4 / 3 / 1e6
    shares = peaks.median("imagecall") / encoded
    yield Finding("proxy, a picture of 3 MB, peak memory", peaks, shares, "× its base64", 4)


GROUPS: dict[str, Callable[[Site, int], Iterator[Finding]]] = {"in-process": in_process, "proxy": proxies}


def main() -> None:
    """Measure, print, and write the chart if a file is named."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default: 5)")
    parser.add_argument("--only", choices=GROUPS, help="one group of measurements")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "imagecall-bench")
    parser.add_argument("--table", type=Path, help="a file for the table, in Markdown")
    parser.add_argument("--chart", type=Path, help="a file for the chart, a PNG")
    options = parser.parse_args()
    findings: list[Finding] = []
    for name, group in GROUPS.items():
        if options.only in (None, name):
            site = Site(options.folder)
            try:
                for finding in group(site, options.rounds):
                    findings.append(finding)
                    print(f"{finding.what}: {finding.value:.3g} {finding.unit}", file=sys.stderr, flush=True)
            finally:
                site.stop()
    written = table(findings, options.rounds)
    print(written)
    if options.table:
        options.table.write_text(written)
    if options.chart:
        write_chart(findings, options.chart)


if __name__ == "__main__":
    main()
