"""Text and JSON output for services discovered on the web."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rich.text import Text

from bespeak.agent.discovery.lookup import AgentCard, Discovered
from bespeak.agent.discovery.readers import check_producer
from bespeak.agent.discovery.web_document import FACE, Fetched
from bespeak.documents.ai.param_notation import write_param
from bespeak.terminal.console import line, members
from bespeak.text.diagnostics.diagnostic import Diagnostic

_METHOD: Final = "bold cyan"
_QUIET: Final = "dim"
_WIDEST: Final = 40
_KINDS: Final = {
    "agtp": "AGTP over HTTP",
    "ai": "ai-discovery",
    "agis": "AGIS over HTTP",
    "openapi": "OpenAPI",
    "a2a": "messages of A2A, which bespeak does not send",
    "none": "nothing",
}


def web_lines(discovered: Discovered) -> Iterator[Text]:
    yield line((discovered.name or str(discovered.address.origin), "bold"), f"  {discovered.description}")
    yield line(f"called by {_KINDS[discovered.kind]}")
    for step in discovered.steps:
        if step.what != FACE.what:  # a probe, not a document
            yield line((f"  {step.final_url}  {_outcome(step)}", "" if step.ok else _QUIET))
    if discovered.ai is not None:
        yield from _ai_lines(discovered)
    if discovered.card is not None:
        for interface in discovered.card.interfaces:
            yield line(f"takes messages at {interface.url}  {interface.binding} {interface.version}".rstrip())
        if discovered.card.credentials:
            yield line(f"authentication {' or '.join(discovered.card.credentials)}")
    if discovered.agtp is not None:
        yield line(f"also at {discovered.agtp}")
    yield from (line((f"content usage: {name}: {value}", "yellow")) for name, value in discovered.preferences.items())
    wrong = sum(finding.severity == "error" for step in discovered.steps for finding in check_producer(step))
    if wrong:
        yield line((f"its documents break {wrong} producer rules; run bespeak lint for details", _QUIET))


def capability_lines(discovered: Discovered) -> Iterator[Text]:
    widest = min(max((len(each.id) for each in discovered.capabilities), default=0), _WIDEST)
    for each in discovered.capabilities:
        mark = "  [deprecated]" if each.deprecated else ""
        yield line((f"{each.id:<{widest}}", _METHOD), f"  {each.method} {each.path}  {each.description}{mark}")
        taken = each.input_schema
        properties, required = taken.get("properties"), taken.get("required", ())
        for name, schema in properties.items() if isinstance(properties, dict) else ():
            text = each.params.get(name) or write_param(schema, required=name in required, root=taken)
            yield line((f"    {name}: {text}", _QUIET))


def skill_lines(card: AgentCard) -> Iterator[Text]:
    """List each skill of an A2A agent, and what is not known of it."""
    widest = min(max((len(each.id) for each in card.skills), default=0), _WIDEST)
    for skill in card.skills:
        notes = ["no schema", f"probably {skill.impact} ({skill.confidence:.1f})"]
        notes += [f"needs {scope}" for scope in skill.scopes]
        yield line((f"{skill.id:<{widest}}", _METHOD), f"  {skill.description}  [{', '.join(notes)}]")


def web_json(discovered: Discovered) -> dict[str, Any]:
    return {
        "kind": discovered.kind,
        "url": str(discovered.address),
        "name": discovered.name,
        "description": discovered.description,
        "agtp": discovered.agtp,
        "auth": _auth(discovered),
        "preferences": dict(discovered.preferences),
        "capabilities": [
            {
                **members(each, "id", "method", "path"),
                "url": f"{each.origin}{each.target}",
                **members(each, "description", "input_schema", "returns", "deprecated"),
            }
            for each in discovered.capabilities
        ],
        "agent": None if discovered.card is None else _card(discovered.card),
        "manifest": discovered.manifest.raw if discovered.manifest else None,
        "documents": [_step(step) for step in discovered.steps],
        "findings": [_finding(finding) for finding in discovered.findings],
        "producer_findings": [_finding(finding) for step in discovered.steps for finding in check_producer(step)],
    }


def _ai_lines(discovered: Discovered) -> Iterator[Text]:
    document = discovered.ai
    assert document is not None
    auth = _auth(discovered)
    if auth is None:
        yield line("authentication not specified; it may be required")
    else:
        header = f" in {auth['header']}" if auth["header"] else ""
        docs = f", see {auth['docs']}" if auth["docs"] else ""
        yield line(f"authentication {auth['type']}{header}{docs}")
    if document.requests_per_minute is not None:
        yield line(f"{document.requests_per_minute} requests per minute")


def _card(card: AgentCard) -> dict[str, Any]:
    return {
        "version": card.version,
        "interfaces": [members(each, "url", "binding", "version") for each in card.interfaces],
        "credentials": list(card.credentials),
        "skills": [
            {
                **members(each, "id", "description", "tags", "examples", "scopes"),
                "input_schema": None,
                "guessed": members(each, "impact", "confidence"),
            }
            for each in card.skills
        ],
    }


def _auth(discovered: Discovered) -> dict[str, str | None] | None:
    document = discovered.ai
    if document is None or document.auth_type is None:
        return None
    return {"type": document.auth_type, "header": document.auth_header, "docs": document.auth_docs}


def _outcome(step: Fetched) -> str:
    if step.fault is not None:
        return step.fault.message if not step.is_missing or step.source == "cache" else str(step.status)
    source = {"network": "", "cache": ", cached", "revalidated": ", unchanged"}[step.source]
    moved = f", after {len(step.hops)} redirects" if step.hops else ""
    return f"{step.status}, {len(step.body)} bytes{source}{moved}"


def _step(step: Fetched) -> dict[str, Any]:
    return {
        **members(step, "what", "url", "final_url", "status", "media_type"),
        "bytes": len(step.body),
        **members(step, "source", "attempts"),
        "seconds": round(step.seconds, 3),
        "redirects": [members(hop, "url", "status", "location") for hop in step.hops],
        "fault": None if step.fault is None else members(step.fault, "kind", "message"),
    }


def _finding(finding: Diagnostic) -> dict[str, Any]:
    location = str(finding.location) if finding.location else None
    told = members(finding, "rule", "severity", "message")
    return {**told, "location": location, **members(finding, "pointer", "help")}
