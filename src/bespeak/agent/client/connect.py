"""`connect` and `connect_sync`: from a URI to a service that can be called."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from joserfc.jwk import OKPKey

from bespeak.agent.client.agtp_client import Pool
from bespeak.agent.client.bearer_token import BearerCredential, TokenSource
from bespeak.agent.client.block import async_block
from bespeak.agent.client.locator import is_web, parse_uri
from bespeak.agent.client.retry import RetryPolicy
from bespeak.agent.client.sender import Sender
from bespeak.agent.client.service import ServiceClient
from bespeak.agent.client.signer import read_signer
from bespeak.agent.client.synchronous import blocking
from bespeak.agent.client.tls import choose_tls
from bespeak.agent.client.web_options import WebOptions
from bespeak.errors import ConfigError
from bespeak.state.identity.key_text import KeyFault, parse_key


@async_block
@asynccontextmanager
async def connect(
    uri: str,
    *,
    agent_id: str | None = None,
    scopes: Iterable[str] = (),
    timeout: float = 30.0,  # noqa: ASYNC109 - the deadline of each call, retries included
    tls: bool = False,
    ca_file: str | Path | None = None,
    verify: bool = True,
    insecure: bool = False,
    signing_key: str | None = None,
    token: TokenSource | None = None,
    client_cert: str | Path | None = None,
    client_key: str | Path | None = None,
    agent_key: str | Path | None = None,
    server_id: str | None = None,
    pool_size: int = 8,
    retry: RetryPolicy | None = None,
    web: WebOptions | None = None,
) -> AsyncIterator[ServiceClient]:
    """A service by its URI: `agtp://host[:port]`, `agtp://<agent-id>@host[:port]` or `https://host[:port][/path]`.

    Connections are opened when needed, at most `pool_size`, and closed at the end of the block. TLS is used for every
    host but the loopback ones, where `tls`, `ca_file` or `client_cert` asks for it; `insecure` means plain TCP,
    `verify=False` TLS with whoever answers. `signing_key` is the public key, PEM or JWK, that the service's manifest
    should be signed by, and the identity of an agent must be.

    An agent in the URI must be vouched for by the host before the block is entered, and calls are made in its name
    unless `agent_id` names another. To prove that it is this agent, a client has a bearer `token`, or a function that
    gives the present one; the files of a certificate, `client_cert`, and of its key, `client_key`; or `agent_key`, the
    file with the agent's private key: requests are signed with it for the server named `server_id`, or, without it,
    for the host itself.

    On the web, documents say what can be called: they are looked up before the block is entered, as `web` says. There
    plain http is for loopback hosts or with `insecure`, and a certificate is always verified.
    """
    if pool_size < 1:
        raise ConfigError(f"pool_size is at least 1, not {pool_size!r}: without a connection nothing can be sent.")
    key = _read_key(signing_key)
    credential = BearerCredential(token) if token is not None else None
    if is_web(uri):
        from bespeak.agent.client.web import WebConnection, open_web  # noqa: PLC0415 - AGTP does without HTTP

        if not verify:
            raise ConfigError("On the web the certificate is always verified: give its authority as ca_file.")
        connection = WebConnection(
            timeout=timeout,
            retry=retry or RetryPolicy(),
            ca_file=ca_file,
            client_cert=client_cert,
            client_key=client_key,
            insecure=insecure,
            pool_size=pool_size,
            credential=credential,
            signer=read_signer(agent_key, agent_id, server_id) if agent_key is not None else None,
        )
        async with open_web(uri, connection, web or WebOptions(), agent_id=agent_id, scopes=scopes, key=key) as service:
            yield service
        return
    locator = parse_uri(uri)
    context = choose_tls(
        locator,
        tls=tls,
        ca_file=ca_file,
        verify=verify,
        insecure=insecure,
        client_cert=client_cert,
        client_key=client_key,
    )
    pool = Pool(locator.host, locator.port, ssl=context, size=pool_size, connect_timeout=timeout)
    signer = read_signer(agent_key, agent_id or locator.agent_id, server_id) if agent_key is not None else None
    sender = Sender(
        pool,
        locator,
        timeout=timeout,
        retry=retry or RetryPolicy(),
        secure=context is not None,
        signer=signer,
        credential=credential,
    )
    try:
        service = ServiceClient(sender, locator, agent_id=agent_id, scopes=scopes, signing_key=key)
        if locator.agent_id is not None:
            await service.identify()
        yield service
    finally:
        await sender.close()


connect_sync = blocking(connect)
"""`connect` for a plain `with` block: the same options, and methods that block."""


def _read_key(text: str | None) -> OKPKey | None:
    if text is None:
        return None
    key = parse_key(text)
    if isinstance(key, KeyFault):
        raise ConfigError(f"The signing key cannot be used: {key.message}.")
    return key
