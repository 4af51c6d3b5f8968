"""Tries an installed imagecall as a new user would: `ask` for a picture, open the demo's page, ask there.

Run it outside a checkout, with the interpreter of the environment to try.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.request

COMMAND = str(pathlib.Path(sys.executable).with_name("imagecall"))


def ask() -> None:
    """`imagecall ask` writes a picture."""
    subprocess.run([COMMAND, "ask", "a red cat", "-o", "cat.png"], check=True, timeout=180)
    picture = pathlib.Path("cat.png").read_bytes()
    assert picture.startswith(b"\x89PNG"), picture[:20]
    print(f"ask: cat.png, {len(picture)} bytes")


def free_port() -> int:
    """Find a port that nobody uses."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def get(url: str, data: bytes | None = None) -> bytes:
    """Ask a server on this machine."""
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=180) as answer:
        return answer.read()


def demo() -> None:
    """`imagecall demo` serves its page, says that the real model talks, and makes a picture."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    process = subprocess.Popen([COMMAND, "demo", "--port", str(port)])
    try:
        for _ in range(600):
            try:
                page = get(url + "/").decode()
                break
            except OSError:
                assert process.poll() is None, "the demo has stopped"
                time.sleep(0.1)
        else:
            raise AssertionError("the demo does not answer")
        assert "<html" in page.lower()
        print("demo:", get(url + "/demo.json").decode())
        request = {"model": "local", "input": "Draw a red cat", "tools": [{"type": "image_generation"}]}
        response = json.loads(get(url + "/v1/responses", json.dumps(request).encode()))
        print("demo:", response["status"], [item["type"] for item in response["output"]])
        assert any(item["type"] == "image_generation_call" and item["result"] for item in response["output"])
    finally:
        process.terminate()
        process.wait(timeout=30)


if __name__ == "__main__":
    assert not (pathlib.Path.cwd() / "middleware").exists(), "run this outside a checkout"
    print(sys.version, os.uname().machine)
    ask()
    demo()
