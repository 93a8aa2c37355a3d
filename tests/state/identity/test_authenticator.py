"""Combined modes: every credential must be valid, and all must name the same agent."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as generate_curve_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.cases import rows
from tests.state.identity.certificates import ENDS, Authority, certificate
from tests.state.identity.issuer import (
    AGENT,
    NOW,
    OTHER,
    SERVER,
    Clock,
    claims,
    encode,
    jwks,
    new_key,
    public,
    request,
    sign,
    write_keys,
)
from tests.state.identity.key_server import publishing

from bespeak.errors import ConfigError, RemoteProtocolError
from bespeak.faces.agtp.server import AgtpServer
from bespeak.protocol.agtp_client_connection import AgtpClientConnection
from bespeak.protocol.exchange.messages import Connection, Malformed, Request, Response
from bespeak.protocol.exchange.principal import Scopes
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.tls import client_context, server_context
from bespeak.state.identity.authenticator import Authenticator
from bespeak.state.identity.credentials import Authenticated, Outdated, ed25519_mark, key_mark
from bespeak.state.identity.jwks import FETCH_GAP
from bespeak.state.identity.settings import AuthSettings, MtlsSettings, SignedSettings, TokenSettings
from bespeak.state.identity.signed_request import AHEAD, sign_request

pytestmark = pytest.mark.anyio
KEY = new_key()
AGENT_KEY = Ed25519PrivateKey.generate()
CERTIFICATE = certificate(uris=[f"agtp://{AGENT}"])
FOREIGN = certificate(uris=[f"agtp://{OTHER}"])
TOKEN = sign(KEY, kid="k")
OTHER_SCHEMES = ("Basic YTpi", "bearer", "", "Bearer", "Token x", "Bearer\tx", "é")


class Bench:
    """An authenticator of some modes and its clock."""

    def __init__(self, folder: Path, *modes: str) -> None:
        self.clock = Clock()
        self.path = write_keys(folder / "keys.json", public(KEY, kid="k"))
        settings = AuthSettings(
            modes=modes,
            token=TokenSettings(keys=self.path),
            mtls=MtlsSettings(ca=folder / "ca.pem"),
            signed=SignedSettings(max_age=60),
        )
        keys = {AGENT: AGENT_KEY.public_key()}
        self.authenticator = Authenticator(settings, SERVER, keys.get, clock=self.clock)

    def agent(self, request: Request) -> Authenticated:
        found = self.authenticator.authenticate(request)
        assert isinstance(found, Authenticated), found
        return found

    def code(self, request: Request) -> str:
        found = self.authenticator.authenticate(request)
        assert isinstance(found, Refused), found
        assert found.status == 401
        return found.code


@pytest.fixture
def every(tmp_path: Path) -> Bench:
    return Bench(tmp_path, "token", "mtls", "signed")


def signed(agent_id: str = AGENT, *, key: Ed25519PrivateKey = AGENT_KEY, **more: Any) -> Request:
    """Make a request with an Agent-Signature and other headers."""
    plain = request(more.pop("token", None), certificate=more.pop("certificate", None), agent_id=agent_id, **more)
    value = sign_request(plain.method, plain.path, plain.headers, plain.body, key=key, server_id=SERVER, now=NOW)
    return Request("QUERY", "/rooms", "", {**plain.headers, "agent-signature": value}, b"", plain.connection)


def test_token_certificate_and_signature_give_agent_and_what_each_proves(every: Bench) -> None:
    token = sign(KEY, claims(principal_id="acme"), kid="k")
    assert every.agent(request(token)) == Authenticated(
        AGENT, ("token",), Scopes(["booking:room"]), "acme", expires_at=NOW + 600
    )
    assert every.agent(request(token, agent_id=AGENT)) == every.agent(request(token))
    found = every.agent(request(certificate=CERTIFICATE))
    identity = hashlib.sha256(CERTIFICATE).hexdigest()
    assert (found.agent_id, found.modes, found.scopes) == (AGENT, ("mtls",), None)
    assert (found.tls_identity, found.expires_at) == (identity, ENDS.timestamp())
    found = every.agent(signed())
    assert (found.agent_id, found.modes, found.scopes) == (AGENT, ("signed",), None)
    assert found.nonce
    assert found.nonce_expires_at == NOW + 60 + AHEAD


@pytest.mark.parametrize("presented", [request(TOKEN, agent_id=AGENT), request(certificate=CERTIFICATE)])
def test_result_of_a_known_credential_is_reused(every: Bench, presented: Request) -> None:
    assert every.agent(presented) is every.agent(presented)


def test_credentials_add_up_when_they_agree(every: Bench) -> None:
    found = every.agent(signed(token=TOKEN, certificate=CERTIFICATE))
    assert (found.modes, found.verified) == (("mtls", "token", "signed"), "mtls+token+signed")
    assert found.scopes == Scopes(["booking:room"])
    assert found.tls_identity
    assert found.nonce
    assert found.expires_at == NOW + 600


@pytest.mark.requirement("CORE-10.1-5")
@rows(
    "disagreeing",
    *(request(TOKEN, agent_id=OTHER), request(TOKEN, agent_id="short"), request(TOKEN, agent_id="")),
    *(request(certificate=CERTIFICATE, agent_id=OTHER), request(TOKEN, certificate=FOREIGN)),
    request(TOKEN, certificate=FOREIGN, agent_id=AGENT),
    *(request(TOKEN, certificate=FOREIGN, agent_id=OTHER), signed(certificate=FOREIGN)),
    signed(token=sign(KEY, claims(agent_id=OTHER), kid="k")),
)
def test_credentials_of_different_agents_are_refused(every: Bench, disagreeing: Request) -> None:
    assert every.code(disagreeing) == "agent-id-mismatch"
    found = every.authenticator.authenticate(disagreeing)
    assert AGENT not in str(found)
    assert OTHER not in str(found)


@rows(
    "presented, code",
    (request(sign(new_key(), kid="k"), certificate=CERTIFICATE), "token-signature-invalid"),
    (request(TOKEN, certificate=certificate()), "certificate-without-agent"),
    (request(TOKEN, certificate=certificate(generate_private_key(65537, 2048))), "certificate-key-refused"),
    (signed(token="x", certificate=CERTIFICATE), "token-malformed"),
    (signed(key=Ed25519PrivateKey.generate(), token=TOKEN), "signature-invalid"),
    (signed(OTHER), "agent-key-unknown"),
    (request(TOKEN, agent_signature=""), "agent-id-missing"),
    *[(request(agent_id=unproven), "agent-unauthenticated") for unproven in (AGENT, "", "short", "x" * 5000)],
    *[(request(authorization=other), "token-malformed") for other in OTHER_SCHEMES],
)
def test_one_bad_credential_refuses_the_request(every: Bench, presented: Request, code: str) -> None:
    assert every.code(presented) == code


def test_token_bound_to_a_certificate_needs_that_certificate(every: Bench) -> None:
    bound = sign(KEY, claims(cnf={"x5t#S256": encode(hashlib.sha256(CERTIFICATE).digest())}), kid="k")
    assert every.agent(request(bound, certificate=CERTIFICATE)).verified == "mtls+token"
    assert every.code(request(bound)) == "token-binding-wrong"
    another = certificate(uris=[f"agtp://{AGENT}"])
    assert every.code(request(bound, certificate=another)) == "token-binding-wrong"


def test_request_without_credentials_is_anonymous_and_the_scheme_is_written_in_any_case(every: Bench) -> None:
    assert every.authenticator.authenticate(request()) is None
    assert every.authenticator.authenticate(request(authority_scope="booking:room")) is None
    assert every.agent(request(authorization=f"BEARER  {TOKEN}")).agent_id == AGENT


def test_credential_of_a_disabled_mode_is_refused_and_such_a_certificate_ignored(tmp_path: Path) -> None:
    assert Bench(tmp_path, "mtls").code(request(TOKEN)) == "credential-not-accepted"
    assert Bench(tmp_path, "token").code(signed(token=TOKEN)) == "credential-not-accepted"
    assert Bench(tmp_path, "signed").agent(signed(certificate=None)).modes == ("signed",)
    bench = Bench(tmp_path, "token")
    assert bench.agent(request(TOKEN, certificate=FOREIGN)).modes == ("token",)
    assert bench.authenticator.authenticate(Request("QUERY", "/", "", {}, b"", Connection(certificate=FOREIGN))) is None


def test_open_mode_trusts_headers_and_ignores_credentials() -> None:
    authenticator = Authenticator(AuthSettings(), SERVER)
    assert authenticator.is_open
    assert authenticator.authenticate(request("nonsense", agent_id=AGENT)) is None


async def test_outdated_keys_are_refreshed_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "token")
    new = new_key()
    rotated = request(sign(new, kid="n"))
    assert bench.code(rotated) == "token-key-unknown"
    write_keys(bench.path, public(new, kid="n"))
    assert isinstance(bench.authenticator.authenticate(rotated), Outdated)
    await bench.authenticator.refresh()
    assert isinstance(bench.authenticator.authenticate(rotated), Authenticated)
    assert bench.code(request(sign(new_key(), kid="z"))) == "token-key-unknown"
    await bench.authenticator.close()


async def test_rotated_keys_are_accepted_and_old_ones_refused() -> None:
    clock = Clock()
    old, new = request(TOKEN), new_key()
    rotated = request(sign(new, kid="n"))
    async with publishing(jwks(public(KEY, kid="k"))) as issuer:
        settings = AuthSettings(modes=("token",), token=TokenSettings(jwks_url=issuer.url))
        authenticator = Authenticator(settings, SERVER, clock=clock)
        await authenticator.refresh()
        assert isinstance(authenticator.authenticate(old), Authenticated)
        issuer.body = jwks(public(new, kid="n")).encode()
        unknown = authenticator.authenticate(rotated)
        assert isinstance(unknown, Refused)
        assert unknown.code == "token-key-unknown"
        clock.now += FETCH_GAP
        assert isinstance(authenticator.authenticate(rotated), Outdated)
        await authenticator.refresh()
        assert isinstance(authenticator.authenticate(rotated), Authenticated)
        assert isinstance(authenticator.authenticate(old), Refused)
        await authenticator.close()
    assert issuer.fetched == 2


async def test_unreachable_issuer_is_distinguished_from_a_bad_token() -> None:
    settings = AuthSettings(modes=("token",), token=TokenSettings(jwks_url="http://127.0.0.1:9/"))
    authenticator = Authenticator(settings, SERVER, clock=Clock())
    assert isinstance(authenticator.authenticate(request(TOKEN)), Outdated)
    await authenticator.refresh()
    found = authenticator.authenticate(request(TOKEN))
    assert isinstance(found, Refused)
    assert (found.status, found.code) == (503, "token-keys-unavailable")
    await authenticator.close()


async def test_without_tokens_there_is_nothing_to_refresh(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "mtls")
    await bench.authenticator.refresh()
    await bench.authenticator.close()
    assert bench.authenticator.authenticate(request()) is None


def test_missing_requirement_of_a_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="register of agents"):
        Authenticator(AuthSettings(modes=("signed",)), SERVER)
    with pytest.raises(ConfigError, match="without keys"):
        Authenticator(AuthSettings(modes=("token",)), SERVER)
    with pytest.raises(ConfigError, match="gone"):
        Authenticator(AuthSettings(modes=("token",), token=TokenSettings(keys=tmp_path / "gone")), SERVER)


class _Door:
    """Answers with the caller, or with the reason of the refusal."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    def __call__(self, request: Request) -> Response:
        found = self._authenticator.authenticate(request)
        if isinstance(found, Refused):
            return Response(found.status, found.code.encode())
        assert not isinstance(found, Outdated)
        return Response(200, b"anonymous" if found is None else f"{found.verified} {found.agent_id}".encode())

    def malformed(self, fault: Malformed, connection: Connection) -> Response:
        return Response(fault.status)


