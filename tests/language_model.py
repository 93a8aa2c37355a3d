"""A provider of a language model on loopback, with the chat API of OpenAI, which answers as a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.runtime.bindings.language_model import LanguageModelSettings

Given = dict[str, Any]
Reply = Any  # value of an answer; bytes for a body of the provider; a status with headers; None to stay silent


def data_of(asked: Given) -> Given:
    """Return what a request gives to the model as data."""
    text = next(one["content"] for one in asked["messages"] if one["role"] == "user")
    found: Given = json.loads(text.split("\n")[1])
    return found


def answer_any(asked: Given) -> Reply:
    """Answer every task with something that meets its schema."""
    data = data_of(asked)
    if "texts" in data:
        return {"source_language": "en", "translations": [f"{text}!" for text in data["texts"]]}
    wanted = data["answer_schema"]["properties"]
    return {name: "Something new." if name in ("content", "summary") else None for name in wanted}


class ModelServer:
    """What was asked, and how it answers: `reply` takes the JSON of a request."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self.asked: list[Given] = []
        self.headers: list[dict[str, str]] = []
        self.reply: Callable[[Given], Reply] = answer_any
        self.released = threading.Event()  # ends silence

    def settings(self, **more: Any) -> LanguageModelSettings:
        return LanguageModelSettings(url=self.url, model="stub-1", **more)

    def document(self, **more: Any) -> ServerDocument:
        return ServerDocument(extension_tables={"language_model": self.settings(**more)})


@contextmanager
def model_server() -> Iterator[ModelServer]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            assert self.path == "/v1/chat/completions"
            model.asked.append(asked)
            model.headers.append({name.lower(): value for name, value in self.headers.items()})
            reply = model.reply(asked)
            if reply is None:
                model.released.wait(20)
            if isinstance(reply, tuple):
                return self._answer(b"", *reply)
            if not isinstance(reply, bytes):
                text = reply if isinstance(reply, str) else json.dumps(reply)
                choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
                usage = {"prompt_tokens": 7, "completion_tokens": 3}
                reply = json.dumps({"choices": [choice], "usage": usage}).encode()
            return self._answer(reply)

        def _answer(self, body: bytes, code: int = 200, headers: Any = ()) -> None:
            with suppress(OSError):  # whoever asked may be gone
                self.send_response(code)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        model = ModelServer(server.server_port)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield model
        finally:
            model.released.set()
            server.shutdown()
            thread.join()
