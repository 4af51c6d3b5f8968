"""Several backends: which one makes a picture, who waits for which, and what is said about a wrong route."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asgi import Client, ask, conversation, draw, lifespan, middleware
from imagecall.middleware import ImageGenerationMiddleware, SettingsError
from imagecall.middleware.backends.base import ImageError
from imagecall.middleware.backends.owner import BackendOwner
from imagecall.middleware.backends.routing import Routing, make_routing
from imagecall.middleware.backends.scene import SceneBackend
from imagecall.middleware.settings import load_settings
from kite import KITE, pair
from model_server import HOSTED, KITE_TURNS, ModelServer, calling, saying
from painters import Painter, Studio
from rules import check_stream, read_events
from waiting import Clock, settle

GENERATING = b"event: response.image_generation_call.generating\n"


def wanting(model: str | None) -> Any:
    """Make a request whose declaration names an image model."""
    return draw(tools=[{**HOSTED, "model": model} if model else HOSTED])


def items(client: Client) -> list[Any]:
    output: list[Any] = read_events(client.body)[-1]["response"]["output"]
    return [item for item in output if item["type"] == "image_generation_call"]


def codes(client: Client) -> list[str | None]:
    return [item.get("error", {}).get("code") for item in items(client)]


def routed(routes: Any, **settings: Any) -> Routing:
    return make_routing(load_settings({"backend": routes, **settings}))


@pytest.mark.parametrize(
    ("model", "glob"),
    [
        ("flux-dev", "flux*"),
        ("flux-pro", "flux*"),
        ("gpt-image-2", "gpt-image-?"),
        ("gpt-image-1.5", "*"),
        ("FLUX", "*"),
        ("", "*"),
        (None, "*"),
    ],
)
def test_the_first_glob_that_matches_the_declared_model_wins_and_the_star_is_the_default(
    model: str | None, glob: str
) -> None:
    globs = ("*", "flux*", "flux-pro", "gpt-image-?")
    owners = {glob: BackendOwner(Painter(), concurrency=1, queue=1) for glob in globs}
    assert Routing(owners).owner(model) is owners[glob]


@pytest.mark.parametrize(
    ("model", "which"),
    [
        (None, "pictures without a declared model"),
        ("gpt-image-2", "the image model 'gpt-image-2'"),
        ("m" * 999, f"the image model '{'m' * 60}'"),
    ],
)
def test_without_a_default_there_may_be_no_backend(model: str | None, which: str) -> None:
    routing = routed({"flux*": Painter()})
    assert routing.present
    with pytest.raises(ImageError) as caught:
        routing.owner(model)
    assert caught.value.message == f"There is no image backend for {which}."
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


def test_no_routes_at_all_are_no_backend() -> None:
    assert not routed({}).present
    assert not make_routing(load_settings({})).present


async def test_each_picture_is_made_by_the_backend_of_its_declared_model() -> None:
    flux, rest = Painter(), Painter()
    app = middleware(ModelServer(*KITE_TURNS * 3), {"flux*": flux, "*": rest})
    for model in ("flux-dev", "gpt-image-2", None):
        client = await ask(app, wanting(model))
        assert codes(client) == [None]
    assert [request.model for request in flux.asked] == ["flux-dev"]
    assert [request.model for request in rest.asked] == ["gpt-image-2", None]


async def test_a_model_without_a_backend_fails_its_item_and_the_model_is_told() -> None:
    server, flux = ModelServer(*KITE_TURNS), Painter()
    client = await ask(middleware(server, {"flux*": flux}), wanting("gpt-image-2"))
    assert check_stream(client.body, tools=wanting("gpt-image-2")["tools"], tool_choice="auto") == []
    [item] = items(client)
    assert (item["status"], item["error"]["code"]) == ("failed", "model_not_found")
    _, output = pair(server.asked[1].json)
    told = json.loads(output["output"])["error"]
    assert told["message"] == "There is no image backend for the image model 'gpt-image-2'."
    assert flux.asked == []


async def test_a_backend_that_cannot_be_opened_leaves_the_others_alone() -> None:
    broken, whole = Studio(OSError(), OSError()), Studio()
    app = middleware(ModelServer(*KITE_TURNS * 3), {"broken": broken, "*": whole})
    async with lifespan(app):
        assert codes(await ask(app, wanting("broken"))) == ["image_backend_error"]
        assert codes(await ask(app, wanting(None), owners=1)) == [None]
        assert codes(await ask(app, wanting("broken"))) == ["image_backend_error"]
        assert (len(broken.opened), len(whole.opened)) == (2, 1)
    assert (broken.closed, whole.closed) == ([], whole.opened)


async def test_shutdown_closes_each_opened_backend_once() -> None:
    both, late = Studio(), Studio()
    app = middleware(ModelServer(*KITE_TURNS * 3), {"a": both, "b": both, "c": late})
    async with lifespan(app):
        await ask(app, wanting("a"), owners=1)
        await ask(app, wanting("b"))
        await ask(app, wanting("c"), owners=1)
    for studio in (both, late):
        assert len(studio.opened) == len(studio.closed) == 1


async def test_a_picture_that_waits_too_long_for_its_backend_fails_and_the_others_go_on() -> None:
    clock, painter = Clock(), Painter(waits=True)
    server = ModelServer(calling("one", "two", "three"), saying("One."))
    app = middleware(server, painter, backend_concurrency=1, backend_queue=60)
    async with conversation(app, draw()) as client:
        await painter.was_asked()
        await settle()
        await clock.forward(59)
        assert b"backend_busy" not in client.body
        await clock.forward(1)
        await client.heard(b'"status":"failed"')
        painter.may_finish.set()
    assert codes(client) == [None, "backend_busy", "backend_busy"]
    assert [request.prompt for request in painter.asked] == ["one"]
    message = items(client)[1]["error"]["message"]
    assert message == (
        "The image backend is busy: it had no place free within the 60 seconds that backend_queue allows."
    )


async def test_a_queue_of_no_seconds_takes_only_what_can_begin_at_once() -> None:
    painter = Painter(waits=True)
    server = ModelServer(calling("one", "two"), saying("One."))
    app = middleware(server, painter, backend_concurrency=1, backend_queue=0)
    async with conversation(app, draw()) as client:
        await client.heard(b"backend_busy")
        painter.may_finish.set()
    assert codes(client) == [None, "backend_busy"]


async def test_a_backend_serves_in_the_order_of_asking_and_whoever_leaves_the_queue_is_passed_over() -> None:
    painter = Painter(waits=True)
    server = ModelServer(calling("a"), calling("b"), calling("c"), calling("d"), *[saying("Done.")] * 3)
    app = middleware(server, painter, backend_concurrency=1)
    async with (
        conversation(app, draw()),
        conversation(app, draw()) as impatient,
        conversation(app, draw()),
        conversation(app, draw()),
    ):
        await server.was_asked(4)
        await impatient.heard(b"image_generation_call.generating")
        await settle()
        impatient.leave()
        await settle()
        painter.may_finish.set()
    assert [request.prompt for request in painter.asked] == ["a", "c", "d"]
    assert painter.cancelled == []


async def test_a_queue_before_one_backend_holds_up_no_other() -> None:
    slow, quick = Painter(waits=True), Painter()
    turns = calling("a", "b", "c"), calling("d", "e", "f"), calling(KITE)
    server = ModelServer(*turns, *[saying("Done.")] * 3)
    routes = {"slow": slow, "*": quick}
    app = middleware(server, routes, concurrency=2, backend_concurrency=1)
    async with conversation(app, wanting("slow")) as one, conversation(app, wanting("slow")) as two:
        await server.was_asked(2)
        for client in (one, two):
            await client._news.until(lambda client=client: client.body.count(GENERATING) == 3)
        await settle()
        assert codes(await ask(app, wanting(None))) == [None]
        assert (len(slow.asked), len(quick.asked)) == (1, 1)
        slow.may_finish.set()
    assert codes(one) == codes(two) == [None] * 3
    assert len(slow.asked) == 6


def test_globs_with_the_same_backend_share_its_places() -> None:
    painter = Painter()
    server = {"backend": "scene", "concurrency": 2}
    routing = routed({"a": painter, "b": painter, "c": "scene", "d": "scene", "e": server, "f": {**server}})
    owners = [routing.owner(model) for model in "abcdef"]
    assert owners[0] is owners[1]
    assert owners[2] is owners[3]
    assert owners[4] is owners[5]
    assert len({id(owner) for owner in owners}) == 3


def test_backends_that_are_only_equal_are_two() -> None:
    class Equal(Painter):
        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 1

    routing = routed({"a": Equal(), "b": Equal()})
    assert routing.owner("a") is not routing.owner("b")


async def test_routes_may_come_as_json_from_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    routes = {"flux*": {"backend": "scene", "concurrency": 2, "queue": 5}, "*": "scene"}
    monkeypatch.setenv("IMAGECALL_BACKEND", json.dumps(routes))
    app = ImageGenerationMiddleware(ModelServer())
    one, rest = (app._routing.owner(model) for model in ("flux-dev", None))
    assert one is not rest
    for owner in (one, rest):
        assert isinstance(await owner.backend(), SceneBackend)
    assert [(owner._places._value, owner._queue) for owner in (one, rest)] == [(2, 5.0), (4, 120.0)]


async def test_a_route_takes_the_processes_bounds_and_limits_but_no_other_servers_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[Any] = []

    def build(settings: Any, route: str) -> Painter:
        built.append(settings)
        return Painter()

    monkeypatch.setattr("imagecall.middleware.backends.routing.named_backend", build)
    shared = {"backend_url": "http://one/v1", "backend_api_key": "one's", "backend_headers": {"x": "one's"}}
    bounds = {"backend_timeout": 7, "backend_retries": 1, "backend_concurrency": 3, "max_image": 9}
    theirs = {"backend": "openai", "url": "http://two/v1", "api_key": "two's", "drop": ["quality"]}
    routed({"own": theirs, "*": "openai"}, **shared, **bounds, backend_queue=8)
    own, name = built
    assert (own.backend_url, own.backend_api_key.get_secret_value()) == ("http://two/v1", "two's")
    assert (own.backend_headers, own.backend_drop) == ({}, ("quality",))
    assert (name.backend_url, name.backend_headers) == ("http://one/v1", {"x": "one's"})
    for settings in built:
        assert (settings.backend_timeout, settings.backend_retries, settings.max_image) == (7.0, 1, 9)
        assert (settings.backend_concurrency, settings.backend_queue) == (3, 8.0)


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        (None, "backend: it is neither a name nor a mapping of settings nor an object with generate()."),
        (7, "backend: it is neither a name nor a mapping of settings nor an object with generate()."),
        ("dall-e", "backend: Input should be 'scene', 'openai' or 'mcp'."),
        ({}, "backend: it must name one."),
        ({"backend": {"*": "scene"}}, "backend: it must name one."),
        ({"backend": "scene", "colour": "red"}, "colour: there is no such setting."),
        ({"backend": "scene", "backend_url": "x"}, "backend_url: there is no such setting."),
        ({"backend": "scene", "concurrency": 0}, "concurrency: Input should be greater than 0."),
        (
            {"backend": "openai"},
            "url: the backend openai needs the Images API's base, such as http://127.0.0.1:8000/v1.",
        ),
        (
            {"backend": "mcp", "url": "http://x/mcp", "command": "serve"},
            "command: the backend mcp takes a URL or a command, not both.",
        ),
    ],
)
def test_a_wrong_route_is_named_in_one_line(route: Any, reason: str) -> None:
    with pytest.raises(SettingsError) as caught:
        routed({"flux*": route})
    assert str(caught.value) == f"backend (IMAGECALL_BACKEND), for 'flux*': {reason}"


async def test_a_cancelled_wait_gives_no_place_away() -> None:
    owner = BackendOwner(Painter(), concurrency=1, queue=100)

    async def wait() -> None:
        async with owner.place():
            raise AssertionError("there is no place")

    async with owner.place():
        task = asyncio.create_task(wait())
        await settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with owner.place():
        assert owner._places.locked()
    assert not owner._places.locked()
