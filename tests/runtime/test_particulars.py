"""What the log may say of a request."""

from __future__ import annotations

import pytest
from tests.service import AGENT, Bench, build, echo, make_endpoint

from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import Principal
from bespeak.runtime.call import Call
from bespeak.runtime.particulars import caller_of, particulars, particulars_of_fault


@pytest.fixture(scope="module")
def bench() -> Bench:
    return build(
        make_endpoint("QUERY", "/rooms/{room}/keys", echo, properties={"room": {}}), make_endpoint("QUERY", "/x", echo)
    )


def call(bench: Bench, path: str, method: str = "QUERY") -> Call:
    request = Request(method, path, "token=1", {"authorization": "Bearer x"}, b"{}", Connection(peer="192.0.2.1:99"))
    return Call(request, bench.assembled.registry)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/", "/"),
        ("/rooms/12/keys", "/rooms/*/keys"),
        ("/rooms/keys/12", "/rooms/keys/*"),
        ("/{room}", "/*"),
        ("/nowhere", "/*"),
        ("/" + "a" * 5000, "/*"),
        ("/x" * 5000, "/x" * 19),
    ],
)
def test_a_path_that_leads_nowhere_shows_the_words_of_contracts_alone(bench: Bench, path: str, shown: str) -> None:
    assert particulars(call(bench, path), 404)["path"] == shown


def test_an_endpoint_is_named_by_its_template(bench: Bench) -> None:
    found = call(bench, "/rooms/12/keys")
    router = bench.assembled.registry.router
    found.route = router.find("QUERY", "/rooms/12/keys")[0]  # type: ignore[index]
    found.principal = Principal(agent_id=AGENT, principal_id="acme")
    headers = (("Response-ID", "p"), ("Task-ID", "t" * 500), ("Audit-ID", "a"), ("Set-Secret", "s"))
    assert particulars(found, 200, headers) == {
        "response_id": "p",
        "task_id": "t" * 128,
        "audit_id": "a",
        "agent_id": AGENT,
        "principal_id": "acme",
        "claimed_agent_id": None,
        "method": "QUERY",
        "path": "/rooms/{room}/keys",
        "status": 200,
        "peer": "192.0.2.1:99",
    }


@pytest.mark.parametrize(
    ("given", "words"), [(None, "nobody"), ("hush", "nobody"), (AGENT, f"somebody who claims to be {AGENT}")]
)
def test_who_is_refused_before_it_is_known_has_only_claimed_to_be_somebody(
    bench: Bench, given: str | None, words: str
) -> None:
    found = call(bench, "/x")
    if given is not None:
        found.request.headers["agent-id"] = given  # type: ignore[index]
    told = particulars(found, 401)
    assert (told["agent_id"], caller_of(told)) == (None, words)
    found.principal = Principal(agent_id="b" * 64)
    told = particulars(found, 200)
    assert (told["claimed_agent_id"], caller_of(told)) == (None, "b" * 64)


def test_bytes_that_are_no_request_have_an_answer_and_a_peer() -> None:
    told = particulars_of_fault(Connection(peer="192.0.2.1:99"), 400, [("Response-ID", "p")])
    assert told == {"response_id": "p", "status": 400, "peer": "192.0.2.1:99"}
