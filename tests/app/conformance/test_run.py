from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import trustme
from tests.cases import rows

from bespeak.agent.client.errors import UnreachableError
from bespeak.app.conformance.checks import calls
from bespeak.app.conformance.run import CHECKS, ITEMS, ConformanceReport, run_conformance
from bespeak.app.conformance.subject import PROBE_AGENT, PROBE_FIELD, Verdict
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.service import DEFAULT_CATALOG
from bespeak.errors import ConfigError

pytestmark = pytest.mark.anyio

AGENT = "a" * 64


async def run(mini: Any, **options: Any) -> ConformanceReport:
    async with mini.serve() as uri:
        return await run_conformance(uri, **options)


def found(report: ConformanceReport, verdict: Verdict) -> dict[str, str]:
    return {result.check.id: result.outcome.note for result in report.results if result.outcome.verdict is verdict}


async def test_a_conforming_server_passes_every_item(mini: Any) -> None:
    report = await run(mini)
    assert found(report, Verdict.FAIL) == {}
    assert found(report, Verdict.WARN) == {}
    assert report.conforms
    assert {item for item in ITEMS if report.verdict(item) is not Verdict.PASS} == set()


async def test_only_informational_endpoints_are_invoked_by_the_probe_agent(mini: Any) -> None:
    await run(mini)
    assert mini.invoked
    assert {name for name, _ in mini.invoked} <= {"QUERY /rooms", "FETCH /rooms/{room_id}", "DISCOVER /methods"}
    assert (await run(mini)).agent_id == PROBE_AGENT


async def test_server_that_accepts_any_field_is_not_changed(mini: Any) -> None:
    mini.strict = False
    report = await run(mini)
    assert "13.1-10a" in found(report, Verdict.FAIL)
    assert not {name for name, _ in mini.invoked} & {"RESERVE /rooms", "RENT /rooms"}


async def test_ids_are_unique_and_belong_to_an_item() -> None:
    ids = [check.id for check in CHECKS]
    assert len(set(ids)) == len(ids)
    assert all(any(name.startswith(item) for item in ITEMS) for name in ids)
    assert all(any(name.startswith(item) for name in ids) for item in ITEMS)


def _without(*names: str) -> Callable[[Any], None]:
    def change(mini: Any) -> None:
        for name in names:
            del mini.manifest[name]

    return change


def _manifest(**changes: Any) -> Callable[[Any], None]:
    return lambda mini: mini.manifest.update(changes)


def _policies(**changes: Any) -> Callable[[Any], None]:
    def change(mini: Any) -> None:
        mini.manifest["policies"].update(changes)
        mini.contract["policies"].update(changes)

    return change


def _rooms(**changes: Any) -> Callable[[Any], None]:
    return lambda mini: mini.endpoint("QUERY", "/rooms").update(changes)


def _semantic(**changes: Any) -> Callable[[Any], None]:
    return lambda mini: mini.endpoint("QUERY", "/rooms")["semantic"].update(changes)


def answering(when: Callable[[Any, Any], bool], **changes: Any) -> Callable[[Any], None]:
    """Answer with something else when the condition on request and right answer holds."""

    def change(mini: Any) -> None:
        mini.spoil = lambda ask, answer: replace(answer, **changes) if when(ask, answer) else None

    return change


def _flag(name: str, value: object) -> Callable[[Any], None]:
    return lambda mini: setattr(mini, name, value)


def _headers(when: Callable[[Any, Any], bool], **changes: str | None) -> Callable[[Any], None]:
    """Set or drop headers, named with _ for -."""

    def altered(answer: Any) -> dict[str, str]:
        new = {name.replace("_", "-"): value for name, value in changes.items()}
        kept = {name: value for name, value in answer.headers.items() if name not in new}
        return kept | {name: value for name, value in new.items() if value is not None}

    def change(mini: Any) -> None:
        mini.spoil = lambda ask, answer: replace(answer, headers=altered(answer)) if when(ask, answer) else None

    return change


def _status(number: int) -> Callable[[Any, Any], bool]:
    return lambda _ask, answer: answer.status == number


def is_manifest(ask: Any, _answer: Any) -> bool:
    return ask.method == "DISCOVER" and ask.path == "/" and "agent-id" not in ask.headers


def _is_inventory(ask: Any, answer: Any) -> bool:
    return ask.path == "/methods" and answer.status == 200


def _error(**fields: Any) -> dict[str, Any]:
    return {"error": fields}


SUPPORTED = "catalog_versions_supported"


