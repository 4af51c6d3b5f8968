"""The contract of backends: ours keep it, and each bad one fails the test that is about it."""

from __future__ import annotations

import inspect
import re
from typing import Any

import bad_backends as bad
import pytest
from imagecall.middleware.backends.base import ImageRequest
from imagecall.middleware.backends.scene import SceneBackend
from imagecall.middleware.backends.testing import BackendContract

pytest_plugins = ["pytester"]

TESTS = [name for name in vars(BackendContract) if name.startswith("test_")]


class TestScene(BackendContract):
    supports_previews = True
    supports_edits = True
    sizes = ("96x64", "64x64", "64x96")
    longest_block = 30.0

    @pytest.fixture
    def backend(self) -> SceneBackend:
        return SceneBackend()

    @pytest.fixture
    def failing(self, backend: SceneBackend) -> tuple[SceneBackend, ImageRequest]:
        return backend, ImageRequest("a kite", size="9x9")


class TestPlain(BackendContract):
    @pytest.fixture
    def backend(self) -> bad.Plain:
        return bad.Plain()

    @pytest.fixture
    def failing(self, backend: bad.Plain) -> tuple[bad.Plain, ImageRequest]:
        return backend, ImageRequest("a kite", images=(None,))  # type: ignore[arg-type]  # nobody looks at it


class Strict(BackendContract):
    """The contract with all that it can demand."""

    supports_previews = True
    supports_edits = True
    patience = 30.0
    longest_block = 30.0


class Hasty(Strict):
    """The contract without patience, for those who would try it in vain."""

    patience = 0.2
    longest_block = 0.2


async def put_to(backend: Any, test: str, contract: BackendContract | None = None) -> None:
    """Put a backend to one test, with a request that it must refuse for the one about failures."""
    failing = test == "test_a_failure_is_an_image_error_that_says_why"
    given = {"failing": (backend, ImageRequest("fail"))} if failing else {"backend": backend}
    await getattr(contract or Strict(), test)(**given)


@pytest.mark.parametrize("test", TESTS)
async def test_a_good_backend_keeps_every_clause(test: str) -> None:
    await put_to(bad.Good(), test)


_BREACHES: list[tuple[type[bad.Good], str, str]] = [
    (bad.Wild, "a_prompt_becomes", "this is no picture: The data is not a PNG, JPEG, WebP or GIF picture."),
    (bad.Confused, "a_prompt_becomes", "a str is neither bytes nor an Image"),
    (bad.Hanging, "a_prompt_becomes", "there was no picture within 0.2 seconds"),
    (bad.Choosy, "usual_wishes", "Only png."),
    (bad.Broken, "an_odd_wish", "not enough values to unpack"),
    (bad.Careless, "unknown_fields", "unknown: "),
    (bad.Single, "many_pictures", "busy"),
    (bad.Blocking, "many_pictures", "the event loop stood still for"),
    (bad.Eager, "previews", "1 previews instead of 0"),
    (bad.Early, "previews", "the finished picture was shown as a preview"),
    (bad.Shy, "previews", "no preview came"),
    (bad.Rude, "previews", "this is no picture: The picture's header is broken."),
    (bad.Detached, "previews", "a preview came after the picture, or was not awaited"),
    (bad.Late, "previews", "a preview came after the picture, or was not awaited"),
    (bad.Blind, "a_given_picture", "nothing was changed"),
    (bad.Deaf, "cancelling", "the call went on although it was cancelled"),
    (bad.Slow, "cancelling", "a task went on although its call was cancelled"),
    (bad.Idle, "it_can_be_opened", "used up"),
    (bad.Silent, "a_failure", "the message is no sentence of 1 to 500 characters"),
    (bad.Mute, "a_failure", "the error has no code"),
]


@pytest.mark.parametrize(("backend", "test", "told"), _BREACHES, ids=[row[0].__name__ for row in _BREACHES])
async def test_a_bad_backend_fails_the_test_about_its_fault_and_is_told_why(
    backend: type[bad.Good], test: str, told: str
) -> None:
    [name] = [name for name in TESTS if name.startswith(f"test_{test}")]
    contract = Hasty() if backend in (bad.Hanging, bad.Blocking) else Strict()
    with pytest.raises(Exception, match=re.escape(told)):
        await put_to(backend(), name, contract)


async def test_a_backend_that_says_it_cannot_edit_must_refuse_to() -> None:
    class Modest(Strict):
        supports_edits = False

    with pytest.raises(AssertionError, match="it cannot edit, yet made a picture"):
        await put_to(bad.Good(), "test_a_given_picture_is_changed_or_refused", Modest())


async def test_a_preview_after_the_cancellation_is_a_breach() -> None:
    with pytest.raises(AssertionError, match=r"a preview came after the call was cancelled|a task went on"):
        await put_to(bad.Detached(), "test_cancelling_stops_the_work_and_spoils_nothing")


async def test_a_preview_that_stops_with_its_call_is_no_breach() -> None:
    await put_to(bad.Unlucky(), "test_cancelling_stops_the_work_and_spoils_nothing")


async def test_a_timeout_of_the_backends_own_is_its_own_failure() -> None:
    with pytest.raises(TimeoutError):
        await put_to(bad.Absent(), "test_a_prompt_becomes_a_picture")


async def test_not_failing_is_a_breach_of_a_request_that_must_fail() -> None:
    request = ImageRequest("a kite")
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        await Strict().test_a_failure_is_an_image_error_that_says_why((bad.Good(), request))


def test_every_test_is_a_coroutine_with_a_docstring() -> None:
    for name in TESTS:
        test = getattr(BackendContract, name)
        assert inspect.iscoroutinefunction(test)
        assert test.__doc__


_SOMEBODY_ELSES = """
import struct, zlib
import pytest
from imagecall.middleware.backends.base import ImageError
from imagecall.middleware.backends.testing import BackendContract

def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

head = chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, 8, 2, 0, 0, 0))
PNG = b"\\x89PNG\\r\\n\\x1a\\n" + head + chunk(b"IDAT", zlib.compress(bytes(7))) + chunk(b"IEND", b"")

class Mine:
    async def generate(self, request, on_partial):
        if request.images:
            raise ImageError("It cannot edit.")
        return PNG

class Odd(Mine):
    async def generate(self, request, on_partial):
        if request.extra:
            raise KeyError("x_style")
        return await super().generate(request, on_partial)

class TestMine(BackendContract):
    @pytest.fixture
    def backend(self):
        return Mine()

class TestOdd(BackendContract):
    @pytest.fixture
    def backend(self):
        return Odd()
"""


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_somebody_else_needs_only_pytest_and_its_asyncio_plugin(pytester: pytest.Pytester, mode: str) -> None:
    loops = "asyncio_default_fixture_loop_scope = function"
    pytester.makeini(
        f"[pytest]\nasyncio_mode = {mode}\n{loops}\naddopts = --strict-markers\nfilterwarnings = error"
    )
    pytester.makepyfile(test_mine=_SOMEBODY_ELSES)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-rA")
    result.assert_outcomes(passed=2 * len(TESTS) - 3, failed=1, skipped=2)
    result.stdout.fnmatch_lines(["FAILED test_mine.py::TestOdd::test_unknown_fields_do_no_harm*"])
    skipped = "SKIPPED*there is no fixture `failing`*"
    result.stdout.fnmatch_lines([skipped])
