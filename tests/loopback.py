"""An HTTP server on loopback, in a thread, for tests that have a provider answer as they want."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Asked(NamedTuple):
    """A request. `body` is its JSON, and the names of `headers` are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any


class Told(NamedTuple):
    """An answer."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


@contextmanager
def json_server(answer: Callable[[Asked], Told]) -> Iterator[str]:
    """Answer POST requests, each in a thread of its own; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            told = answer(Asked(self.path, {name.lower(): text for name, text in self.headers.items()}, body))
            with suppress(OSError):  # whoever asked may be gone
                self.send_response(told.status)
                for name, value in (*told.headers, ("content-length", str(len(told.body)))):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(told.body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
