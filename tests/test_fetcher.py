"""Fetching by URL: what is asked, and what of an answer is a file."""

from __future__ import annotations

import asyncio
import gzip
import socket
from pathlib import Path

import pytest
from fetching import FILE, PUBLIC, Names, answer, fetcher, refused, site
from imagecall.middleware.edits.fetcher import Fetcher
from loopback import raw_server, read_request

# -- what is asked ---------------------------------------------------------------------------------


async def test_a_file_is_asked_for_plainly_and_comes_as_it_is() -> None:
    names = Names()
    async with site(answer()) as (host, seen):
        data = await fetcher(names).fetch(f"http://{host}/a%20cat.png?signature=%2Fx%3D#top")
    assert data == FILE
    assert names.asked == [("pictures.example", int(host.partition(":")[2]))]
    assert seen == [
        f"GET /a%20cat.png?signature=%2Fx%3D HTTP/1.1\r\nHost: {host}\r\nUser-Agent: imagecall\r\n"
        "Accept: image/png, image/jpeg, image/webp, image/gif\r\nAccept-Encoding: identity\r\n"
        "Connection: close\r\n\r\n".encode()
    ]


async def test_a_url_with_other_letters_is_quoted() -> None:
    async with site(answer()) as (host, seen):
        await fetcher(Names()).fetch(f"http://{host}/süße katze.png")
    assert seen[0].startswith(b"GET /s%C3%BC%C3%9Fe%20katze.png HTTP/1.1\r\n")


async def test_neither_proxies_nor_passwords_of_the_environment_are_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("default login me password s3cret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with site(answer()) as (host, seen):
        assert await fetcher(Names()).fetch(f"http://{host}/") == FILE
    assert b"authorization" not in seen[0].lower()


async def test_what_is_compressed_unasked_is_not_unpacked() -> None:
    packed = gzip.compress(bytes(100_000))
    async with site(answer(packed, headers=("Content-Encoding: gzip",))) as (host, _):
        assert await fetcher(Names()).fetch(f"http://{host}/") == packed


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://pictures.example/cat.png", "is not an http or https URL"),
        ("file:///etc/passwd", "is not an http or https URL"),
        ("gopher://pictures.example:80/", "is not an http or https URL"),
        ("data:image/png;base64,AAAA", "is not an http or https URL"),
        ("//pictures.example/cat.png", "is not an http or https URL"),
        ("cat.png", "is not an http or https URL"),
        ("", "is not an http or https URL"),
        ("http:pictures.example", "is not an http or https URL"),
        ("http:///cat.png", "is not an http or https URL"),
        ("http://pictures.example:0/", "is not an http or https URL"),
        ("http://me:s3cret@pictures.example/", "holds a user or password"),
        ("http://me@pictures.example/", "holds a user or password"),
        ("http://:s3cret@pictures.example/", "holds a user or password"),
        ("http://pictures.example:99999/", "is not a valid URL"),
        ("http://[pictures.example/", "is not a valid URL"),
        ("http://other.example\\@pictures.example/", "is not a valid URL"),
        ("https://other.example/", "is not on a host that may be asked for pictures"),
        ("https://pictures.example.other.example/", "is not on a host that may be asked for pictures"),
        ("https://pictures.example#.other.example:8443/", "is not on a host that can be found"),
    ],
)
async def test_a_url_that_must_not_be_asked_is_refused(url: str, problem: str) -> None:
    code, message = await refused(fetcher(Names([]), "pictures.example"), url)
    assert code == "image_url_not_allowed"
    assert message.startswith(f"The picture's URL {problem}")
    assert "s3cret" not in message


@pytest.mark.parametrize(
    ("glob", "url", "allowed"),
    [
        ("pictures.example", "http://pictures.example/", True),
        ("pictures.example", "https://pictures.example:443/", True),
        ("Pictures.Example", "https://PICTURES.example/", True),
        ("pictures.example", "http://pictures.example:443/", False),
        ("pictures.example", "http://pictures.example:8080/", False),
        ("pictures.example:8080", "http://pictures.example:8080/", True),
        ("pictures.example:8080", "http://pictures.example/", False),
        ("pictures.example:*", "http://pictures.example:22/", True),
        ("*.example", "https://deep.pictures.example/", True),
        ("*.pictures.example", "https://pictures.example/", False),
        ("*.example", "https://example/", False),
        ("*", "https://anything.at.all/", True),
        ("*", "https://anything.at.all:8443/", False),
        ("*:*", "https://anything.at.all:8443/", True),
        ("xn--bcher-kva.example", "http://bücher.example/", True),
        ("[2606:4700::1111]", "http://[2606:4700::1111]/", True),
        ("[2606:4700::1111]:8080", "http://[2606:4700::1111]:8080/", True),
        ("[2606:4700::1111]", "http://[2606:4700::1112]/", False),
        ("1.1.1.1", "http://1.1.1.1/", True),
        ("p[ab].example", "http://pb.example/", True),
    ],
)
async def test_the_list_of_hosts_is_one_of_globs(glob: str, url: str, allowed: bool) -> None:
    names = Names([])
    code, message = await refused(fetcher(names, glob), url)
    assert code == "image_url_not_allowed"
    assert bool(names.asked) == allowed
    assert ("may be asked" in message) != allowed


async def test_without_any_host_nothing_is_fetched() -> None:
    fetcher = Fetcher((), max_bytes=1_000)
    assert (await refused(fetcher, "https://pictures.example/"))[0] == "image_url_not_allowed"


# -- answers that are no file ----------------------------------------------------------------------


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "206 Partial Content", "302 Found"])
async def test_only_a_200_is_a_file(status: str) -> None:
    async with site(answer(status=status)) as (host, _):
        assert await refused(fetcher(Names()), f"http://{host}/") == (
            "image_fetch_failed",
            f"The picture's URL was answered with status {status[:3]}.",
        )


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"220 mail.example ESMTP\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
    ],
    ids=["nothing", "another protocol", "cut", "cut chunks", "endless header"],
)
async def test_a_broken_answer_is_no_file(garbage: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(garbage)

    async with raw_server(serve) as url:
        assert await refused(fetcher(Names()), url) == (
            "image_fetch_failed",
            "The picture's URL could not be fetched.",
        )


async def test_a_port_where_nobody_listens_gives_no_file(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with socket.socket() as bound:
        bound.bind((PUBLIC, 0))
        url = f"http://pictures.example:{bound.getsockname()[1]}/?signature=s3cret"
        assert await refused(fetcher(Names()), url) == (
            "image_fetch_failed",
            "The picture's URL could not be fetched.",
        )
    assert caplog.messages == []
