"""Invariant: mutated credentials never make the server raise or fail, and only unchanged ones are accepted.

Run `python tools/fuzz/credentials.py --seconds 60`. It prints how many requests it tried, or the one that broke the
invariant.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from campaign import campaign
from joserfc import jwt
from joserfc.jwk import OKPKey

from bespeak import App
from bespeak.app.server.assembly import assemble
from bespeak.contract.agent import Agent
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.state.identity.authenticator import Authenticator
from bespeak.state.identity.delegation import grant_authority
from bespeak.state.identity.jws import PrivateKey, public_jwk
from bespeak.state.identity.settings import AuthSettings, TokenSettings
from bespeak.state.identity.signed_request import sign_request

_AGENT, _DELEGATE = "a" * 64, "b" * 64
_SERVER = "rooms.example"
_TEXTS = [
    "",
    ".",
    "..",
    ",",
    " ",
    "\t",
    "\x00",
    "\x7f",
    "é",
    "\ud800",
    "=",
    "A",
    "9" * 40,
    "null",
    "e30",
    "Bearer ",
    "*:*",
]
_ADDED = {
    "session-id": ["", "x" * 300, "0" * 32, "\x00"],
    "idempotency-key": ["", "k", "é", "k" * 300],
    "budget-limit": ["USD=1e999", "tokens=-1", "=", "calls=NaN", ",,"],
    "authority-scope": ["", "*:*", "booking:*", "booking:room\x00", ",", "booking:room,booking:room"],
    "confirmation-id": ["", "conf-1", "\n"],
}


def _key() -> tuple[OKPKey, PrivateKey]:
    key = OKPKey.generate_key("Ed25519")
    private = key.private_key
    assert isinstance(private, PrivateKey)
    return key, private


def _service() -> App:
    app = App("Rooms", server_id=_SERVER, operator="Acme", contact="ops@acme.example")

    @app.endpoint("FIND", "/room", impact="informational", scopes=["booking:room"], inline=True)
    def find_room() -> dict[str, bool]:
        """Find a room.

        Outcome: Whether a room is free is returned.
        """
        return {"free": True}

    return app


_ISSUER, _ = _key()
_OWN, _PRIVATE = _key()
_FOLDER = tempfile.TemporaryDirectory(prefix="bespeak-fuzz-")
_KEYS = Path(_FOLDER.name) / "keys.pem"
_KEYS.write_bytes(_ISSUER.as_pem(private=False))
_AGENTS = tuple(
    Agent(agent_id=agent_id, name=name, scopes=("booking:*",), public_key=public_jwk(_OWN), delegation_permitted=True)
    for agent_id, name in ((_AGENT, "desk"), (_DELEGATE, "help"))
)
_DISPATCHER = assemble(replace(_service().service(), agents=_AGENTS), verifies=True).build_dispatcher()
_PRINCIPALS = _DISPATCHER.server.principals
_PRINCIPALS.authenticator = Authenticator(
    AuthSettings(modes=("token", "signed"), token=TokenSettings(keys=_KEYS)), _SERVER, _PRINCIPALS.key_of
)


def _token() -> str:
    claims = {"agent_id": _AGENT, "scope": "booking:room", "aud": _SERVER, "exp": time.time() + 600}
    return jwt.encode({"alg": "Ed25519"}, claims, _ISSUER, algorithms=["Ed25519"])


def _chain() -> str:
    granted = grant_authority(
        delegator=_AGENT,
        delegate=_DELEGATE,
        scopes=["booking:room"],
        held=_DISPATCHER.server.agents.grant_of(_AGENT),
        server_id=_SERVER,
        key=_PRIVATE,
        now=time.time(),
        lifetime=600,
    )
    return granted.header


def good_headers(source: random.Random) -> dict[str, str]:
    """Return headers with valid credentials."""
    kind = source.randrange(3)
    if kind == 0:
        return {"agent-id": _AGENT, "authorization": f"Bearer {_TOKEN}"}
    headers = {"agent-id": _AGENT} if kind == 1 else {"agent-id": _DELEGATE, "delegation-chain": _CHAIN}
    made = sign_request("FIND", "/room", headers, b"", key=_PRIVATE, server_id=_SERVER, now=time.time())
    return {**headers, "agent-signature": made}


_TOKEN, _CHAIN = _token(), _chain()


def damage(text: str, source: random.Random) -> str:
    """Mutate a text; the result always differs."""
    while True:
        at = source.randrange(len(text) + 1)
        put = source.choice(_TEXTS) if source.random() < 0.7 else source.choice(text or "x")
        changed = text[:at] + put + text[at + source.randrange(4) :]
        # White space, the case of the scheme and the last bits of base64 say nothing.
        if "".join(changed.split()).lower() != "".join(text.split()).lower() and changed[:-1] != text[:-1]:
            return changed


def ask(headers: dict[str, str]) -> Response:
    """Return the response to a request with these headers."""
    answer = _DISPATCHER(Request("FIND", "/room", "", headers, b"", Connection(address="127.0.0.1")))
    assert isinstance(answer, Response), headers
    return answer


def trial(source: random.Random, noted: list[object]) -> None:
    """Try one request with valid credentials and one with mutated ones."""
    headers = good_headers(source)
    noted.append(headers)
    assert ask(headers).status == 200, ask(headers).body
    name = source.choice([key for key in headers if key != "agent-id"])
    changed = {**headers, name: damage(headers[name], source)}
    noted.append(changed)
    answer = ask(changed)
    assert answer.status in (400, 401, 551), (answer.status, answer.body)
    added = source.choice(list(_ADDED))
    more = {**headers, added: source.choice(_ADDED[added])}
    noted.append(more)
    assert ask(more).status in (200, 262, 400, 401, 455, 456), (ask(more).status, ask(more).body)


if __name__ == "__main__":
    sys.exit(campaign(__doc__, trial))
