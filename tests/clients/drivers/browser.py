"""A page in Chromium that reads streams with `fetch`, from another origin than the server's."""

import functools
import http.server
import pathlib
import shutil
import tempfile
import threading

from driver import ORDER, tell
from playwright.sync_api import sync_playwright

HERE = pathlib.Path(__file__).parent


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def look(url):
    """Open the page there and let it ask."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--headless=new", "--no-sandbox", "--disable-gpu"]
        )
        page = chromium.new_page()
        page.goto(f"{url}/browser.html")
        return page.evaluate("order => ask(order)", ORDER)


with tempfile.TemporaryDirectory() as folder:
    for file in (HERE / "browser.html", HERE.parent / "snippets" / "sse.js"):
        shutil.copy(file, folder)
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        told = look(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
tell(**told)
