"""Where a fetch connects to: only to addresses that were checked, and to whom their certificate says."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import tls
from fetching import FILE, PUBLIC, Names, answer, fetcher, refused, site
from imagecall.middleware.edits.addresses import is_public
from imagecall.middleware.edits.fetcher import Fetcher, resolve_host
from loopback import read_request

# -- where the connection goes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "0",
        "１２７.0.0.1",
        "localhost",
        "LOCALHOST.",
        "10.1.2.3",
        "169.254.169.254",
        "168.63.129.16",
        "[::1]",
        "[::]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fe80::1%25lo]",
        "[fd00:ec2::254]",
    ],
)
async def test_a_host_inside_is_refused_in_every_notation(host: str) -> None:
    code, message = await refused(Fetcher(("*:*",), max_bytes=1_000), f"http://{host}:8000/")
    assert (code, message) == (
        "image_url_not_allowed",
        "The picture's URL is not on a host that can be found on the public internet.",
    )


@pytest.mark.parametrize("addresses", [["10.0.0.1"], [PUBLIC, "10.0.0.1"], ["10.0.0.1", PUBLIC], []])
async def test_each_address_of_a_host_must_be_public_and_a_missing_host_looks_the_same(
    addresses: list[str],
) -> None:
    async with site() as (host, seen):
        assert await refused(fetcher(Names(addresses)), f"http://{host}/") == (
            "image_url_not_allowed",
            "The picture's URL is not on a host that can be found on the public internet.",
        )
    assert seen == []


async def test_a_name_that_changes_its_address_after_the_check_is_not_asked_again() -> None:
    names = Names([PUBLIC], ["127.0.0.2"])
    async with site(answer()) as (host, _):
        assert await fetcher(names).fetch(f"http://{host}/") == FILE
    assert len(names.asked) == 1


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0177.0.0.1", "1.2.3.4.5", "8.8.8"])
async def test_a_number_that_is_no_plain_address_is_no_host(host: str) -> None:
    names = Names([PUBLIC])
    assert (await refused(fetcher(names), f"http://{host}:9/"))[0] == "image_url_not_allowed"
    assert names.asked == []


async def test_any_of_the_checked_addresses_will_do() -> None:
    async with site(answer()) as (host, _):
        addresses = ["::1", PUBLIC]  # nobody listens at the first
        assert (
            await fetcher(Names(addresses), is_public=addresses.__contains__).fetch(f"http://{host}/") == FILE
        )


async def test_the_systems_resolver_knows_literal_addresses_and_this_machine() -> None:
    assert await resolve_host("192.0.2.1", 80) == ["192.0.2.1"]
    assert await resolve_host("2001:DB8::1", 80) == ["2001:db8::1"]
    assert set(await resolve_host("localhost", 80)) <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize("host", ["a..b", "a" * 64, "a\0b"])
async def test_what_is_no_name_has_no_address(host: str) -> None:
    assert await resolve_host(host, 80) == []


async def test_an_unknown_name_has_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async def getaddrinfo(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    assert await resolve_host("nothing.invalid", 80) == []


def test_by_default_an_address_is_judged_by_the_public_internet() -> None:
    assert Fetcher(("*",), max_bytes=1)._is_public is is_public


# -- TLS -------------------------------------------------------------------------------------------


@asynccontextmanager
async def secure_site(folder: Path) -> AsyncIterator[int]:
    """Serve `FILE` by https; give the port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await read_request(reader)
            writer.write(answer())
            await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, PUBLIC, 0, ssl=tls.server_side(folder))
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_a_certificate_must_be_good_for_the_name_though_an_address_is_connected_to(
    tmp_path: Path,
) -> None:
    trusting = fetcher(Names(), tls=tls.client_side())
    async with secure_site(tmp_path) as port:
        assert await trusting.fetch(f"https://{tls.NAME}:{port}/") == FILE
        for other in ("other.example", PUBLIC):
            assert await refused(trusting, f"https://{other}:{port}/") == (
                "image_fetch_failed",
                "The picture's URL could not be fetched.",
            )


async def test_an_unknown_certificate_is_not_trusted(tmp_path: Path) -> None:
    async with secure_site(tmp_path) as port:
        assert (await refused(fetcher(Names()), f"https://{tls.NAME}:{port}/"))[0] == "image_fetch_failed"
