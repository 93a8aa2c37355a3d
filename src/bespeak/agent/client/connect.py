"""`connect` opens a client for the service at a URI; used outside its block, it explains itself."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, TypeVar

from joserfc.jwk import OKPKey

from bespeak.agent.client.agtp_transport import Pool, choose_tls
from bespeak.agent.client.sender import RetryPolicy, Sender, TokenSource, bearer_of, caller_id, read_signer
from bespeak.agent.client.service import ServiceClient
from bespeak.agent.client.web_options import WebOptions
from bespeak.errors import ConfigError
from bespeak.protocol.address import is_web, parse_uri
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.jws import parse_key

P = ParamSpec("P")
ClientT = TypeVar("ClientT")


class _Block:
    """Context manager without client methods: `connect(uri).call(...)` raises an error that shows the right form."""

    _form: str

    if not TYPE_CHECKING:  # It would hide attribute errors from type checkers.

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"{name!r} is available only inside the block: write `{self._form}`.")


class AsyncBlock(_Block, AbstractAsyncContextManager[ClientT], Generic[ClientT]):
    """Opens a client for an `async with` block."""

    _form = "async with bespeak.connect(uri) as service:"

    def __init__(self, context: AbstractAsyncContextManager[ClientT]) -> None:
        self._context = context

    async def __aenter__(self) -> ClientT:
        return await self._context.__aenter__()

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._context.__aexit__(*error)


class Block(_Block, AbstractContextManager[ClientT], Generic[ClientT]):
    """Opens a client for a `with` block."""

    _form = "with bespeak.connect_sync(uri) as service:"

    def __init__(self, context: AbstractContextManager[ClientT]) -> None:
        self._context = context

    def __enter__(self) -> ClientT:
        return self._context.__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        return self._context.__exit__(*error)


def async_block(opener: Callable[P, AbstractAsyncContextManager[ClientT]]) -> Callable[P, AsyncBlock[ClientT]]:
    @functools.wraps(opener)
    def opened(*arguments: P.args, **options: P.kwargs) -> AsyncBlock[ClientT]:
        return AsyncBlock(opener(*arguments, **options))

    return opened


def block(opener: Callable[P, AbstractContextManager[ClientT]]) -> Callable[P, Block[ClientT]]:
    @functools.wraps(opener)
    def opened(*arguments: P.args, **options: P.kwargs) -> Block[ClientT]:
        return Block(opener(*arguments, **options))

    return opened


@async_block
@asynccontextmanager
async def connect(
    uri: str,
    *,
    as_: str | None = None,
    agent_id: str | None = None,
    scopes: Iterable[str] = (),
    timeout: float = 30.0,  # noqa: ASYNC109 - the deadline of each call, retries included
    tls: bool = False,
    ca_file: str | Path | None = None,
    verify: bool = True,
    insecure: bool = False,
    signing_key: str | None = None,
    token: TokenSource | None = None,
    key: TokenSource | None = None,
    client_cert: str | Path | None = None,
    client_key: str | Path | None = None,
    agent_key: str | Path | None = None,
    server_id: str | None = None,
    pool_size: int = 8,
    retry: RetryPolicy | None = None,
    web: WebOptions | None = None,
) -> AsyncIterator[ServiceClient]:
    """Open a client for a service, to be used as an `async with` block.

    The URI is `agtp://host[:port]`, `agtp://<agent-id>@host[:port]` or `https://host[:port][/path]`. Connections are
    opened on demand, at most `pool_size`, and closed at the end of the block. On the web, the client first reads the
    discovery documents; `web` sets how.

    `bespeak.connect` also takes an App, a folder, a file or `module:app`. It calls them inside this process, through
    the same gates, with state in memory.

    - `agent_id` is the calling agent, `scopes` the authority it declares. `as_` is a name from which an
      id is derived, for tests and development, as with `--as`. An agent in the URI is verified with the host before
      the block is entered, and is the caller unless another one is given.
    - `timeout` is in seconds and covers a whole call with its retries; `retry` sets how many and how far apart.
    - `tls`, `ca_file` and `client_cert` request TLS on loopback; every other host uses TLS anyway. `insecure` uses
      plain TCP or plain http. `verify=False` accepts any certificate (AGTP only).
    - Credentials are a bearer `token` (a text, or a function that returns the current one), an API `key` in the same
      forms, a certificate in `client_cert` with its key in `client_key`, or `agent_key`, the file of the agent's
      private key. Requests are signed for `server_id`, or for the host if it is None.
    - `signing_key` pins the public key (PEM or JWK) that signs the manifest and the identity of an agent.
    """
    if pool_size < 1:
        raise ConfigError(f"pool_size must be at least 1; got {pool_size!r}.")
    agent_id = caller_id(as_, agent_id)
    caller: dict[str, Any] = {"agent_id": agent_id, "scopes": scopes, "signing_key": _read_key(signing_key)}
    sending: dict[str, Any] = {"timeout": timeout, "retry": retry, "credential": bearer_of(token, key)}
    trust: dict[str, Any] = {"ca_file": ca_file, "client_cert": client_cert, "client_key": client_key}
    if is_web(uri):
        from bespeak.agent.client.web import WebConnection, open_web  # noqa: PLC0415 - AGTP does without HTTP

        if not verify:
            raise ConfigError("Web certificates are always verified; pass the issuing authority as ca_file.")
        signer = read_signer(agent_key, agent_id, server_id)
        connection = WebConnection(insecure=insecure, pool_size=pool_size, signer=signer, **sending, **trust)
        async with open_web(uri, connection, web or WebOptions(), **caller) as service:
            yield service
        return
    locator = parse_uri(uri)
    context = choose_tls(locator, tls=tls, verify=verify, insecure=insecure, **trust)
    pool = Pool(locator.host, locator.port, ssl=context, size=pool_size, connect_timeout=timeout)
    signer = read_signer(agent_key, agent_id or locator.agent_id, server_id)
    sender = Sender(pool, locator, secure=context is not None, signer=signer, **sending)
    try:
        service = ServiceClient(sender, locator, **caller)
        if locator.agent_id is not None:
            await service.identify()
        yield service
    finally:
        await sender.close()


def _read_key(text: str | None) -> OKPKey | None:
    if text is None:
        return None
    key = parse_key(text)
    if isinstance(key, Fault):
        raise ConfigError(f"The signing key is not usable: {key.message}.")
    return key
