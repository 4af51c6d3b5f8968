"""Opens a page in Chromium, waits until it says that it is done, and saves the picture that it shows."""

import base64
import functools
import http.server
import pathlib
import shutil
import sys
import threading

from playwright.sync_api import sync_playwright

PAGE = pathlib.Path(sys.argv[1])
SSE = pathlib.Path(__file__).parent.parent / "snippets" / "sse.js"
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


shutil.copy(SSE, PAGE.parent)
handler = functools.partial(Quiet, directory=PAGE.parent)
with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, sync_playwright() as playwright:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
    page = chromium.new_page()
    page.on("pageerror", lambda error: sys.stderr.write(f"{error}\n"))
    page.on("console", lambda message: sys.stderr.write(f"{message.text}\n"))
    page.goto(f"http://127.0.0.1:{server.server_port}/{PAGE.name}")
    page.wait_for_function("document.title === 'Here it is'", timeout=120_000)
    picture = page.evaluate(
        "async () => { const image = document.images[0]; await image.decode(); return image.src; }"
    )
    pathlib.Path("cat.png").write_bytes(base64.b64decode(picture.partition("base64,")[2]))
    print(page.text_content("p"))
    server.shutdown()
