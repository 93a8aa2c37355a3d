"""Credentials of a client: a bearer token or API key, or the agent's key, which signs each request for one server."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from bespeak.errors import ConfigError
from bespeak.protocol.address import Locator
from bespeak.protocol.exchange.headers import AGENT_ID, AUTHORIZATION
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.jws import PrivateKey, key_id
from bespeak.state.identity.key_files import read_key
from bespeak.state.identity.signed_request import sign_request
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import read_text

TokenSource = str | Callable[[], str]  # token, or a function that returns the current one, called for each request
_LONGEST: Final = 65536
_FORM: Final = re.compile(r"[A-Za-z0-9._~+/=-]+")  # token syntax of RFC 6750 2.1


class BearerCredential:
    """Token that is sent with every request and never appears in logs or messages."""

    __slots__ = ("_source",)

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        if isinstance(source, str):
            _checked(source)

    def __repr__(self) -> str:
        return "BearerCredential(...)"

    def add_to(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Add the token to the headers, unless the caller has set another credential."""
        if any(name.lower() == AUTHORIZATION for name in headers):
            return headers
        return {**headers, "Authorization": f"Bearer {self.present()}"}

    def present(self) -> str:
        """Return the current token."""
        return self._source if isinstance(self._source, str) else _checked(self._source())


def derived_id(name: str) -> str:
    """Return the Agent-ID for a name: the same on every machine, and proof of nothing."""
    return hashlib.sha256(b"bespeak --as " + name.encode(errors="surrogateescape")).hexdigest()


def caller_id(as_: str | None, agent_id: str | None) -> str | None:
    """Return the Agent-ID of a caller that is given by name or by id. Raises ConfigError if it is given by both."""
    if as_ is not None and agent_id is not None:
        raise ConfigError(f"Give either as_ or agent_id, not both; got {as_[:80]!r} and {agent_id[:80]!r}.")
    return agent_id if as_ is None else derived_id(as_)


def bearer_of(token: TokenSource | None, key: TokenSource | None) -> BearerCredential | None:
    """Return the credential of a token or an API key, which are sent in the same way; None without either."""
    if token is not None and key is not None:
        raise ConfigError("token and key are both given; an agent authenticates with one of them.")
    source = key if token is None else token
    return None if source is None else BearerCredential(source)


def read_token(path: Path) -> str:
    """Read the token from a file that contains nothing else. Raises ConfigError if it is empty or unreadable."""
    text = read_text(path, _LONGEST)
    if isinstance(text, Diagnostic):
        raise ConfigError(f"The token in {path}: {text.message}.")
    return text.strip()


def _checked(token: object) -> str:
    if isinstance(token, str) and _FORM.fullmatch(token):
        return token
    raise ConfigError("The token is not valid: it must be one word of letters, digits and -._~+/=.")


class Signer:
    """Private key of an agent, and the server that its signatures are valid for."""

    def __init__(
        self,
        key: PrivateKey,
        agent_id: str,
        *,
        key_id: str | None = None,
        server_id: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.server_id = server_id
        """Audience of the signatures; None until the server's name is known. Nothing is signed before."""
        self._sign = partial(sign_request, key=key, key_id=key_id)
        self._agent_id = agent_id
        self._clock = clock

    def learn(self, server_id: str, locator: Locator, *, trusted: bool = False) -> None:
        """Use the name that a server gives itself as audience. Raises ConfigError if another server may have it."""
        if self.server_id is not None:
            return
        named = server_id.lower().removeprefix("agtp://").removesuffix("/")
        own = locator.address.is_loopback or named in (locator.host.lower(), str(locator.address).lower())
        # A server that could choose any name could forward a signed request to the one that really has the name.
        if not (trusted or own):
            raise ConfigError(
                f"{locator} claims the name {server_id[:80]!r}, which may belong to another server; nothing is signed. "
                f"If it is right, set server_id={server_id[:80]!r} (--server-id), or pin the key of its manifest."
            )
        self.server_id = server_id

    def sign(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Add a fresh signature to the headers if the request is made by this agent."""
        named = next((value for name, value in headers.items() if name.lower() == AGENT_ID), None)
        if named != self._agent_id or self.server_id is None:
            return dict(headers)
        try:
            signature = self._sign(method, target, headers, body, server_id=self.server_id, now=self._clock())
        except ValueError as error:
            raise ConfigError(f"The request cannot be signed: {error}.") from error
        return {**headers, "Agent-Signature": signature}


def read_signer(path: str | Path | None, agent_id: str | None, server_id: str | None = None) -> Signer | None:
    """Create a signer from a private key file; None without one. Raises ConfigError if the key or agent is unusable."""
    if path is None:
        return None
    if agent_id is None:
        raise ConfigError("agent_key (--agent-key) requires agent_id (--agent-id), the agent to sign for.")
    key = read_key(Path(path))
    if isinstance(key, Fault):
        raise ConfigError(f"The agent key {path} is not usable: {key.message}.")
    private = key.private_key
    if not isinstance(private, PrivateKey):
        raise ConfigError(f"The agent key {path} is a public key; pass the private key.")
    return Signer(private, agent_id, key_id=key_id(key), server_id=server_id)