@pytest.mark.requirement("CORE-10.1-5")
@pytest.mark.parametrize("modes", [("mtls",), ("mtls", "token")])
async def test_certificate_of_a_real_handshake_gives_the_agent(tmp_path: Path, modes: tuple[str, ...]) -> None:
    ours, theirs = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs")
    only = modes == ("mtls",)
    server = AgtpServer(_Door(Bench(tmp_path, *modes).authenticator))
    context = server_context(*ours.server(), client_ca=ours.ca, required=only)
    [(_, port)] = await server.start("127.0.0.1", 0, ssl=context)

    async def ask(presented: tuple[Path, Path] | None, **headers: str) -> str:
        cert, key = presented or (None, None)
        try:
            connection = await AgtpClientConnection.open(
                "127.0.0.1", port, ssl=client_context(ours.ca, cert=cert, key=key)
            )
            answer = await connection.request(
                "QUERY", "/", [(name.replace("_", "-"), text) for name, text in headers.items()]
            )
        except (OSError, RemoteProtocolError):
            return "no handshake"
        connection.close()
        return answer.body.decode()

    agent = ours.client("agent", uris=[f"agtp://{AGENT}@rooms.example"])
    elliptic = ours.client("elliptic", generate_curve_key(SECP256R1()), common=AGENT)
    try:
        assert await ask(agent) == f"mtls {AGENT}"
        assert await ask(elliptic, agent_id=AGENT) == f"mtls {AGENT}"
        assert await ask(agent, agent_id=OTHER) == "agent-id-mismatch"
        assert await ask(ours.client("nobody", common="nobody")) == "certificate-without-agent"
        rsa = ours.client("rsa", generate_private_key(65537, 2048), common=AGENT)
        assert await ask(rsa) == "certificate-key-refused"
        assert await ask(theirs.client("agent", uris=[f"agtp://{AGENT}"])) == "no handshake"
        assert await ask(None) == ("no handshake" if only else "anonymous")
        assert await ask(None, agent_id=AGENT) == ("no handshake" if only else "agent-unauthenticated")
        if not only:
            assert await ask(None, authorization=f"Bearer {TOKEN}") == f"token {AGENT}"
            assert await ask(agent, authorization=f"Bearer {TOKEN}") == f"mtls+token {AGENT}"
            other = sign(KEY, claims(agent_id=OTHER), kid="k")
            assert await ask(agent, authorization=f"Bearer {other}") == "agent-id-mismatch"
    finally:
        await server.close()


