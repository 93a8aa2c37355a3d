"""Servers that are right in an unusual way: no check fails them, and a check that sees no evidence says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from tests.app.conformance.conftest import CATALOG, FLOOR, endpoint
from tests.app.conformance.test_run import AGENT, answering, found, is_manifest, run

from bespeak.app.conformance.run import CHECKS
from bespeak.app.conformance.subject import Verdict

pytestmark = pytest.mark.anyio

OTHER = "b" * 64
Change = Callable[[Any], None]


def _both(change: Callable[[dict[str, Any]], object]) -> Change:
    """Change what a server publishes and what it does."""

    def apply(mini: Any) -> None:
        change(mini.manifest)
        change(mini.contract)

    return apply


def _flags(**flags: Any) -> Change:
    def apply(mini: Any) -> None:
        for name, value in flags.items():
            setattr(mini, name, value)

    return apply


def _policies(**changes: Any) -> Change:
    return _both(lambda manifest: manifest["policies"].update(changes))


def _method_policy(**changes: Any) -> Change:
    return _both(lambda manifest: manifest["policies"]["methods"].update(changes))


def _spoil(change: Callable[[Any, Any], Any]) -> Change:
    """Answer as the function says, or as before where it returns None."""
    return lambda mini: setattr(mini, "spoil", change)


def _all(*changes: Change) -> Change:
    def apply(mini: Any) -> None:
        for change in changes:
            change(mini)

    return apply


def _keep(*names: str) -> Change:
    def keep(manifest: dict[str, Any]) -> None:
        manifest["endpoints"] = [each for each in manifest["endpoints"] if f"{each['method']} {each['path']}" in names]

    return _both(keep)


def _hosting(*agents: Any) -> Change:
    return lambda mini: mini.manifest.update(hosted_agents=list(agents))


def _recoded(_ask: Any, answer: Any) -> Any:
    """The same statuses with codes of its own, at the top of the body."""
    error = answer.body.get("error") if isinstance(answer.body, dict) else None
    if error is None or error["code"] == "invalid-request-line":
        return None
    return replace(answer, body={**error, "code": f"E{answer.status}"})


def _lower_headers(_ask: Any, answer: Any) -> Any:
    return replace(answer, headers={name.lower(): value for name, value in answer.headers.items()})


def _quoting_the_path(ask: Any, answer: Any) -> Any:
    return replace(answer, body={"error": {"code": "grammar", "path": ask.path}}) if answer.status == 460 else None


def _enveloped(ask: Any, answer: Any) -> Any:
    if answer.status == 200 and ask.path.startswith("/rooms"):
        return replace(answer, body={"status": 200, "result": answer.body})
    return None


def _weakly_tagged(_ask: Any, answer: Any) -> Any:
    media = f"{answer.headers['Content-Type']}; charset=utf-8"
    return replace(answer, headers={**answer.headers, "ETag": 'W/"7"', "Content-Type": media})


def _reordering_warnings(_ask: Any, answer: Any) -> Any:
    if "AGTP-Endpoint-Warning" not in answer.headers:
        return None
    warning = "deprecated;removed_in=2.0 ;successor=RESERVE /rooms"
    return replace(answer, headers={**answer.headers, "AGTP-Endpoint-Warning": warning})


def _refusing_by_policy(ask: Any, answer: Any) -> Any:
    if ask.method != "TRANSFER":
        return None
    return replace(answer, status=404 if ask.path.startswith("/zz-") else 405, body=_error("policy"))


def _error(code: str) -> dict[str, Any]:
    return {"error": {"code": code}}


_ANYTHING: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "additionalProperties": False,
}
_BY_NAME = endpoint("QUERY", "/{name}", input_schema=_ANYTHING)

_LENGTH = {"type": "string", "enum": ["short", "long"]}
_REVIEW = endpoint(
    "AUDIT",
    "/reviews/{review_id}",
    input_schema={
        "type": "object",
        "properties": {"review_id": {"type": "string"}, "subject": {"type": "string"}, "length": _LENGTH},
        "required": ["subject"],
        "additionalProperties": False,
    },
)
_GATED = {**deepcopy(_REVIEW), "required_scopes": ["reviews:read"]}


# A server that has no such review, or that matches no templates, as the reference implementation.
_no_review = answering(lambda ask, _: ask.path.startswith("/reviews/"), status=404, body=_error("endpoint-not-found"))


def _first(*added: dict[str, Any]) -> Change:
    return _both(lambda manifest: manifest["endpoints"].__setitem__(slice(0, 0), deepcopy(list(added))))


_proposing = _policies(synthesis_enabled=True)
_with_redirect = {"from_method": "BOOK", "from_path": "/rooms", "to_method": "RESERVE", "to_path": "/rooms"}
_scoped_rooms = _both(lambda manifest: manifest["endpoints"][0].update(required_scopes=["rooms:read"]))
_only_templates = _all(
    _keep("DISCOVER /methods"),
    _first(_REVIEW, _GATED | {"path": "/reviews/{review_id}/parts"}),
    _method_policy(redirects=[]),
    _no_review,
)
_many_agents = _hosting(
    {"agent_id": AGENT, "methods_count": 2},
    {"uri": f"agtp://{OTHER}@mini.example", "methods_count": 11},
    *({"canonical_id": f"{number:064x}"} for number in range(500)),
)


def _without_defaults(mini: Any) -> None:
    for name in ("max_synthesis_depth", "scope_required_for_invocation"):
        del mini.manifest["policies"][name]


RIGHT: dict[str, Change] = {
    "nothing at made-up values": _all(_first(_REVIEW), _no_review),
    "nothing at made-up values behind a scope": _all(_first(_GATED), _no_review),
    "templates only, and nothing at made-up values": _only_templates,
    "input in the envelope only": _flags(wrapped=True),
    "strict about the media type": _flags(media={"application/json", "application/vnd.agtp.endpoint+json"}),
    "the envelope with another media type": _flags(wrapped=True, media={"application/json"}),
    "no templates": _keep("QUERY /rooms", "RESERVE /rooms", "RENT /rooms", "DISCOVER /methods"),
    "a template at the root": _both(lambda manifest: manifest["endpoints"].append(deepcopy(_BY_NAME))),
    "only built-in endpoints": _all(_keep("DISCOVER /methods"), _method_policy(redirects=[])),
    "no writable endpoint": _all(
        _keep("QUERY /rooms", "FETCH /rooms/{room_id}", "DISCOVER /methods"), _method_policy(redirects=[])
    ),
    "codes of its own": _spoil(_recoded),
    "405 before 404": _flags(method_first=True),
    "input before scope": _flags(input_first=True),
    "a 422 without details": answering(lambda _, answer: answer.status == 422, body=_error("bad")),
    "header names in lower case": _spoil(_lower_headers),
    "an answer byte by byte": _flags(wire=lambda data: [bytes([each]) for each in data]),
    "a 460 that quotes the path": _spoil(_quoting_the_path),
    "404 for what a floor method is about": answering(
        lambda ask, _: ask.method in ("CONFIRM", "SUSPEND") and ask.path == "/",
        status=404,
        body=_error("no-such-target"),
    ),
    "weak ETag, media type with parameters": _spoil(_weakly_tagged),
    "no method policy but the defaults": _all(
        _method_policy(disallow=[], redirects=[]), lambda mini: mini.manifest["policies"].pop("methods")
    ),
    "toggles with defaults left out": _without_defaults,
    "floor methods as objects": lambda mini: mini.manifest.update(
        embedded_methods=[{"name": name, "description": "It."} for name in FLOOR]
    ),
    "a floor method disallowed": _method_policy(disallow=["NOTIFY"]),
    "an unbound verb disallowed, routes first": answering(
        lambda ask, _: ask.method == "TRANSFER" and ask.path.startswith("/zz-"), status=404, body=_error("x")
    ),
    "an unbound verb disallowed, routes first, with a reason": _spoil(_refusing_by_policy),
    "a disallowed verb that left the catalog": _method_policy(disallow=["OBSOLETE"]),
    "a list of allowed methods": _method_policy(allow=["RESERVE", "RENT", "FETCH", "BOOK"]),
    "legacy verbs opted in": _all(
        _method_policy(legacy=["GET"]),
        answering(lambda ask, _: ask.method == "GET", status=404, body=_error("endpoint-not-found")),
    ),
    "a redirect for every path": _method_policy(redirects=[_with_redirect]),
    "input before scope, valid input harmless": _all(_flags(input_first=True), _scoped_rooms),
    "consent for undeclared paths": _all(
        _policies(wildcards_accepted=True),
        answering(lambda _, answer: answer.status == 404, status=262, body={"error": {"type": "wildcards-required"}}),
    ),
    "undeclared paths admitted, yet 404": _policies(wildcards_accepted=True),
    "proposals in parameters.endpoint": _all(_proposing, _flags(proposal_at=("parameters", "endpoint"))),
    "proposals in a member, strict about the media type": _all(
        _proposing, _flags(proposal_at=("parameters", "proposal"), media={"application/json"})
    ),
    "proposals in a form of its own": _all(_proposing, _flags(proposal_at=("wish",))),
    "many agents with few rights each": _all(
        _many_agents,
        _flags(known_agents={AGENT, OTHER}, rights={AGENT: {"NOTIFY", "DISCOVER"}, OTHER: CATALOG - {"NOTIFY"}}),
    ),
    "an agent without rights to a floor method": _all(
        _hosting({"agent_id": AGENT}), _flags(known_agents={AGENT}, rights={AGENT: CATALOG - {"NOTIFY"}})
    ),
    # As the reference implementation refuses an agent that it does not host.
    "agents refused with 404": _all(
        _hosting({"agent_id": AGENT}),
        answering(
            lambda ask, _: ask.headers.get("agent-id", AGENT) != AGENT, status=404, body=_error("agent_not_found")
        ),
    ),
    "busy for a while": answering(lambda ask, _: ask.path == "/query", status=429, body={}),
    "answers in the envelope": _spoil(_enveloped),
    "warnings in another order": _spoil(_reordering_warnings),
}
UNDECIDED_IN = {
    "templates only, and nothing at made-up values": "02d 08d 08e 10b 10d 10e",
    "input before scope": "08d 08e",
    "a 422 without details": "10b",
    "a 460 that quotes the path": "03c",
    "an unbound verb disallowed, routes first": "04b",
    "a disallowed verb that left the catalog": "04b",
    "consent for undeclared paths": "04b",
    "undeclared paths admitted, yet 404": "08f",
    "proposals in a form of its own": "07b 07c 07d 07e 07f 07g 07h",
    "many agents with few rights each": "08e",
    "an agent without rights to a floor method": "02e 08e",
    "busy for a while": "03a",
}


@pytest.mark.parametrize("name", RIGHT)
async def test_unusual_server_fails_no_check(mini: Any, name: str) -> None:
    RIGHT[name](mini)
    report = await run(mini)
    assert found(report, Verdict.FAIL) == {}
    undecided = {f"13.1-{check}" for check in UNDECIDED_IN.get(name, "").split()}
    assert set(found(report, Verdict.COULD_NOT_TELL)) == undecided


def _becoming(before: int, after: int) -> Change:
    return answering(lambda _, answer: answer.status == before, status=after, body={})


WRONG: list[tuple[str, Change]] = [
    ("13.1-10a", _flags(wrapped=True, strict=False)),
    ("13.1-10c", _flags(wrapped=True, merges_query=False)),
    ("13.1-10d", _flags(wrapped=True, decodes_query=False)),
    ("13.1-10e", _flags(media={"application/json"}, query_wins=True)),
    ("13.1-08d", _all(_scoped_rooms, _flags(input_first=True), _becoming(455, 200))),
    ("13.1-08e", _all(_scoped_rooms, _flags(input_first=True), _becoming(262, 200))),
    ("13.1-08a", _all(_policies(wildcards_accepted=True), _becoming(404, 400))),
    ("13.1-08b", _all(_policies(wildcards_accepted=True), _becoming(405, 404))),
    (
        "13.1-04c",
        _all(
            _keep("QUERY /rooms", "DISCOVER /methods"),
            lambda mini: mini.manifest["policies"]["methods"].update(allow=["RESERVE"], redirects=[]),
            answering(lambda ask, _: ask.method == "AUDIT", status=500, body={}),
        ),
    ),
    ("13.1-12a", _both(lambda manifest: manifest["endpoints"][0].update(deprecated={"deprecated_in": "1"}))),
]


@pytest.mark.parametrize(("check", "change"), WRONG, ids=[f"{at}-{check}" for at, (check, _) in enumerate(WRONG)])
async def test_defect_is_found_in_an_unusual_server_too(mini: Any, check: str, change: Change) -> None:
    change(mini)
    if check == "13.1-12a":  # the warning is on refusals only

        def warn(_ask: Any, answer: Any) -> Any:
            kept = {name: value for name, value in answer.headers.items() if name != "AGTP-Endpoint-Warning"}
            return replace(
                answer, headers=kept | ({"AGTP-Endpoint-Warning": "deprecated"} if answer.status == 422 else {})
            )

        mini.spoil = warn
    assert check in found(await run(mini), Verdict.FAIL)


UNDECIDED: list[tuple[set[str], Change]] = [
    ({"13.1-10d", "13.1-10e"}, _spoil(lambda ask, answer: _gone(ask, answer, "/rooms"))),
    ({"13.1-10d", "13.1-10e"}, _flags(validates=False)),
    ({"13.1-10e"}, _flags(merges_query=False)),
    ({"13.1-04e"}, _spoil(lambda ask, answer: _gone(ask, answer, "/rooms"))),
    ({"13.1-05i"}, _spoil(lambda ask, answer: _gone(ask, answer, "/") if ask.method == "DISCOVER" else None)),
]


def _gone(ask: Any, answer: Any, path: str) -> Any:
    """A 404 for everything at one path but the manifest."""
    if ask.path != path or ("agent-id" not in ask.headers and path == "/"):
        return None
    return replace(answer, status=404, body={"error": {"code": "gone"}})


@pytest.mark.parametrize(("checks", "change"), UNDECIDED)
async def test_check_without_evidence_says_so(mini: Any, checks: set[str], change: Change) -> None:
    change(mini)
    assert checks <= set(found(await run(mini), Verdict.COULD_NOT_TELL))


async def test_server_without_a_manifest_for_strangers_decides_few_checks(mini: Any) -> None:
    answering(is_manifest, status=262, body={"error": {"type": "anonymous-discovery-disabled"}})(mini)
    report = await run(mini)
    assert found(report, Verdict.FAIL) == {}
    needing = {check.id for check in CHECKS if check.needs_manifest}
    assert needing <= set(found(report, Verdict.COULD_NOT_TELL))
    assert {"13.1-02a", "13.1-03a", "13.1-08a"} <= set(found(report, Verdict.PASS))


async def test_slow_server_is_not_failed(mini: Any) -> None:
    never = asyncio.Event()
    real = mini.serve

    def stall(ask: Any, _answer: Any) -> Any:
        if ask.method == "ZZYZXQ":
            raise TimeoutError
        return None

    mini.spoil, mini.serve = stall, lambda: real(stalled=never)
    report = await run(mini, timeout=0.5)
    never.set()
    assert "no answer: timeout" in found(report, Verdict.COULD_NOT_TELL)["13.1-02a"]
    assert "13.1-03a" in found(report, Verdict.PASS)