def _proposing(when: Callable[[Any, Any], bool], **changes: Any) -> Callable[[Any], None]:
    """Answer a proposal with something else when a condition holds, on a server with synthesis."""

    def change(mini: Any) -> None:
        _policies(synthesis_enabled=True)(mini)
        answering(lambda ask, answer: ask.method == "PROPOSE" and when(ask, answer), **changes)(mini)

    return change


def _evaluated(number: int) -> Callable[[Any, Any], bool]:
    return lambda ask, answer: b"semantic" in ask.body and answer.status == number


def _always_a_manifest(mini: Any) -> None:
    answering(lambda ask, _: ask.method == "DISCOVER" and ask.path == "/", status=200, body=mini.manifest)(mini)


UNTIL = {"synthesis_id": "syn-1", "expires_at": "2027-01-01T00:00:00Z"}
FLAWS = {"13.1-07b": 459, "13.1-07c": 460, "13.1-07d": 400, "13.1-07e": 400}
WRONG: list[tuple[str, Callable[[Any], None]]] = [
    ("13.1-05i", _always_a_manifest),
    *((check, _proposing(_evaluated(number), status=262)) for check, number in FLAWS.items()),
    *((check, _proposing(_evaluated(number), status=463)) for check, number in FLAWS.items()),
    ("13.1-07f", _proposing(_status(262), body=_error(type="no"))),
    ("13.1-07g", _proposing(_status(463), body=_error(code="proposal-rejected", explanation="No."))),
    ("13.1-07g", _proposing(_status(463), body=_error(code="proposal-rejected", reason="ambiguous"))),
    ("13.1-07h", _proposing(_status(263), body=UNTIL)),
    ("13.1-07h", _proposing(_status(263), body={"endpoint": {"path": "/x"}, "synthesis_id": "syn-1"})),
    ("13.1-01a", _without("endpoints")),
    ("13.1-01a", _rooms(errors=None)),
    ("13.1-01b", _rooms(path="/rooms/que-ry")),
    ("13.1-01e", _rooms(errors=[{"code": "x"}])),
    ("13.1-01b", _rooms(method="query")),
    ("13.1-01b", _rooms(method="GET")),
    ("13.1-01b", _rooms(path="/rooms/")),
    ("13.1-01c", _rooms(input_schema={"type": "object", "properties": {}})),
    ("13.1-01c", _rooms(path="/rooms/of/{floor}")),
    ("13.1-01c", _rooms(output_schema={"type": "nothing known"})),
    ("13.1-01e", _rooms(handler={"type": "external_service"})),
    ("13.1-01f", lambda mini: mini.manifest["endpoints"].append(mini.endpoint("QUERY", "/rooms"))),
    ("13.1-02a", answering(_status(459), status=405)),
    ("13.1-02b", answering(_status(459), body=_error(catalog_version="9.1.0"))),
    ("13.1-02d", answering(lambda ask, _: ask.method == "discover", status=200)),
    ("13.1-02d", answering(lambda ask, _: ask.method == "Discover", status=404)),
    ("13.1-02d", answering(lambda ask, _: ask.method == "query", status=422)),
    ("13.1-02d", answering(lambda ask, _: ask.method == "ZZ", status=404)),
    ("13.1-02e", answering(lambda ask, _: ask.method == "SUSPEND", status=459)),
    ("13.1-02e", answering(lambda ask, _: ask.method == "NOTIFY", status=405)),
    ("13.1-02e", answering(lambda ask, _: ask.method == "CONFIRM", status=404, body=_error(code="endpoint-not-found"))),
    ("13.1-02e", answering(lambda ask, _: ask.method == "DELEGATE", status=501)),
    ("13.1-03a", answering(lambda ask, _: ask.path == "/query", status=404)),
    ("13.1-03b", answering(lambda ask, _: "-" in ask.path and "query" not in ask.path, status=404)),
    ("13.1-03c", answering(_status(460), body=_error(code="endpoint-violation"))),
    ("13.1-03d", answering(lambda ask, _: ask.path == "/things/", status=404)),
    ("13.1-03e", answering(lambda ask, _: "query" in ask.query, status=460)),
    ("13.1-03e", answering(lambda ask, _: bool(ask.query), status=404)),
    ("13.1-03f", answering(lambda ask, _: "#" in ask.path, status=404)),
    ("13.1-03f", answering(_status(400), body=_error(code="invalid-wire-format"))),
    ("13.1-04a", lambda mini: mini.manifest["policies"]["methods"].update(legacy=["FETCH"])),
    ("13.1-04a", lambda mini: mini.manifest["policies"]["methods"].update(redirects=[{"from_method": "BOOK"}])),
    ("13.1-04a", lambda mini: mini.manifest["policies"].update(methods="*")),
    ("13.1-04b", lambda mini: mini.manifest["policies"]["methods"].update(disallow=["FETCH"])),
    ("13.1-04d", answering(lambda ask, _: ask.method == "DELETE", status=200)),
    ("13.1-04b", answering(lambda ask, _: ask.method == "TRANSFER", status=404)),
    ("13.1-04c", lambda mini: mini.manifest["policies"]["methods"].update(allow=["BOOK"])),
    ("13.1-04d", answering(lambda ask, _: ask.method == "GET", status=200)),
    ("13.1-04d", lambda mini: mini.manifest["policies"]["methods"].update(legacy=["GET"])),
    ("13.1-04e", answering(lambda ask, _: ask.method == "BOOK", status=404)),
    ("13.1-05a", answering(is_manifest, status=404)),
    ("13.1-05a", answering(is_manifest, body=b"no JSON")),
    ("13.1-05b", _without("agtp_api_version")),
    ("13.1-05b", _manifest(document_version=2)),
    ("13.1-05c", _manifest(**{SUPPORTED: []})),
    ("13.1-05c", _manifest(**{SUPPORTED: ["9.1.0", "9.0.0"]})),
    ("13.1-05d", _headers(is_manifest, Content_Type="text/plain")),
    ("13.1-05e", _policies(synthesis_enabled="no")),
    ("13.1-05e", _manifest(server={"server_id": "mini.example"})),
    ("13.1-05e", _manifest(agent_disclosure="private", hosted_agents=[{"agent_id": AGENT}])),
    ("13.1-05e", _manifest(agent_disclosure="authenticated", hosted_agents=[{"agent_id": AGENT}])),
    ("13.1-05e", lambda mini: mini.manifest["server"].update(issued="yesterday")),
    ("13.1-05e", _policies(scope_required_for_invocation="yes")),
    ("13.1-05a", answering(is_manifest, status=400, body=_error(code="missing-agent-id"))),
    ("13.1-06a", _rooms(recipe="rooms-of-yesterday")),
    ("13.1-06a", _rooms(handler={"type": "registered_function", "function": "hotel.rooms"})),
    ("13.1-06a", _rooms(handler={"type": "wishful"})),
    ("13.1-07a", answering(_status(463), body=_error(code="proposal-rejected", reason="policy-refused"))),
    ("13.1-07a", answering(lambda ask, _: ask.method == "PROPOSE" and ask.body != b"[]", status=501)),
    ("13.1-08a", answering(lambda ask, _: ask.path == "/zz-no-such-thing", status=405)),
    ("13.1-08b", answering(lambda ask, answer: answer.status == 405 and ask.method == "SUMMARIZE", status=404)),
    ("13.1-08c", answering(_status(405), body=_error(allowed_methods_for_path=["QUERY"]))),
    ("13.1-08c", answering(_status(405), body=_error(allowed_methods_for_path=[], redirects_for_path={}))),
    (
        "13.1-08c",
        answering(_status(405), body=_error(allowed_methods_for_path=["QUERY", "RESERVE", "RENT", "SUMMARIZE"])),
    ),
    ("13.1-08d", answering(_status(455), status=200)),
    ("13.1-08e", answering(_status(262), body=_error(code="authorization-required"))),
    ("13.1-09a", _semantic(confidence=1.5)),
    ("13.1-09a", _semantic(capability="compute")),
    ("13.1-09a", _semantic(is_idempotent="yes")),
    ("13.1-09a", _semantic(outcome="")),
    ("13.1-09a", _semantic(impact="severe")),
    ("13.1-10a", _flag("strict", False)),
    ("13.1-10b", answering(lambda ask, _: ask.body == b"{}", status=500)),
    ("13.1-10c", _flag("merges_query", False)),
    ("13.1-10d", _flag("decodes_query", False)),
    ("13.1-10e", _flag("query_wins", True)),
    ("13.1-10f", answering(lambda ask, answer: answer.status == 200 and ask.path == "/rooms", body=["ok"])),
    ("13.1-11a", _headers(_status(422), AGTP_Catalog_Warning="obsolete")),
    ("13.1-11a", _headers(_status(422), AGTP_Catalog_Warning="deprecated; successor")),
    ("13.1-12a", _headers(_status(422), AGTP_Endpoint_Warning=None)),
    ("13.1-12a", _headers(_status(422), AGTP_Endpoint_Warning="deprecated")),
    ("13.1-13a", answering(_is_inventory, status=404)),
    ("13.1-13b", answering(_is_inventory, body={"methods": []})),
    ("13.1-13c", answering(_is_inventory, body=[])),
    ("13.1-13d", lambda mini: mini.manifest["endpoints"].pop()),
    ("core-02", _headers(_status(404), Server_ID=None)),
    ("core-02", _headers(_status(404), Server_ID="other.example")),
]


