"""A provider of a language model on loopback, with the chat API of OpenAI, which answers as a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.loopback import Asked, Told, json_server

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

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Given] = []
        self.headers: list[dict[str, str]] = []
        self.reply: Callable[[Given], Reply] = answer_any
        self.released = threading.Event()  # ends silence

    def settings(self, **more: Any) -> LanguageModelSettings:
        return LanguageModelSettings(url=self.url, model="stub-1", **more)

    def document(self, **more: Any) -> ServerDocument:
        return ServerDocument(extension_tables={"language_model": self.settings(**more)})

    def answer(self, asked: Asked) -> Told:
        assert asked.path == "/v1/chat/completions"
        self.asked.append(asked.body)
        self.headers.append(dict(asked.headers))
        reply = self.reply(asked.body)
        if reply is None:
            self.released.wait(20)
        if isinstance(reply, tuple):
            return Told(b"", *reply)
        if isinstance(reply, bytes):
            return Told(reply)
        text = reply if isinstance(reply, str) else json.dumps(reply)
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 7, "completion_tokens": 3}
        return Told(json.dumps({"choices": [choice], "usage": usage}).encode())


@contextmanager
def model_server() -> Iterator[ModelServer]:
    model = ModelServer()
    with json_server(model.answer) as address:
        model.url = f"{address}/v1"
        try:
            yield model
        finally:
            model.released.set()
