"""Signatures of requests by an agent, for one server."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from bespeak.errors import ConfigError
from bespeak.protocol.exchange.headers import AGENT_ID
from bespeak.protocol.fault import Fault
from bespeak.protocol.locator import Locator
from bespeak.state.identity.jws import PrivateKey
from bespeak.state.identity.key_file import read_key
from bespeak.state.identity.key_text import key_id
from bespeak.state.identity.signed_request import sign_request

_SCHEME: Final = "agtp://"


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
        self._key = key
        self._key_id = key_id
        self._agent_id = agent_id
        self._clock = clock

    def learn(self, server_id: str, locator: Locator, *, trusted: bool = False) -> None:
        """Use the name that a server gives itself as audience. Raises ConfigError if the name may belong to another
        server.

        A server that could choose any name could forward a signed request to the server that really has the name.
        """
        if self.server_id is not None:
            return
        named = server_id.lower().removeprefix(_SCHEME).removesuffix("/")
        if not (
            trusted or locator.address.is_loopback or named in (locator.host.lower(), str(locator.address).lower())
        ):
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
            signature = sign_request(
                method,
                target,
                headers,
                body,
                key=self._key,
                server_id=self.server_id,
                now=self._clock(),
                key_id=self._key_id,
            )
        except ValueError as error:
            raise ConfigError(f"The request cannot be signed: {error}.") from error
        return {**headers, "Agent-Signature": signature}


def read_signer(path: str | Path, agent_id: str | None, server_id: str | None = None) -> Signer:
    """Create a signer from a private key file. Raises ConfigError if the key is unusable or `agent_id` is missing."""
    if agent_id is None:
        raise ConfigError("agent_key (--agent-key) requires agent_id (--agent-id), the agent to sign for.")
    key = read_key(Path(path))
    if isinstance(key, Fault):
        raise ConfigError(f"The agent key {path} is not usable: {key.message}.")
    private = key.private_key
    if not isinstance(private, PrivateKey):
        raise ConfigError(f"The agent key {path} is a public key; pass the private key.")
    return Signer(private, agent_id, key_id=key_id(key), server_id=server_id)
