"""Another AGTP server gets a posting as a NOTIFY of this server."""

from __future__ import annotations

import hashlib
import time

import msgspec
import pytest
from joserfc.jwk import OKPKey
from tests.agent.discovery.web import HOST, authority
from tests.runtime.delivery.parts import SERVER, delivering, posting
from tests.stub_server import Serve, StubHandler

from bespeak.faces.agtp.server import AgtpServer
from bespeak.protocol.exchange.messages import Request, Response
from bespeak.protocol.tls import server_context
from bespeak.runtime.identity.signer import Signer
from bespeak.runtime.messages.transports import Delivered, Retry, Undeliverable
from bespeak.state.identity.signed_request import SignedRequest, verify_signed

pytestmark = pytest.mark.anyio

AGENT = "b" * 64


class Answering(StubHandler):
    """Answers every request with one status."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status

    def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(self.status, b"{}")


async def test_the_agent_of_the_address_is_notified_under_the_identity_of_the_server(
    serve: Serve, handler: StubHandler
) -> None:
    _, port = await serve()
    key = OKPKey.generate_key("Ed25519")
    delivery = delivering(Signer(key), allow=("127.0.0.1",))
    address = f"agtp://{AGENT}@127.0.0.1:{port}"
    outcome = await delivery.deliver(address, posting(expires=2e9))
    assert isinstance(outcome, Delivered)
    [request] = handler.requests
    assert (request.method, request.path, request.headers["idempotency-key"]) == ("NOTIFY", "/", "posting-1")
    body = msgspec.json.decode(request.body)
    assert (body["recipient"], body["expiry"]) == (AGENT, "2033-05-18T03:33:20Z")
    assert body["delivery_guarantee"] == "at_least_once"
    assert body["content"]["content"] == {"text": "hello"}
    own = hashlib.sha256(f"agtp://{SERVER}".encode()).hexdigest()
    public = Signer(key).private_key.public_key()
    signed = verify_signed(request, server_id="127.0.0.1", key_of=lambda _: public, now=time.time(), max_age=60.0)
    assert isinstance(signed, SignedRequest)
    assert signed.agent_id == own


async def test_without_an_agent_in_the_address_the_posting_says_whom_it_is_for(
    serve: Serve, handler: StubHandler
) -> None:
    _, port = await serve()
    delivery = delivering(allow=("127.0.0.1",), agent_id="c" * 64)
    await delivery.deliver(f"agtp://127.0.0.1:{port}", posting(recipient=AGENT))
    await delivery.deliver(f"agtp://127.0.0.1:{port}", posting())
    recipients = [msgspec.json.decode(request.body)["recipient"] for request in handler.requests]
    assert recipients == [AGENT, f"agtp://127.0.0.1:{port}"]
    assert handler.requests[0].headers["agent-id"] == "c" * 64


async def test_other_machines_are_called_over_tls_with_the_name_of_the_address(
    serve: Serve, handler: StubHandler
) -> None:
    leaf = authority().issue_cert(HOST)
    with leaf.private_key_and_cert_chain_pem.tempfile() as pem, authority().cert_pem.tempfile() as ca_file:
        _, port = await serve(ssl=server_context(pem))
        trusting = await delivering(ca_file=ca_file).deliver(f"agtp://{HOST}:{port}", posting())
        other_name = delivering(ca_file=ca_file, allow=("other.test",))
        misled = await other_name.deliver(f"agtp://other.test:{port}", posting())
        doubting = await delivering().deliver(f"agtp://{HOST}:{port}", posting())
    assert isinstance(trusting, Delivered)
    assert (type(misled), type(doubting)) == (Retry, Retry)
    assert len(handler.requests) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [(200, Delivered), (202, Delivered), (262, Undeliverable), (404, Undeliverable), (429, Retry), (503, Retry)],
)
async def test_the_status_decides_what_follows(status: int, kind: type) -> None:

    server = AgtpServer(Answering(status))
    [(_, port)] = await server.start("127.0.0.1", 0)
    try:
        outcome = await delivering(allow=("127.0.0.1",)).deliver(f"agtp://127.0.0.1:{port}", posting())
        assert isinstance(outcome, kind)
    finally:
        await server.close()


async def test_what_cannot_be_reached_is_tried_again_and_what_may_not_be_is_not(unused_port: int) -> None:
    allowed = delivering(allow=("127.0.0.1",))
    assert isinstance(await allowed.deliver(f"agtp://127.0.0.1:{unused_port}", posting()), Retry)
    assert isinstance(await allowed.deliver("agtp://nowhere.test", posting()), Retry)
    for address in (f"agtp://localhost:{unused_port}", "agtp://10.0.0.1", "agtp://x y", f"agtp://{'h' * 400}"):
        assert isinstance(await allowed.deliver(address, posting()), Undeliverable)