@pytest.mark.process
@pytest.mark.parametrize(
    ("modes", "loaded"), [("open", []), ("mtls", ["cryptography"]), ("token", ["cryptography", "joserfc"])]
)
def test_disabled_mode_loads_nothing(tmp_path: Path, modes: str, loaded: list[str]) -> None:
    path = write_keys(tmp_path / "keys.json", public(KEY))
    script = f"""
import sys
from pathlib import Path
from bespeak.state.identity.settings import AuthSettings, TokenSettings
from bespeak.state.identity.authenticator import Authenticator
Authenticator(AuthSettings(modes=({modes!r},), token=TokenSettings(keys=Path({str(path)!r}))), "s")
print([name for name in ("cryptography", "httpx", "joserfc") if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.strip() == str(loaded)


def test_several_proofs_are_joined_in_one_word_and_a_nonce_is_not_shown() -> None:
    assert Authenticated(AGENT, ("token",)).verified == "token"
    assert Authenticated(AGENT, ("mtls", "signed")).verified == "mtls+signed"
    assert "secret-nonce" not in repr(Authenticated(AGENT, ("signed",), nonce="secret-nonce"))


def test_raw_key_and_its_certificate_form_have_the_same_mark() -> None:
    one, other = (Ed25519PrivateKey.generate().public_key() for _ in range(2))
    spki = one.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert ed25519_mark(one.public_bytes_raw()) == key_mark(spki)
    assert ed25519_mark(other.public_bytes_raw()) != key_mark(spki)
