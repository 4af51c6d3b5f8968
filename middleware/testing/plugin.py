"""The pytest plugin: one fixture, `replay_upstream`.

pytest loads this in every run of every project that has the package installed, so it imports nothing
until a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .upstream import ReplayedUpstream, ReplayUpstream

__all__ = ["replay_upstream"]


@pytest.fixture
def replay_upstream(request: pytest.FixtureRequest) -> Iterator[ReplayUpstream]:
    """Call it with a recording's folder, relative to pytest's rootdir, to get a `ReplayedUpstream`.

    The options are those of `ReplayedUpstream`: `chunks`, `pace`, `check`. At the end of the test its server
    is stopped, and the test fails if the model server was not asked as the recording wants it.

    Raises:
        RecordingError: the folder holds no whole recording.
    """
    from ..recording import read_recording
    from .upstream import ReplayedUpstream

    upstreams: list[ReplayedUpstream] = []

    def replay(folder: str, **options: Any) -> ReplayedUpstream:
        recording = read_recording(request.config.rootpath / folder)
        upstreams.append(ReplayedUpstream(recording, name=str(folder), **options))
        return upstreams[-1]

    yield replay
    for upstream in upstreams:
        upstream.close()
    if problems := [problem for upstream in upstreams for problem in upstream.problems]:
        pytest.fail("\n".join(problems), pytrace=False)
