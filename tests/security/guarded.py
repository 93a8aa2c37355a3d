"""A deployment that wants proof of who calls, served by a real process, and bytes sent to it over real sockets."""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.process import Served, bespeak, serving
from tests.state.identity.certificates import Authority
from tests.state.identity.issuer import AGENT, SERVER, claims, new_key, public, sign, write_keys

from bespeak.protocol.exchange.headers import AGENT_ID
from bespeak.protocol.tls import client_context
from bespeak.state.identity.jws import PrivateKey, generate_key, parse_key, private_text
from bespeak.state.identity.signed_request import sign_request

SCOPE = "booking:seat"
_APP = '''
import os
import uuid

from bespeak import App, Context

app = App("Seats", server_id="rooms.example", operator="Acme", contact="ops@acme.example")

@app.endpoint("BOOK", "/seat", impact="irreversible", confidence=1.0, scopes=["booking:seat"])
def book_seat(context: Context) -> dict[str, str | None]:
    """Reserve a seat for a passenger.

    Outcome: A seat is reserved and its ticket is returned.
    """
    who = context.principal
    if "DIES_AT" in os.environ:
        open(os.environ["DIES_AT"], "a").write("run\\n")
        os.kill(os.getpid(), 9)
    return {"ticket": str(uuid.uuid4()), "agent": who.agent_id, "verified": who.verified}
'''
_CONFIGURATION = """
[server]
server_id = "rooms.example"
operator = "Acme"
contact = "ops@acme.example"
app = "guarded_seats:app"
signing_key = "signing.pem"
[audit]
enabled = true
[auth]
modes = {modes}
"""
_OF_MODE = {
    "token": '[auth.token]\nkeys = "issuer.json"\nissuer = "https://issuer.example"\n',
    "mtls": '[auth.mtls]\nca = "ca.pem"\n[listen]\ncert = "server.pem"\nkey = "server.key.pem"\n',
    "signed": "[auth.signed]\nmax_age = 120\n",
}
__all__ = ["AGENT", "SCOPE", "SERVER", "Agent", "Answer", "Guarded", "Line", "ask", "bearer", "trusting"]


@dataclass(frozen=True)
class Answer:
    """One response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def code(self) -> str:
        """The code of a refusal, or nothing."""
        return str(self.json.get("error", {}).get("code", ""))


class Guarded:
    """The deployment, its issuer of tokens and its authority."""

    def __init__(self, folder: Path, *modes: str, more: str = "") -> None:
        """`more`: further tables of its configuration."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.modes = modes
        self.store = str(folder / "store.db")
        self.issuer = new_key()
        self.authority = Authority(folder)
        self.authority.server()
        write_keys(folder / "issuer.json", public(self.issuer, kid="k"))
        (folder / "signing.pem").write_text(private_text(generate_key()))
        (folder / "guarded_seats.py").write_text(_APP)
        parts = "".join(_OF_MODE[mode] for mode in modes if mode in _OF_MODE)
        (folder / "bespeak.toml").write_text(_CONFIGURATION.format(modes=json.dumps(modes)) + parts + more)

    @contextmanager
    def serving(self, *options: str, **env: str) -> Iterator[Served]:
        """Serve it; its state outlives the process."""
        with serving(self.folder, "--store", self.store, *options, env=env) as served:
            yield served

    def token(self, key: Any = None, *, alg: str = "EdDSA", kid: str | None = "k", **changes: Any) -> str:
        """Issue a valid token, with some changes."""
        now = int(time.time())
        standard = {"exp": now + 600, "iat": now, "iss": "https://issuer.example", "scope": SCOPE}
        header = {} if kid is None else {"kid": kid}
        return sign(key or self.issuer, claims(**{**standard, **changes}), alg=alg, **header)

    def new_agent(self, name: str) -> Agent:
        """Register an agent with a key of its own."""
        file = self.folder / f"{name}.agent.pem"
        options = ("--store", self.store, "--name", name, "--scope", SCOPE, "--new-key", str(file))
        added = bespeak("agents", "add", str(self.folder), *options)
        assert added.returncode == 0, added.stderr
        words = added.stdout.split()
        return Agent(next(word for word in words if len(word) == 64), file)


class Agent:
    """A registered agent and its key."""

    def __init__(self, agent_id: str, file: Path) -> None:
        self.agent_id = agent_id
        self.file = file

    @property
    def key(self) -> PrivateKey:
        parsed = parse_key(self.file.read_text())
        private = getattr(parsed, "private_key", None)
        assert isinstance(private, PrivateKey)
        return private

    def signed(
        self,
        method: str = "BOOK",
        target: str = "/seat",
        body: bytes = b"",
        *,
        age: float = 0,
        audience: str = SERVER,
        **headers: str,
    ) -> dict[str, str]:
        """Return the headers of a request signed by this agent."""
        given = {AGENT_ID: self.agent_id, **{name.replace("_", "-"): value for name, value in headers.items()}}
        now = time.time() - age
        signature = sign_request(method, target, given, body, key=self.key, server_id=audience, now=now)
        return {**given, "agent-signature": signature}


class Line:
    """A connection of one's own."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 20)
        if context is not None:
            try:
                self._socket = context.wrap_socket(self._socket, server_hostname="127.0.0.1")
            except BaseException:
                self._socket.close()
                raise

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(
        self, method: str = "BOOK", target: str = "/seat", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Answer:
        """Send a request and read its answer."""
        lines = [f"AGTP/1.0 {method} {target}", *(f"{name}: {value}" for name, value in (headers or {}).items())]
        if body:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    def send(self, data: bytes) -> Answer:
        """Send bytes and read an answer. ConnectionError when none comes."""
        self._socket.sendall(data)
        received = self._read_until(b"", lambda found: b"\r\n\r\n" in found)
        head, _, body = received.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
        length = int(headers.get("content-length", 0))
        body = self._read_until(body, lambda found: len(found) >= length)
        return Answer(int(first.split()[1]), headers, body)

    def _read_until(self, found: bytes, enough: Any) -> bytes:
        while not enough(found):
            piece = self._socket.recv(65536)
            if not piece:
                raise ConnectionError("closed without an answer")
            found += piece
        return found


def ask(served: Served, headers: Mapping[str, str] | None = None, body: bytes = b"", **where: str) -> Answer:
    """Send one request over a new connection without TLS."""
    with Line(served.port) as line:
        return line.ask(headers=headers, body=body, **where)


def bearer(token: str, **headers: str) -> dict[str, str]:
    """Return the headers of a request with a token."""
    return {"Authorization": f"Bearer {token}", **{name.replace("_", "-"): value for name, value in headers.items()}}


def trusting(guarded: Guarded, *pair: Path) -> ssl.SSLContext:
    """TLS to the deployment, with a client certificate if there is one."""
    return client_context(guarded.authority.ca, cert=pair[0] if pair else None, key=pair[1] if pair else None)
