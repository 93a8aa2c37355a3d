"""Pages for people: `/docs` and the console beside Swagger UI and Scalar, and what one page that watches costs.

Sizes are of what a browser loads, compressed, without the description itself. Times are those of the browser: from the
start of the navigation until the last of 31 operations (or of those a page lists) is in the document.
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import http.server
import importlib.util
import json
import os
import re
import shutil
import socket
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from load import Loader
from report import Goal, table

import contract
from process import ServerProcess, free_port, running

OPERATIONS = 31
CONNECTIONS = 16
MANY = (50, 10_000)
REPEATS = 3
SIZE = Goal("/docs of 50 endpoints", at_most=60, unit=" kB")
TIME = Goal("/docs of 10,000 endpoints", at_most=1000, unit=" ms")
WATCHED = Goal("added by one page that watches", at_most=10, unit=" µs")
SERVICE = """
from bespeak import App
app = App("Things", server_id="things.example", operator="Bench", contact="bench@things.example")

def look(thing_id: str = "", beds: int = 1, near: str = "", most: float = 10.0) -> dict:
    \"\"\"Look at one of the things that this service has.

    Outcome: The thing is returned with its beds, its place and its price.
    \"\"\"
    return {"thing_id": thing_id, "beds": beds, "near": near, "most": most}

for number in range(COUNT):
    app.endpoint("FETCH", f"/things/number-{number}", impact="informational")(look)
"""
PEERS = {
    "Swagger UI": (
        "swagger-ui-dist",
        ("swagger-ui.css", "swagger-ui-bundle.js"),
        '<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="/swagger-ui.css"><div id="app"></div>'
        '<script src="/swagger-ui-bundle.js"></script>'
        '<script>SwaggerUIBundle({url: "/openapi.json", dom_id: "#app"})</script>',
    ),
    "Scalar": (
        "@scalar/api-reference/dist/browser",
        ("standalone.js",),
        '<!doctype html><meta charset="utf-8"><div id="app"></div><script src="/standalone.js"></script>'
        '<script>Scalar.createApiReference("#app", {url: "/openapi.json", withDefaultFonts: false})</script>',
    ),
}


def measure(loader: Loader, peers: Path | None) -> bool:
    """Print sizes and times of the pages, and what a watcher costs; return True if every page showed its operations."""
    if importlib.util.find_spec("playwright") is None:
        print("  skipped: playwright not installed (make setup does it)")
        return True
    from playwright.sync_api import sync_playwright

    rows = [["page", "requests", "kB", "kB gzip", "first paint ms", "complete ms", "elements"]]
    figures: dict[str, list[float]] = {}
    with sync_playwright() as driver, contextlib.ExitStack() as stack:
        chromium = stack.enter_context(_browser(driver))
        for count in (OPERATIONS, *MANY):
            with _serving(count) as (url, link, _):
                # Paths are sorted as texts; of many the first 200 are listed.
                last = sorted(f"/things/number-{number}" for number in range(count))[:200][-1]
                shown = {"/docs": (f"{url}/docs", last)}
                if count == OPERATIONS:
                    shown["console"] = (link, last)
                    openapi = _get(f"{url}/openapi.json")
                for name, (address, last) in shown.items():
                    figures[name] = _time(chromium, address, last)
                    rows.append([f"{name}, {count:,} endpoints", *_write(figures[name])])
                if count == MANY[0]:
                    small = figures["/docs"][2] / 1000
        large = figures["/docs"][4]
        for name, (package, files, page) in PEERS.items():
            folder = None if peers is None else peers / "node_modules" / package
            if folder is None or not folder.is_dir():
                print(f"  {name}: left out; npm install {package.partition('/dist')[0]} and pass --peers FOLDER")
                continue
            content = {f"/{file}": (folder / file).read_bytes() for file in files}
            with _files({**content, "/openapi.json": openapi, "/": page.encode()}) as url:
                figure = _time(chromium, f"{url}/", f"number-{OPERATIONS - 1}")
            rows.append([f"{name}, {OPERATIONS} operations", *_write(figure)])
    print(table(rows))
    print()
    print("  " + SIZE.line(SIZE.subject, small))
    print("  " + TIME.line(TIME.subject, large))
    print()
    return _watch(loader)


def _write(figure: list[float]) -> list[str]:
    requests, size, packed, first, complete, elements = figure
    counts = (f"{one:,.0f}" for one in (first, complete, elements))
    return [f"{requests:.0f}", f"{size / 1000:,.1f}", f"{packed / 1000:,.1f}", *counts]


@contextlib.contextmanager
def _browser(driver: Any) -> Iterator[Any]:
    found = os.environ.get("BESPEAK_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    started = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"])
    try:
        yield started
    finally:
        started.close()


def _time(chromium: Any, address: str, last: str) -> list[float]:
    """Return requests, bytes, compressed bytes, first paint, time until `last` is shown, and elements: medians."""
    rounds = []
    for _ in range(REPEATS):
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        bodies: list[bytes] = []

        def keep(response: Any, bodies: list[bytes] = bodies) -> None:
            if not response.url.endswith(("/openapi.json", "favicon.ico")):
                with contextlib.suppress(Exception):  # a redirect has no body
                    bodies.append(response.body())

        page.on("requestfinished", lambda request: keep(request.response()))
        page.goto(address)
        script = f"() => document.body.textContent.includes({json.dumps(last)}) && performance.now()"
        complete = page.wait_for_function(script, polling="raf", timeout=120_000).json_value()
        first = page.evaluate(
            "new Promise(done => new PerformanceObserver((list) => done(list.getEntries()[0].startTime))"
            ".observe({type: 'paint', buffered: true}))"
        )
        page.wait_for_load_state("networkidle")
        packed = sum(len(gzip.compress(body, 9)) for body in bodies)
        elements = page.locator("*").count()
        rounds.append([len(bodies), sum(map(len, bodies)), packed, first, complete, elements])
        context.close()
    return [median(column) for column in zip(*rounds, strict=True)]


@contextlib.contextmanager
def _serving(count: int) -> Iterator[tuple[str, str, ServerProcess]]:
    """Serve so many endpoints with a console; yield the URL, and the link of the console."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "things.py"
        target.write_text(SERVICE.replace("COUNT", str(count)), "utf-8")
        port = free_port()
        log = Path(folder) / "link"
        with running(_console(target, port, log), port) as server:
            link = re.search(r"http://\S+#token=\S+", _wait_for(log))
            assert link is not None
            yield f"http://127.0.0.1:{port}", link[0], server


