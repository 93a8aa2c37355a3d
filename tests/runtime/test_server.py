"""A server is complete when it is constructed."""

from __future__ import annotations

from joserfc.jwk import OKPKey
from tests.service import build, echo, make_endpoint

from bespeak.runtime.server import Server
from bespeak.runtime.signer import Signer
from bespeak.state.identity.settings import AuthSettings, SignedSettings

REGISTRAR = build(make_endpoint("BOOK", "/room", echo)).server.registrar


def test_a_server_has_everything_its_methods_need() -> None:
    auth = AuthSettings(modes=("signed",), signed=SignedSettings())
    signer = Signer(OKPKey.generate_key("Ed25519"))
    server = Server(REGISTRAR, updated="2026-01-01T00:00:00Z", signer=signer, auth=auth)
    assert server.principals.authenticator is not None
    assert server.principals.key_of("test.example") == signer.private_key.public_key()
    assert ("BOOK", "/room") in server.routes.endpoints
    assert server.routes.updated == "2026-01-01T00:00:00Z"


def test_two_servers_of_one_service_share_routes_and_no_state() -> None:
    first, second = (Server(REGISTRAR, updated="2026-01-01T00:00:00Z") for _ in range(2))
    assert first.routes.direct["/room"]["BOOK"] is second.routes.direct["/room"]["BOOK"]
    assert first.agents is not second.agents
