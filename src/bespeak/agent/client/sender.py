"""Sends one request: credentials, deadline, error messages, and repetition if it is idempotent (AGTP-API 7.1)."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from bespeak.agent.client.errors import CallTimeoutError, UnreachableError
from bespeak.contract.grammar.syntax import parse_template
from bespeak.errors import ConfigError, RemoteProtocolError
from bespeak.protocol import status
from bespeak.protocol.address import Locator
from bespeak.protocol.exchange.headers import AGENT_ID, AUTHORIZATION
from bespeak.protocol.exchange.messages import PATIENCE
from bespeak.protocol.exchange.principal import derived_id
from bespeak.protocol.exchange.refusal import Fault
from bespeak.protocol.wire.connection import Pairs
from bespeak.protocol.wire.head import HTTP_RESPONSE
from bespeak.protocol.wire.messages import ResponseMessage
from bespeak.state.identity.jws import PrivateKey, key_id
from bespeak.state.identity.key_files import read_key
from bespeak.state.identity.signed_request import sign_request
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import read_text

TokenSource = str | Callable[[], str]  # token, or a function that returns the current one, called for each request
_LONGEST_TOKEN: Final = 65536
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
    text = read_text(path, _LONGEST_TOKEN)
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


SAFE_METHODS: Final = frozenset({"QUERY", "DISCOVER", "DESCRIBE", "SUMMARIZE", "PLAN"})
"""Floor methods without side effects (core 4); they count as idempotent unless a manifest says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Number of attempts and the delay between them: random, with a bound that doubles, so that clients spread out."""

    attempts: int = 3
    """Total number of attempts."""
    first_delay: float = 0.1
    """Upper bound of the first delay, in seconds."""
    longest_delay: float = 2.0
    """Upper bound of every delay, in seconds."""

    def delay(self, failures: int) -> float:
        """Draw the seconds to wait after a number of failures."""
        bound = min(self.longest_delay, self.first_delay * 2 ** (failures - 1))
        return random.uniform(0, bound)  # noqa: S311 - spreads load, guards nothing


class EndpointIdempotency:
    """Idempotency of endpoints by request path, taken from a manifest."""

    def __init__(self, endpoints: Iterable[tuple[str, str, bool]] = ()) -> None:
        self._exact: dict[tuple[str, str], bool] = {}
        self._templates: dict[tuple[str, int], list[tuple[tuple[str | None, ...], bool]]] = {}
        for method, path, is_idempotent in endpoints:
            template = parse_template(path)
            if isinstance(template, Fault):
                continue
            if template.is_literal:
                self._exact[method, path] = is_idempotent
            else:
                alike = self._templates.setdefault((method, len(template.segments)), [])
                alike.append((template.segments, is_idempotent))

    def may_repeat(self, method: str, path: str) -> bool:
        """Return True if the call may be sent again. If several templates match, all of them must allow it."""
        if (known := self._exact.get((method, path))) is not None:
            return known
        segments = path[1:].split("/")
        found = [
            is_idempotent
            for template, is_idempotent in self._templates.get((method, len(segments)), ())
            if all(mine is None or mine == theirs for mine, theirs in zip(template, segments, strict=True))
        ]
        return all(found) if found else method in SAFE_METHODS


class Exchanger(Protocol):
    """Transport of one request: a connection pool, or a handler in the same process."""

    async def request(
        self, method: str, target: str, headers: Pairs = (), body: bytes = b"", *, retry: bool = False
    ) -> ResponseMessage:
        """Send a request, again at once with `retry`. Raises OSError or RemoteProtocolError without a response."""

    def stream(
        self, method: str, target: str, headers: Pairs = (), body: bytes = b""
    ) -> AsyncGenerator[ResponseMessage]:
        """Ask for a stream; yield messages with `items`, the last one without Continuation-Token or a refusal."""

    async def close(self) -> None:
        """Close the connections."""


class Sender:
    def __init__(
        self,
        exchanger: Exchanger,
        locator: Locator,
        *,
        timeout: float,
        retry: RetryPolicy | None = None,
        secure: bool = False,
        signer: Signer | None = None,
        credential: BearerCredential | None = None,
        is_inside: bool = False,
    ) -> None:
        """Send over an exchanger; `is_inside` means that the service is in this process, and hears of our patience."""
        self._is_inside = is_inside
        self.signer = signer  # signer of requests; None if they are not signed
        self._exchanger = exchanger
        self._locator = locator
        self._timeout = timeout
        self._retry = retry or RetryPolicy()
        self._secure = secure
        self._credential = credential
        self._answered = False

    async def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, repeatable: bool
    ) -> ResponseMessage:
        """Send a request; a repeatable one again after a broken connection, a 503 or a conflict that passes."""
        attempts = self._retry.attempts if repeatable else 1
        failures = 0
        try:
            async with asyncio.timeout(max(self._timeout, (PATIENCE.get() or 0.0) if self._is_inside else 0.0)):
                while True:
                    last = failures + 1 >= attempts
                    try:
                        proven = self._prove(method, target, headers, body)
                        again = repeatable and self.signer is None
                        message = await self._exchanger.request(method, target, proven.items(), body, retry=again)
                        self._answered = True
                        late = message.status == status.CONFLICT and "retry-after" in message.headers
                        if last or not (late or message.status == status.UNAVAILABLE):
                            return message
                    except (OSError, RemoteProtocolError) as error:
                        # A failed handshake fails again: the peer uses another protocol, or is not trusted.
                        if last or isinstance(error, ssl.SSLError):
                            raise UnreachableError(f"{method} {target[:120]}: {self._explain(error)}") from error
                    failures += 1
                    await asyncio.sleep(self._retry.delay(failures))
        except TimeoutError as error:
            raise self._late(method, target) from error

    async def stream(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncGenerator[ResponseMessage]:
        """Yield the messages of a stream. The timeout is for each of them; nothing is sent again."""
        headers = self._prove(method, target, headers, body)
        async with aclosing(self._exchanger.stream(method, target, tuple(headers.items()), body)) as messages:
            while True:
                try:
                    async with asyncio.timeout(self._timeout):
                        message = await anext(messages, None)
                except TimeoutError as error:
                    raise self._late(method, target) from error
                except (OSError, RemoteProtocolError) as error:
                    raise UnreachableError(f"{method} {target[:120]}: {self._explain(error)}") from error
                if message is None:
                    return
                self._answered = True
                yield message

    def _late(self, method: str, target: str) -> CallTimeoutError:
        place = f"{method} {target[:120]} at {self._locator}"
        return CallTimeoutError(f"{place}: no reply within {self._timeout:g} seconds.")

    def with_proof(self, signer: Signer | None, credential: BearerCredential | None) -> Sender:
        """Return a sender over the same connections that proves the identity of another caller, or none."""
        other = copy(self)
        other.signer, other._credential, other._answered = signer, credential, False
        return other

    async def close(self) -> None:
        await self._exchanger.close()

    def _prove(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        if self._credential is not None:
            headers = self._credential.add_to(headers)
        # Each attempt has its own signature: a server accepts a signature only once.
        return headers if self.signer is None else self.signer.sign(method, target, headers, body)

    def _explain(self, error: OSError | RemoteProtocolError) -> str:
        """Describe a connection error, with the option that may help if the two sides use different protocols."""
        if isinstance(error, ConnectionRefusedError):
            return f"connection refused by {self._locator}; is the server running?"
        if isinstance(error, socket.gaierror):
            return f"the host of {self._locator} is not known ({error.strerror}); check its name."
        what = f"{self._locator} did not reply: {str(error).rstrip('.') or type(error).__name__}."
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"{what} Pass the authority that issued its certificate as ca_file (--ca-file)."
        broken = isinstance(error, ssl.SSLError | RemoteProtocolError | ConnectionResetError | ConnectionAbortedError)
        if self._answered or not broken or self._locator.web is not None:
            return what
        if self._secure and isinstance(error, ConnectionResetError):
            # With TLS 1.3 a server rejects a missing or invalid client certificate after the handshake.
            what = f"{what} If the server requires a certificate, pass one it trusts as client_cert (--client-cert)."
        if HTTP_RESPONSE in what:
            return what
        if self._secure:
            return f"{what} If the server uses plain TCP, set insecure=True (--insecure)."
        return f"{what} If the server uses TLS, set tls=True (--tls) or pass its ca_file (--ca-file)."


WIRE_LOGGER: Final = "bespeak.agent.client.wire"
_logger = logging.getLogger(WIRE_LOGGER)

_MASK: Final = "***"
_LONGEST: Final = 16_384  # characters of a body that are shown
_SECRET_NAMES: Final = re.compile(r"(?i)authorization|cookie|token|secret|signature|delegation-chain|api-?key")
_SECRET_QUERY: Final = re.compile(r"([?&][^=&\s]*(?:key|token|secret|password|sig)[^=&\s]*=)[^&\s]+", re.IGNORECASE)
# An API key keeps its id, by which its owner recognises it. The other form is a JWT: a token or a delegation.
_SECRETS: Final = re.compile(r"(bsk_[0-9a-f]{12}_)[0-9a-f]+|()ey[\w-]{8,}\.[\w-]+\.[\w-]*", re.ASCII)


def is_wire_logged() -> bool:
    return _logger.isEnabledFor(logging.DEBUG)


def log_sent(line: str, headers: Iterable[tuple[str, str]], body: bytes) -> None:
    """Log a request; check `is_wire_logged` before."""
    _log(">", _mask(_SECRET_QUERY.sub(rf"\1{_MASK}", line)), headers, body)


def log_received(protocol: str, message: ResponseMessage) -> None:
    """Log a response, if the log is on."""
    if is_wire_logged():
        _log("<", f"{protocol} {message.status} {message.reason}", message.headers.items(), message.body)


def _log(mark: str, line: str, headers: Iterable[tuple[str, str]], body: bytes) -> None:
    text = body[: _LONGEST + 4].decode(errors="replace")[:_LONGEST]
    if len(body) > _LONGEST:
        text += f"\n... ({len(body)} bytes in all)"
    lines = [line, *(f"{name}: {_masked(name, value)}" for name, value in headers), ""]
    lines += _mask(text).splitlines() if text else []
    _logger.debug("%s", "\n".join(f"{mark} {each}".rstrip() for each in lines))


def _masked(name: str, value: str) -> str:
    shown = _mask(value)
    if shown != value or not _SECRET_NAMES.search(name):
        return shown
    scheme, blank, _ = value.partition(" ")
    return f"{scheme} {_MASK}" if blank and scheme.isalpha() else _MASK


def _mask(text: str) -> str:
    return _SECRETS.sub(lambda found: f"{found[1] or ''}{_MASK}", text)
