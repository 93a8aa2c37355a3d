"""Floor methods (core 4): their parameters, and the way they are published."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service import AGENT, build, echo, make_endpoint

from bespeak.contract.standard.floor import FLOOR

# The parameters that core 4 says MUST be there, without those of DISCOVER, which has requests without any.
NEEDED: dict[str, dict[str, Any]] = {
    "QUERY": {"intent": "breakfast"},
    "SUMMARIZE": {"source": "text"},
    "PLAN": {"goal": "rest"},
    "EXECUTE": {"action": "run"},
    "NOTIFY": {"recipient": AGENT, "content": {"a": 1}},
}
OTHERS: dict[str, dict[str, Any]] = {
    "DISCOVER": {},
    "DESCRIBE": {},
    "PROPOSE": {},
    "DELEGATE": {"target_agent_id": AGENT, "task": "t", "authority_scope": "a:b", "delegation_token": "issue"},
    "CONFIRM": {"target_id": "esc-1", "status": "accepted"},
    "SUSPEND": {"session_id": "s-1"},
    "ESCALATE": {"task_id": "t", "reason": "scope_limit"},
}
IDEMPOTENT = {"QUERY", "DISCOVER", "DESCRIBE", "SUMMARIZE", "PLAN", "ESCALATE", "CONFIRM"}
BENCH = build()


def refused(method: str, body: dict[str, Any]) -> list[str]:
    """Return the places that a call is refused for; none if its input is valid."""
    reply = BENCH.send(method, "/", body)
    return [str(found) for found in reply.error.get("violations", ())] if reply.status == 422 else []


@pytest.mark.requirement("CORE-4.1-1", "CORE-4.4-1", "CORE-4.5-1", "CORE-4.7-1", "CORE-4.12-1")
@pytest.mark.parametrize(("method", "name"), [(method, name) for method, given in NEEDED.items() for name in given])
def test_a_call_without_a_parameter_it_must_have_is_refused(method: str, name: str) -> None:
    [found] = refused(method, {key: value for key, value in NEEDED[method].items() if key != name})
    assert name in found


@pytest.mark.requirement("CORE-4.1-6", "CORE-4.4-1", "CORE-4.12-1")
@pytest.mark.parametrize(
    ("method", "name", "words"),
    [
        ("QUERY", "format", ("structured", "natural", "raw")),
        ("SUMMARIZE", "length", ("brief", "standard", "detailed")),
        ("SUMMARIZE", "format", ("bullets", "prose", "structured")),
        ("NOTIFY", "urgency", ("critical", "informational", "background")),
        ("NOTIFY", "delivery_guarantee", ("at_most_once", "at_least_once", "exactly_once")),
    ],
)
def test_a_parameter_takes_the_words_of_the_draft_and_no_others(method: str, name: str, words: tuple[str, ...]) -> None:
    # Without `intent` a QUERY stops at its input, so that nothing is searched.
    given = {} if method == "QUERY" else NEEDED[method]
    for word in words:
        assert not any(name in found for found in refused(method, {**given, name: word}))
    assert any(name in found for found in refused(method, {**given, name: "otherwise"}))


@pytest.mark.requirement("CORE-4-1")
@pytest.mark.parametrize("method", [method.name for method in FLOOR])
def test_a_context_is_taken_by_every_method_and_is_an_object(method: str) -> None:
    given = {**NEEDED, **OTHERS}[method]
    if method != "QUERY":  # which would search
        assert refused(method, {**given, "context": {"why": "a test"}}) == []
    assert any("context" in found for found in refused(method, {**given, "context": "text"}))


@pytest.mark.requirement("CORE-4-2", "CORE-4-3")
def test_methods_are_published_as_the_table_has_them() -> None:
    floor = {method.name for method in FLOOR}
    published = {
        entry["method"]: entry["semantic"]
        for entry in BENCH.send("DISCOVER", "/").json["endpoints"]
        if entry["path"] == "/" and entry["method"] in floor
    }
    assert published.keys() == floor
    assert {method for method, semantic in published.items() if semantic["is_idempotent"]} == IDEMPOTENT
    informational = {method for method, semantic in published.items() if semantic["impact"] == "informational"}
    assert informational == {"QUERY", "DISCOVER", "DESCRIBE", "SUMMARIZE", "PLAN"}


@pytest.mark.requirement("CORE-4.13-4")
@pytest.mark.parametrize("method", ["X-BOOK", "X-TEST", "X-"])
def test_an_experimental_name_is_an_unknown_verb(method: str) -> None:
    reply = build(make_endpoint("BOOK", "/room", echo)).send(method, "/room")
    assert (reply.status, reply.error["code"]) == (459, "method-violation")