def _console(target: Path | str, port: int, log: Path) -> list[str]:
    """Return the command of a console whose announcement is kept in a file."""
    options = ["--http", f"127.0.0.1:{port}", "--agtp", "127.0.0.1:0", "--store", "memory"]
    code = f"import sys; sys.stdout = open({str(log)!r}, 'w', buffering=1); from bespeak.__main__ import main; main()"
    return ["-c", code, "console", str(target), *options]


def _wait_for(log: Path) -> str:
    while "#token=" not in (found := log.read_text("utf-8") if log.exists() else ""):
        time.sleep(0.01)
    return found


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url) as reply:
        found: bytes = reply.read()
        return found


@contextlib.contextmanager
def _files(content: Mapping[str, bytes]) -> Iterator[str]:
    kinds = {".css": "text/css", ".js": "text/javascript; charset=utf-8", ".json": "application/json"}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = content.get(self.path, b"")
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", kinds.get(Path(self.path).suffix, "text/html; charset=utf-8"))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _watch(loader: Loader) -> bool:
    """Print the processor time of a call without and with one page that watches, by turns."""
    request = contract.http_request({"thing_id": "12"}, "/things/number-3:fetch")
    figures: dict[bool, list[float]] = {False: [], True: []}  # processor time, by whether a page watches
    rates, good = [], True
    with _serving(OPERATIONS) as (_, link, server):
        loader.run(server.port, request, seconds=1, connections=CONNECTIONS)
        for _ in range(REPEATS):
            for watches, used in figures.items():
                with _watching(server.port, link) if watches else contextlib.nullcontext():
                    before = server.cpu_seconds()
                    load = loader.run(server.port, request, seconds=2, connections=CONNECTIONS)
                    used.append((server.cpu_seconds() - before) * 1e6 / load.requests)
                rates.append(load.rps)
                good &= not load.errors
    names = {False: "no page watches", True: "one page watches"}
    rows = [["FETCH over HTTP", "CPU µs each"]]
    rows += [[names[watches], f"{median(used):,.1f}"] for watches, used in figures.items()]
    print(table(rows))
    print(f"\n  at {median(rates):,.0f} exchanges/s; of these a page is shown at most 80/s, the others are counted\n")
    without, watched = (median(used) for used in figures.values())
    print("  " + WATCHED.line(WATCHED.subject, watched - without))
    return good


@contextlib.contextmanager
def _watching(port: int, link: str) -> Iterator[None]:
    """Read the live stream of the console until the block ends."""
    client = http.client.HTTPConnection("127.0.0.1", port)
    client.request("GET", "/console/api/live", headers={"Console-Token": link.partition("token=")[2]})
    reply = client.getresponse()
    if reply.status != 200:
        raise RuntimeError(f"the console does not show exchanges: {reply.status}")

    def read() -> None:
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError, AttributeError):
            while reply.read1(65536):
                pass

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield
    finally:
        if client.sock is not None:
            client.sock.shutdown(socket.SHUT_RDWR)
        reader.join(5)
        client.close()
