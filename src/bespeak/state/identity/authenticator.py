"""Authentication of a request: every presented credential must be valid, and all must agree."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from bespeak.errors import ConfigError
from bespeak.protocol.exchange.headers import AGENT_ID, AGENT_SIGNATURE, AUTHORIZATION
from bespeak.protocol.exchange.messages import Request
from bespeak.protocol.exchange.refusal import Refused, unauthorized
from bespeak.state.identity.credentials import PREFIX, Authenticated, Outdated
from bespeak.state.identity.settings import CREDENTIALS, AuthSettings, TokenSettings

if TYPE_CHECKING:
    from bespeak.state.identity.bearer import BearerVerifier
    from bespeak.state.identity.certificate import CertificateReader
    from bespeak.state.identity.credentials import ApiKeys
    from bespeak.state.identity.jwks import KeySource
    from bespeak.state.identity.jws import PublicKey
    from bespeak.state.identity.signed_request import SignedRequest

KeyOf = Callable[[str], "PublicKey | None"]  # function that returns the Ed25519 key of a registered agent
_SCHEME: Final = "bearer "


class Authenticator:
    """Checks credentials in the configured modes. Modes that are off load nothing and cost nothing."""

    def __init__(
        self,
        settings: AuthSettings,
        server_id: str,
        key_of: KeyOf | None = None,
        *,
        keys: ApiKeys | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.modes = settings.modes
        self.is_open = settings.is_open  # True if headers are trusted, so that nothing is authenticated
        self._clock = clock
        self._server_id = server_id
        self._max_age = settings.signed.max_age
        self._key_of = key_of if "signed" in settings.modes else None
        self.keys = keys if "key" in settings.modes else None  # the API keys; None if they are not accepted
        self._source: KeySource | None = None
        self._bearer: BearerVerifier | None = None
        self._certificates: CertificateReader | None = None
        if "token" in settings.modes:
            from bespeak.state.identity.bearer import BearerVerifier  # noqa: PLC0415 - loads joserfc

            self._source = _key_source(settings.token, clock)
            self._bearer = BearerVerifier(settings.token, self._source, audience=server_id, clock=clock)
        if "mtls" in settings.modes:
            from bespeak.state.identity.certificate import CertificateReader  # noqa: PLC0415 - loads cryptography

            self._certificates = CertificateReader(clock=clock)
        if "signed" in settings.modes and key_of is None:
            raise ConfigError(
                "Signed requests need a register of agents with their keys, but no agents are registered."
            )

    def authenticate(self, request: Request) -> Authenticated | Refused | Outdated | None:
        """Return the agent of a request; None if it presents no credentials and claims no identity."""
        if self.is_open:
            return None
        headers = request.headers
        claimed = headers.get(AGENT_ID)
        presented = request.connection.certificate
        certified = self._certificates.identify(presented) if presented and self._certificates else None
        if isinstance(certified, Refused):
            return certified
        token = self._token(headers.get(AUTHORIZATION))
        if isinstance(token, Refused) or isinstance(token, Outdated):  # noqa: SIM101 - a union costs more than the check
            return token
        bound = None if certified is None else certified.tls_identity
        if token is not None and token.tls_identity is not None and token.tls_identity != bound:
            message = "The token is bound to a client certificate (`cnf`) that this connection does not present."
            return unauthorized("token-binding-wrong", message)
        signed = self._signed(request)
        if isinstance(signed, Refused):
            return signed
        # Most requests present one credential, and what is known of it is known already.
        alone = token if certified is None else certified if token is None else None
        if signed is None and alone is not None and claimed in (None, alone.agent_id):
            return alone
        if certified is None and token is None and signed is None:
            if claimed is None:
                return None
            message = f"Agent-ID {claimed[:64]!r} is not proven; send {self.credentials}."
            return unauthorized("agent-unauthenticated", message, modes=list(self.modes))
        return _combined(claimed, certified, token, signed)

    def admit_audience(self, audience: str) -> None:
        """Accept tokens for another name of this server: the URL of a resource that it publishes."""
        if self._bearer is not None:
            self._bearer.audiences.append(audience)

    async def refresh(self) -> None:
        """Update the keys; at server start this saves the first request the wait."""
        if self._source is not None:
            await self._source.refresh()
        if self.keys is not None:
            await self.keys.refresh()

    async def close(self) -> None:
        if self._source is not None:
            await self._source.close()
        if self.keys is not None:
            await self.keys.close()

    def _token(self, credential: str | None) -> Authenticated | Refused | Outdated | None:
        if credential is None:
            return None
        is_bearer = credential[: len(_SCHEME)].lower() == _SCHEME
        text = credential[len(_SCHEME) :].strip(" ")
        if is_bearer and text.startswith(PREFIX):
            return self._not_accepted(CREDENTIALS["key"]) if self.keys is None else self.keys.verify(text)
        if self._bearer is None:
            return self._not_accepted(CREDENTIALS["token"])
        if not is_bearer:
            message = "Authorization is not of the form 'Bearer TOKEN', the only form this server accepts."
            return unauthorized("token-malformed", message)
        return self._bearer.verify(text)

    def _signed(self, request: Request) -> SignedRequest | Refused | None:
        if AGENT_SIGNATURE not in request.headers:
            return None
        if self._key_of is None:
            return self._not_accepted(CREDENTIALS["signed"])
        from bespeak.state.identity.signed_request import verify_signed  # noqa: PLC0415 - loads cryptography, if it is needed

        return verify_signed(
            request, server_id=self._server_id, key_of=self._key_of, now=self._clock(), max_age=self._max_age
        )

    def _not_accepted(self, what: str) -> Refused:
        message = f"The request presents {what}, which this server does not accept; send {self.credentials}."
        return unauthorized("credential-not-accepted", message, modes=list(self.modes))

    @property
    def credentials(self) -> str:
        """Credentials that this server accepts, and how to send them."""
        return " or ".join(CREDENTIALS[mode] for mode in self.modes)


def _combined(
    claimed: str | None, certified: Authenticated | None, token: Authenticated | None, signed: SignedRequest | None
) -> Authenticated | Refused:
    proofs = {"mtls": certified, token.modes[0] if token else "token": token, "signed": signed}
    agents = {mode: proof.agent_id for mode, proof in proofs.items() if proof is not None}
    sources = {**agents, "Agent-ID": claimed} if claimed is not None else agents
    if len(set(sources.values())) != 1:
        # Only the caller's own claim is repeated: whom a stolen credential belongs to is not for everybody to know.
        message = f"{' and '.join(sources)} name different agents; present credentials of the agent that calls."
        return unauthorized("agent-id-mismatch", message, disagreeing=list(sources))
    ends = [proof.expires_at for proof in (certified, token) if proof is not None and proof.expires_at is not None]
    return Authenticated(
        agent_id=next(iter(agents.values())),
        modes=tuple(agents),
        scopes=token.scopes if token else None,
        principal_id=token.principal_id if token else None,
        tls_identity=certified.tls_identity if certified else None,
        expires_at=min(ends, default=None),
        holders=tuple(holder for proof in (certified, token) if proof is not None for holder in proof.holders),
        nonce=signed.nonce if signed else None,
        nonce_expires_at=signed.expires if signed else None,
        key_id=token.key_id if token else None,
    )


def _key_source(settings: TokenSettings, clock: Callable[[], float]) -> KeySource:
    from bespeak.state.identity.jwks import FileKeys, UrlKeys  # noqa: PLC0415 - loads joserfc, for servers that take tokens

    if settings.jwks_url is not None:
        return UrlKeys(settings.jwks_url, clock=clock)
    if settings.keys is None:
        raise ConfigError("Tokens cannot be verified without keys: give keys or jwks_url in [auth.token].")
    return FileKeys(settings.keys, clock=clock)