@pytest.mark.parametrize(("check", "change"), WRONG, ids=[f"{at}-{check}" for at, (check, _) in enumerate(WRONG)])
async def test_server_with_one_defect_fails_that_check(mini: Any, check: str, change: Callable[[Any], None]) -> None:
    change(mini)
    report = await run(mini)
    assert check in found(report, Verdict.FAIL)
    assert not report.conforms


async def test_every_check_of_a_must_can_fail() -> None:
    elsewhere = {"13.1-07i", "13.1-08f", "13.1-11b"}
    assert {check.id for check in CHECKS if check.level == "MUST"} == {name for name, _ in WRONG} | elsewhere


@rows(
    "check, change",
    ("13.1-01d", _rooms(output_schema={"type": "object"})),
    ("13.1-02c", answering(_status(459), body=_error(method="ZZYZXQ"))),
    ("13.1-05d", _headers(is_manifest, Content_Type="application/json")),
    ("13.1-05g", _headers(is_manifest, ETag=None)),
    ("13.1-04a", lambda mini: mini.manifest["policies"].pop("methods")),
    ("13.1-05f", _manifest(embedded_methods=["QUERY"])),
    ("13.1-05h", _manifest(manifest_signature=None)),
    ("13.1-05h", _manifest(manifest_signature="signed by Mini")),
    ("13.1-05h", _manifest(manifest_signature={"signatures": [{"signature": "c2ln"}]})),
    ("13.1-08d", answering(_status(455), status=262, body=_error(type="scope-required"))),
    ("13.1-10a", answering(_status(422), body=_error(code="input-validation-failed"))),
    ("core-01", _headers(lambda ask, _: "task-id" in ask.headers, Task_ID=None)),
)
async def test_violated_recommendation_is_a_warning(mini: Any, check: str, change: Callable[[Any], None]) -> None:
    change(mini)
    report = await run(mini)
    assert check in found(report, Verdict.WARN)
    assert report.conforms


