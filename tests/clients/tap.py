"""What lies between clients and a server, and remembers what was asked for."""

from __future__ import annotations

import re
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["Tap"]

_HEAD = re.compile(rb"([A-Z]+) (/\S*) HTTP/1\.1\r\n")


class Tap(socketserver.ThreadingTCPServer):
    """Passes all bytes on, both ways, and keeps those of the clients.

    Args:
        port: where the server listens, on 127.0.0.1.
    """

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.port = port
        self.said: list[bytearray] = []

    @property
    def url(self) -> str:
        """Where clients ask."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"

    @contextmanager
    def open(self) -> Iterator[str]:
        """Listen until the end; yield the URL."""
        with self:
            threading.Thread(target=self.serve_forever, daemon=True).start()
            yield self.url
            self.shutdown()

    def requests(self) -> list[str]:
        """Return the method and path of each request, connection by connection."""
        return [
            f"{method.decode()} {path.decode()}" for said in self.said for method, path in _HEAD.findall(said)
        ]


class _Connection(socketserver.BaseRequestHandler):
    server: Tap

    def handle(self) -> None:
        said = bytearray()
        self.server.said.append(said)
        with socket.create_connection(("127.0.0.1", self.server.port)) as there:
            back = threading.Thread(target=_pour, args=(there, self.request), daemon=True)
            back.start()
            _pour(self.request, there, said)
            back.join()


def _pour(source: socket.socket, target: socket.socket, kept: bytearray | None = None) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            if kept is not None:
                kept += data
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
