"""Client certificates over real handshakes: only those of the operator's authorities prove anything."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.process import Served
from tests.security.guarded import AGENT, Guarded, Line, bearer, trusting
from tests.state.identity.certificates import Authority
from tests.state.identity.issuer import OTHER

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Guarded:
    return Guarded(tmp_path_factory.mktemp("certificates"), "mtls", "token")


@pytest.fixture(scope="module")
def served(guarded: Guarded) -> Iterator[Served]:
    with guarded.serving() as served:
        yield served


@pytest.fixture(scope="module")
def own(guarded: Guarded) -> tuple[Path, Path]:
    return guarded.authority.client("agent", uris=[f"agtp://{AGENT}"])


@pytest.mark.requirement("CORE-10.1-5")
def test_a_certificate_proves_only_the_agent_it_names(guarded: Guarded, served: Served, own: tuple[Path, Path]) -> None:
    with Line(served.port, trusting(guarded, *own)) as line:
        # A certificate says who, and no document here says what it may do.
        assert line.ask().status == 455
        answer = line.ask(headers=bearer(guarded.token()))
        assert (answer.status, answer.json["agent"], answer.json["verified"]) == (200, AGENT, "mtls+token")
    nobody = guarded.authority.client("nobody", dns=["desk.example"])
    with Line(served.port, trusting(guarded, *nobody)) as line:
        answer = line.ask(headers={"Agent-ID": AGENT})
        assert (answer.status, answer.code) == (401, "certificate-without-agent")
    with Line(served.port, trusting(guarded, *own)) as line:
        answer = line.ask(headers={"Agent-ID": OTHER})
        assert (answer.status, answer.code) == (401, "agent-id-mismatch")
        answer = line.ask(headers=bearer(guarded.token(agent_id=OTHER)))
        assert (answer.status, answer.code) == (401, "agent-id-mismatch")
        assert line.ask(headers=bearer(guarded.token(), Agent_ID=AGENT)).status == 200


def test_certificate_of_another_authority_ends_the_handshake(guarded: Guarded, served: Served, tmp_path: Path) -> None:
    forged = Authority(tmp_path / "other").client("agent", uris=[f"agtp://{AGENT}"])
    # In TLS 1.3 the client has finished before the server has judged it: the refusal comes with the first answer.
    with pytest.raises((ssl.SSLError, ConnectionError)), Line(served.port, trusting(guarded, *forged)) as line:
        line.ask(headers=bearer(guarded.token()))


def test_with_mtls_only_there_is_no_connection_without_a_certificate(tmp_path: Path) -> None:
    guarded = Guarded(tmp_path, "mtls")
    own = guarded.authority.client("agent", uris=[f"agtp://{AGENT}"])
    with guarded.serving() as served:
        with Line(served.port, trusting(guarded, *own)) as line:
            assert line.ask("DISCOVER", "/methods").status == 200
        with pytest.raises((ssl.SSLError, ConnectionError)), Line(served.port, trusting(guarded)) as line:
            line.ask("DISCOVER", "/methods")
        with pytest.raises(ConnectionError), Line(served.port) as line:
            line.ask("DISCOVER", "/methods", {"Agent-ID": AGENT})