async def test_with_synthesis_enabled_proposals_are_refused_approved_and_released(mini: Any) -> None:
    _policies(synthesis_enabled=True)(mini)
    report = await run(mini)
    assert report.verdict("13.1-07") is Verdict.PASS
    assert {f"13.1-07{letter}" for letter in "bcdefgh"} <= found(report, Verdict.PASS).keys()
    assert {"13.1-07a", "13.1-07i"} <= found(report, Verdict.NOT_APPLICABLE).keys()
    assert [json.loads(ask.body) for ask in mini.log if ask.method == "SUSPEND"][1:] == [{"synthesis_id": "syn-1"}]


async def test_pending_proposals_are_followed_a_few_times(mini: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_POLL_SECONDS", 0)
    _policies(synthesis_enabled=True)(mini)
    mini.pending = True
    report = await run(mini)
    assert "13.1-07i" in found(report, Verdict.PASS)
    assert {"13.1-07g", "13.1-07h"} <= found(report, Verdict.COULD_NOT_TELL).keys()
    answering(lambda ask, _: ask.path == "/proposals/p-1", status=404)(mini)
    assert "13.1-07i" in found(await run(mini), Verdict.FAIL)
    answering(lambda _, answer: answer.status == 261, body={})(mini)
    assert "13.1-07i" in found(await run(mini), Verdict.FAIL)


async def test_wildcards_without_consent_are_checked_where_accepted(mini: Any) -> None:
    _policies(wildcards_accepted=True)(mini)
    answering(lambda ask, _: ask.path == "/zz-no-such-thing", status=262, body=_error(type="wildcards-required"))(mini)
    assert "13.1-08f" not in found(await run(mini), Verdict.FAIL)
    answering(lambda ask, _: ask.path == "/zz-no-such-thing", status=200)(mini)
    assert "13.1-08f" in found(await run(mini), Verdict.FAIL)


async def test_deprecated_verbs_of_a_known_catalog_must_have_a_warning(mini: Any) -> None:
    _manifest(catalog_version=DEFAULT_CATALOG)(mini)
    deprecated = {verb.name: verb.warning for verb in load_bundled().verbs.values() if verb.warning}
    assert deprecated
    answering(lambda ask, _: ask.method in deprecated, status=404)(mini)
    assert "13.1-11b" in found(await run(mini), Verdict.WARN)
    mini.spoil = lambda ask, answer: (
        replace(answer, status=404, headers={**answer.headers, "AGTP-Catalog-Warning": deprecated[ask.method]})
        if ask.method in deprecated
        else None
    )
    assert "13.1-11b" in found(await run(mini), Verdict.PASS)


async def test_hosted_agent_is_used_if_other_ids_are_rejected(mini: Any) -> None:
    mini.known_agents = {AGENT}
    mini.manifest["hosted_agents"] = [{"agent_id": AGENT, "name": "Clerk"}]
    report = await run(mini)
    assert report.agent_id == AGENT
    assert report.conforms


async def test_agent_id_option_is_the_only_id_used_and_without_any_accepted_id_checks_are_skipped(mini: Any) -> None:
    mini.known_agents = {AGENT}
    report = await run(mini, agent_id=AGENT)
    assert report.conforms
    assert {ask.headers["agent-id"] for ask in mini.log if "agent-id" in ask.headers} == {AGENT}
    mini.known_agents = set()
    skipped = found(await run(mini), Verdict.COULD_NOT_TELL)
    assert "--agent-id" in skipped["13.1-02a"]


async def test_refused_anonymous_discovery_does_not_fail_the_manifest(mini: Any) -> None:
    answering(is_manifest, status=262, body=_error(type="anonymous-discovery-disabled"))(mini)
    assert "13.1-05a" in found(await run(mini), Verdict.COULD_NOT_TELL)


@rows(
    "manifest",
    {},
    {"endpoints": 7, "policies": [], "server": "x", "hosted_agents": {}},
    {"endpoints": [None, 3, {"method": 1, "path": []}, {"method": "QUERY", "path": "/a b\r\nX: y"}]},
    {"endpoints": [{"method": "QUERY", "path": "/x", "input_schema": {"properties": 3, "required": "x"}}]},
    {"endpoints": [{"method": "QUERY", "path": "/{a}/{a}", "deprecated": {"successor": 4}, "required_scopes": [1]}]},
    {"policies": {"methods": {"allow": 3, "disallow": {}, "legacy": 4, "redirects": [1, {}]}}},
)
async def test_manifest_of_any_shape_does_not_crash_the_run(mini: Any, manifest: dict[str, Any]) -> None:
    answering(is_manifest, body=manifest)(mini)
    report = await run(mini)
    assert not report.conforms
    assert len(report.results) == len(CHECKS)


async def test_deeply_nested_manifest_does_not_crash_the_run(mini: Any) -> None:
    schema = b'{"properties":{"a":' * 300 + b"{}" + b"}}" * 300
    body = b'{"endpoints":[{"method":"QUERY","path":"/x","input_schema":' + schema + b"}]}"
    answering(is_manifest, body=body)(mini)
    assert not (await run(mini)).conforms


async def test_missing_response_fails_only_that_check(mini: Any) -> None:
    def silent(ask: Any, _answer: Any) -> Any:
        if ask.method == "ZZYZXQ":
            raise ConnectionResetError
        return None

    mini.spoil = silent
    report = await run(mini)
    assert "no answer" in found(report, Verdict.FAIL)["13.1-02a"]
    assert "13.1-03a" not in found(report, Verdict.FAIL)


async def test_a_closed_port_is_unreachable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(UnreachableError, match="does not answer DISCOVER: connection refused"):
        await run_conformance(f"agtp://127.0.0.1:{port}")


async def test_peer_with_another_protocol_is_unreachable() -> None:
    async def talk(_incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        outgoing.write(b"SSH-2.0-x\r\n\r\n")
        outgoing.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(UnreachableError):
            await run_conformance(f"agtp://127.0.0.1:{port}")


async def test_silent_peer_times_out() -> None:
    done = asyncio.Event()

    async def talk(_incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        await done.wait()
        outgoing.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(UnreachableError, match="timeout"):
            await run_conformance(f"agtp://127.0.0.1:{port}", timeout=0.05)
        done.set()


async def test_a_uri_without_a_host_is_refused() -> None:
    with pytest.raises(ConfigError):
        await run_conformance("rooms.example")


async def test_tls_option_uses_tls(mini: Any, tmp_path: Any) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    async with mini.serve(tls=context) as uri:
        report = await run_conformance(uri, ca_file=tmp_path / "ca.pem")
    assert report.conforms


async def test_every_probe_body_is_refusable(mini: Any) -> None:
    """A request to an endpoint that changes something carries the probe field or lacks what is required."""
    await run(mini)
    for ask in mini.log:
        if ask.method in ("RESERVE", "RENT", "BOOK"):
            assert PROBE_FIELD.encode() in ask.body or ask.body == b"{}"
