"""The soak in short: the promises hold, and each of them can be seen to be broken."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asgi import Client, post
from imagecall.middleware import ImageGenerationMiddleware
from imagecall.middleware.backends.base import ImageRequest, OnPartial
from imagecall.middleware.embedded.scripted import scripted_app

from bench import soak as soaking
from bench.soak import Options, soak
from bench.soaking.pictures import mark_of, paint, read_mark
from bench.soaking.report import Soaked, broken_promises, table
from bench.soaking.situations import request
from bench.soaking.tally import Tally
from bench.soaking.verdict import HOSTED, Heard, Wanted, events_of, judge
from bench.soaking.watch import Census, levels

_ROOT = Path(__file__).parent.parent
_LEAKING = (
    sys.executable,
    "-c",
    "import sys; sys.path.append('tests'); import leaking_server; leaking_server.main()",
)


def test_a_short_soak_breaks_no_promise(tmp_path: Path) -> None:
    options = {
        "seconds": 2,
        "warm-up": 0,
        "streams": 14,
        "pace": 0.2,
        "folder": tmp_path / "soak",
        "table": tmp_path / "table.md",
    }
    words = (f"--{name}={value}" for name, value in options.items())
    command = [sys.executable, "-m", "bench.soak", *words]
    ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    rows = dict(line.strip("| ").split(" | ", 1) for line in ended.stdout.splitlines() if line)
    assert (rows["… wrong"], rows["lines of trouble in the log"]) == ("0", "0")
    assert all(int(rows[name].replace(",", "")) > 0 for name in ("streams checked", "… whole", "events"))
    assert (tmp_path / "table.md").read_text() + "\n" == ended.stdout


def test_a_server_that_leaks_and_spoils_streams_breaks_every_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(_ROOT)
    monkeypatch.setattr("bench.soaking.watch._PATIENCE", 5.0)
    broken = broken_promises(soak(Options(4, 14, tmp_path, pace=0.2, served=_LEAKING, long=0)))
    starts = ("The tasks", "The objects", "The level of resident memory", "The server's log")
    assert all(sum(line.startswith(start) for line in broken) == 1 for start in starts), broken
    assert sum(line.endswith("were before.") for line in broken) == 1, broken
    assert "streams are wrong" in broken[0]
    assert "sequence_number does not run" in broken[0]


# -- the promises -----------------------------------------------------------------------------

_IDLE = Census({"Server.serve": 1}, {"Exchange": 0}, sockets=3, descriptors=14, threads=6)


def _soaked(tmp_path: Path, **changes: Any) -> Soaked:
    tally = Tally(tmp_path, whole=10, pictures=5)
    same: dict[str, Any] = {"before": _IDLE, "after": _IDLE, "memory": [90, 95, 100, 104], "trouble": []}
    return Soaked(**{"clients": 2, "seconds": 60, "tally": tally, "judges_memory": True, **same, **changes})


def test_a_soak_that_kept_all_promises_has_nothing_to_say(tmp_path: Path) -> None:
    more_threads = replace(_IDLE, threads=11)
    assert broken_promises(_soaked(tmp_path, after=more_threads)) == []
    assert "| threads | 6 before, 11 after |" in table(_soaked(tmp_path, after=more_threads))


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"after": replace(_IDLE, tasks={"Server.serve": 1, "Job.run": 2})},
            "The tasks are not those of before: Job.run 0 → 2.",
        ),
        (
            {"after": replace(_IDLE, objects={"Exchange": 1})},
            "The objects are not those of before: Exchange 0 → 1.",
        ),
        ({"after": replace(_IDLE, sockets=4)}, "4 sockets are open afterwards, 3 were before."),
        ({"after": replace(_IDLE, descriptors=13)}, "13 descriptors are open afterwards, 14 were before."),
        (
            {"memory": [90_000_000, 95_000_000, 100_000_000, 106_000_000]},
            "The level of resident memory goes from 100.0 to 106.0 MB in the second half: 6.0%, above 5%.",
        ),
        ({"trouble": ["ERROR: no"]}, "The server's log has 1 lines of trouble; the first: ERROR: no"),
        (
            {"tally": Tally(Path(), whole=2, pictures=1, wrong=["words: odd"], wrong_streams=1)},
            "1 of 2 streams are wrong; the first: words: odd",
        ),
        ({"tally": Tally(Path())}, "Only 0 whole streams and 0 pictures came; nothing was tried."),
    ],
)
def test_each_broken_promise_is_one_line(changes: dict[str, Any], line: str, tmp_path: Path) -> None:
    assert broken_promises(_soaked(tmp_path, **changes)) == [line]


def test_memory_is_not_judged_after_too_short_a_time(tmp_path: Path) -> None:
    short = _soaked(tmp_path, memory=[100, 100, 100, 200], judges_memory=False)
    assert broken_promises(short) == []
    assert "100.0% apart (too short to judge)" in table(short)


def test_the_level_of_memory_is_the_median_of_each_fifth_of_the_second_half() -> None:
    assert levels([*[7] * 15, *[4, 90, 4] * 4, 5, 6, 90]) == [4, 4, 4, 4, 6]
    assert levels([7, 7, 7, 1, 2, 3]) == [1, 2, 3]
    assert levels([1]) == [1]
    assert levels([]) == [0]


@pytest.mark.parametrize(("trouble", "code"), [([], 0), (["ERROR: no"], 1)])
def test_the_exit_code_tells_of_broken_promises(
    trouble: list[str],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(soaking, "soak", lambda options: _soaked(tmp_path, trouble=trouble))
    assert soaking.main([]) == code
    told = capsys.readouterr()
    assert told.out == table(_soaked(tmp_path, trouble=trouble)) + "\n"
    assert told.err.count("BROKEN: ") == code


# -- the verdict on one stream ----------------------------------------------------------------


class _Painter:
    async def generate(self, request: ImageRequest, on_partial: OnPartial) -> bytes:
        for number in range(request.partial_images):
            await on_partial(paint(mark_of(f"{request.prompt} {number}")))
        return paint(mark_of(request.prompt))


_PREVIEWS = ({**HOSTED, "partial_images": 1},)
_KITE = Wanted("tag-7", 1, tools=_PREVIEWS)


async def _heard(wanted: Wanted = _KITE, *, stream: bool = True) -> Heard:
    app = ImageGenerationMiddleware(scripted_app(), _Painter())
    body = request(wanted, f"Draw a red kite {wanted.tag}", stream=stream)
    client = Client(app, body, post())
    await client.run()
    return Heard(client.status, client.body, stream=stream)


async def test_what_was_asked_for_is_right_whole_and_left_as_a_stream_and_as_json() -> None:
    heard = await _heard()
    assert judge(heard, _KITE) == []
    assert judge(replace(heard, body=heard.body[:-9], left="anywhere"), _KITE) == []
    assert judge(Heard(0, b"", "at once"), _KITE) == []
    plain = await _heard(Wanted("tag-7", 1), stream=False)
    assert judge(plain, Wanted("tag-7", 1)) == []
    assert judge(replace(plain, body=plain.body[:99], left="anywhere"), Wanted("tag-7", 1)) == []


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        (replace(_KITE, tag="tag-8"), "The stream of tag-8 holds ['tag-7']."),
        (replace(_KITE, pictures=2), "(1, 0) pictures were made and failed instead of (2, 0)."),
        (replace(_KITE, sources=(b"x",)), "The picture of 'a red kite tag-7' is an generate."),
        (replace(_KITE, statuses=("failed",)), "The response is completed instead of failed."),
        (replace(_KITE, tools=(HOSTED,)), "tools are not the client's own"),
    ],
)
async def test_what_is_not_what_was_asked_for_is_wrong(wanted: Wanted, complaint: str) -> None:
    wrong = judge(await _heard(), wanted)
    assert any(complaint in sentence for sentence in wrong), wrong


async def test_another_picture_than_the_one_of_the_prompt_is_wrong() -> None:
    heard = await _heard()
    item = events_of(heard.body)[-1]["response"]["output"]
    picture = next(one["result"] for one in item if one["type"] == "image_generation_call")
    assert read_mark(picture) == mark_of("a red kite tag-7")
    other = (await _heard(replace(_KITE, tag="tag-8"))).body
    foreign = events_of(other)[-1]["response"]["output"]
    swapped = next(one["result"] for one in foreign if one["type"] == "image_generation_call")
    spoilt = replace(heard, body=heard.body.replace(picture.encode(), swapped.encode()))
    assert judge(spoilt, _KITE) == [
        "The picture of 'a red kite tag-7' is not the one that was painted for it."
    ]


async def test_a_status_that_is_no_success_is_wrong_and_the_body_is_kept(tmp_path: Path) -> None:
    tally = Tally(tmp_path)
    assert not tally.add(Heard(502, b'{"error":{}}'), _KITE, "words")
    assert (tally.wrong_streams, tally.streams) == (1, 1)
    assert tally.wrong == [f"words ({tmp_path / 'wrong-1.txt'}): The status is 502: b'{{\"error\":{{}}}}'"]
    assert json.loads((tmp_path / "wrong-1.txt").read_bytes()) == {"error": {}}
