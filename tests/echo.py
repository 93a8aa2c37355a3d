"""A real HTTPS upstream on loopback that says what it got: uvicorn in a thread, on a port of its own."""

from __future__ import annotations

import contextlib
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec
import trustme
import uvicorn


@dataclass
class Got:
    """One request as it arrived."""

    method: str
    raw_path: bytes
    raw_query: bytes
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def path(self) -> list[str]:
        """Segments of the path, decoded."""
        return [unquote(segment, errors="strict") for segment in self.raw_path.decode("ascii").split("/")[1:]]

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(self.raw_query.decode("ascii"), keep_blank_values=True, errors="strict")

    @property
    def form(self) -> list[tuple[str, str]]:
        return parse_qsl(self.body.decode("ascii"), keep_blank_values=True, errors="strict")

    @property
    def nested(self) -> dict[str, Any]:
        """Form with the brackets of its names resolved, as PHP, Rack and qs do: objects and numbered lists."""
        return nested(self.form)

    def header(self, name: str) -> str | None:
        (*_, last) = [None, *(value for key, value in self.headers if key == name)]
        return last

    @property
    def cookies(self) -> dict[str, str]:
        return {name: unquote(morsel.value) for name, morsel in SimpleCookie(self.header("cookie") or "").items()}

    @property
    def parts(self) -> list[tuple[str | None, str | None, bytes]]:
        """Name, file name and content of each part of a multipart body."""
        return parts_of(self.header("content-type") or "", self.body)


def nested(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Resolve `a[b][c]=1`, `a[0][b]=1` and `a[]=1`; a name that is used twice otherwise is an error."""
    root: dict[str, Any] = {}
    for name, value in pairs:
        first, _, rest = name.partition("[")
        keys = [first, *rest.removesuffix("]").split("][")] if rest else [first]
        here = root
        for key in keys[:-1]:
            here = here.setdefault(key, {})
        last = keys[-1] or str(len(here))
        assert last not in here, name
        here[last] = value
    return {name: _lists(value) for name, value in root.items()}


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    items = {key: _lists(item) for key, item in value.items()}
    return list(items.values()) if list(items) == [str(n) for n in range(len(items))] else items


def parts_of(content_type: str, body: bytes) -> list[tuple[str | None, str | None, bytes]]:
    """Parse a multipart body with the standard library."""
    head = f"Content-Type: {content_type}\r\nMIME-Version: 1.0\r\n\r\n".encode("ascii")
    message = BytesParser(policy=HTTP.clone(utf8=True)).parsebytes(head + body)
    assert message.is_multipart(), message.defects
    found = []
    for part in message.iter_parts():  # type: ignore[attr-defined]
        name = part.get_param("name", header="content-disposition")
        found.append((name, part.get_filename(), part.get_payload(decode=True)))
    return found


@dataclass
class Echo:
    """The upstream: where it is, how to trust it, what it got, and what it answers next."""

    url: str
    tls: ssl.SSLContext
    got: list[Got] = field(default_factory=list)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    answer: Callable[[Got], bytes] = lambda got: b"{}"

    @property
    def last(self) -> Got:
        return self.got[-1]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = bytearray()
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        self.got.append(Got(scope["method"], scope["raw_path"], scope["query_string"], headers, bytes(body)))
        answer = self.answer(self.last)
        lines = {"content-type": "application/json", "content-length": str(len(answer)), **self.headers}
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in lines.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": raw})
        await send({"type": "http.response.body", "body": answer})


def as_json(value: Any) -> Callable[[Got], bytes]:
    return lambda _: msgspec.json.encode(value)


@contextlib.contextmanager
def echo_server() -> Iterator[Echo]:
    authority = trustme.CA()
    tls = ssl.create_default_context()
    authority.configure_trust(tls)
    echo = Echo("", tls)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        cert = authority.issue_cert("127.0.0.1")
        file.write(cert.private_key_and_cert_chain_pem.bytes())
        file.flush()
        config = uvicorn.Config(
            echo,
            host="127.0.0.1",
            port=0,
            lifespan="off",
            log_config=None,
            access_log=False,
            http="httptools",
            loop="asyncio",
            ssl_certfile=file.name,
            ssl_keyfile=file.name,
        )
        config.load()
    server, started = uvicorn.Server(config), threading.Event()
    startup = server.startup

    async def announced(*args: Any, **named: Any) -> None:
        await startup(*args, **named)
        started.set()

    server.startup = announced  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        assert started.wait(20)
        port = server.servers[0].sockets[0].getsockname()[1]
        echo.url = f"https://127.0.0.1:{port}"
        yield echo
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
