"""New agents: ids that come from signed records."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bespeak.app.server.enrolment import Issuer, enrol, filed_agents, issuer_of, read_key
from bespeak.errors import ConfigError
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.identity.agent_json import parse_agent
from bespeak.state.identity.key_text import generate_key, private_text, public_jwk

WHEN = "2026-11-16T08:00:00Z"


def test_a_document_carries_the_genesis_that_gives_its_id() -> None:
    issuer = Issuer(server_id="hotel.example", operator="Hotel", key=generate_key())
    key = public_jwk(generate_key())
    made = enrol(
        issuer, name="desk", description="Books.", scopes=["b:c", "a:b", "b:c"], public_key=key, issued_at=WHEN
    )
    assert not isinstance(made, Refused)
    agent, findings = parse_agent(msgspec.json.encode(made).decode(), "desk")
    assert findings == []
    assert agent is not None
    assert agent.genesis is not None
    assert (agent.agent_id, agent.scopes) == (agent.genesis.agent_id, ("a:b", "b:c"))
    assert (agent.public_key, agent.issuer, agent.principal) == (key, "agtp://hotel.example", "Hotel")


def test_the_issuer_is_the_operator_with_the_servers_key(tmp_path: Path) -> None:
    key = generate_key()
    (tmp_path / "server.pem").write_text(private_text(key))
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "a.example"\noperator = "A"\ncontact = "a@a.example"\nsigning_key = "server.pem"\n'
    )
    issuer = issuer_of(str(tmp_path), None)
    assert (issuer.server_id, issuer.operator, issuer.key.thumbprint()) == ("a.example", "A", key.thumbprint())
    assert filed_agents(str(tmp_path)) == filed_agents("some.module:app") == ()


def test_an_invalid_key_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing"):
        read_key(tmp_path / "nothing.pem")
    (tmp_path / "bad.pem").write_text("no key")
    with pytest.raises(ConfigError, match="Ed25519"):
        read_key(tmp_path / "bad.pem")
