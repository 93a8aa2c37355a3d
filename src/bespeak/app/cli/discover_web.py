"""Text and JSON output for services discovered on the web."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rich.text import Text

from bespeak.agent.discovery.agent_card import AgentCard
from bespeak.agent.discovery.capability import Capability
from bespeak.agent.discovery.discovered import Discovered
from bespeak.agent.discovery.producer_check import check_producer
from bespeak.agent.discovery.web_document import FACE, Fetched
from bespeak.app.cli.console import line
from bespeak.documents.ai.param_notation import write_param
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
    """Summarize the documents that were fetched and how the service is called."""
    yield line((discovered.name or str(discovered.address.origin), "bold"), f"  {discovered.description}")
    yield line(f"called by {_KINDS[discovered.kind]}")
    for step in discovered.steps:
        if step.what == FACE.what:
            continue  # a probe, not a document
        yield line((f"  {step.final_url}  {_outcome(step)}", "" if step.ok else _QUIET))
    if discovered.ai is not None:
        yield from _ai_lines(discovered)
    if discovered.card is not None:
        yield from _card_lines(discovered.card)
    if discovered.agtp is not None:
        yield line(f"also at {discovered.agtp}")
    for name, value in discovered.preferences.items():
        yield line((f"content usage: {name}: {value}", "yellow"))
    wrong = sum(finding.severity == "error" for step in discovered.steps for finding in check_producer(step))
    if wrong:
        yield line((f"its documents break {wrong} producer rules; run bespeak lint for details", _QUIET))


def capability_lines(discovered: Discovered) -> Iterator[Text]:
    """List each capability with its parameters."""
    widest = min(max((len(each.id) for each in discovered.capabilities), default=0), _WIDEST)
    for capability in discovered.capabilities:
        mark = "  [deprecated]" if capability.deprecated else ""
        yield line(
            (f"{capability.id:<{widest}}", _METHOD),
            f"  {capability.method} {capability.path}  {capability.description}{mark}",
        )
        for name, text in _params(capability):
            yield line((f"    {name}: {text}", _QUIET))


def skill_lines(card: AgentCard) -> Iterator[Text]:
    """List each skill of an A2A agent, and what is not known of it."""
    widest = min(max((len(each.id) for each in card.skills), default=0), _WIDEST)
    for skill in card.skills:
        notes = ["no schema", f"probably {skill.impact} ({skill.confidence:.1f})"]
        notes += [f"needs {scope}" for scope in skill.scopes]
        yield line((f"{skill.id:<{widest}}", _METHOD), f"  {skill.description}  [{', '.join(notes)}]")


def web_json(discovered: Discovered) -> dict[str, Any]:
    """Build the JSON form of the summary."""
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
                "id": each.id,
                "method": each.method,
                "path": each.path,
                "url": f"{each.origin}{each.target}",
                "description": each.description,
                "input_schema": each.input_schema,
                "returns": each.returns,
                "deprecated": each.deprecated,
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


def _card_lines(card: AgentCard) -> Iterator[Text]:
    for interface in card.interfaces:
        yield line(f"takes messages at {interface.url}  {interface.binding} {interface.version}".rstrip())
    if card.credentials:
        yield line(f"authentication {' or '.join(card.credentials)}")


def _card(card: AgentCard) -> dict[str, Any]:
    return {
        "version": card.version,
        "interfaces": [{"url": each.url, "binding": each.binding, "version": each.version} for each in card.interfaces],
        "credentials": list(card.credentials),
        "skills": [
            {
                "id": each.id,
                "description": each.description,
                "tags": list(each.tags),
                "examples": list(each.examples),
                "scopes": list(each.scopes),
                "input_schema": None,
                "guessed": {"impact": each.impact, "confidence": each.confidence},
            }
            for each in card.skills
        ],
    }


def _auth(discovered: Discovered) -> dict[str, str | None] | None:
    document = discovered.ai
    if document is None or document.auth_type is None:
        return None
    return {"type": document.auth_type, "header": document.auth_header, "docs": document.auth_docs}


def _params(capability: Capability) -> Iterator[tuple[str, str]]:
    """Describe each parameter, by the document's text or by its schema."""
    properties = capability.input_schema.get("properties")
    required = capability.input_schema.get("required", ())
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        yield (
            name,
            capability.params.get(name) or write_param(schema, required=name in required, root=capability.input_schema),
        )


def _outcome(step: Fetched) -> str:
    if step.fault is not None:
        return step.fault.message if not step.is_missing or step.source == "cache" else str(step.status)
    source = {"network": "", "cache": ", cached", "revalidated": ", unchanged"}[step.source]
    moved = f", after {len(step.hops)} redirects" if step.hops else ""
    return f"{step.status}, {len(step.body)} bytes{source}{moved}"


def _step(step: Fetched) -> dict[str, Any]:
    return {
        "what": step.what,
        "url": step.url,
        "final_url": step.final_url,
        "status": step.status,
        "media_type": step.media_type,
        "bytes": len(step.body),
        "source": step.source,
        "attempts": step.attempts,
        "seconds": round(step.seconds, 3),
        "redirects": [{"url": hop.url, "status": hop.status, "location": hop.location} for hop in step.hops],
        "fault": None if step.fault is None else {"kind": step.fault.kind, "message": step.fault.message},
    }


def _finding(finding: Diagnostic) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "message": finding.message,
        "location": str(finding.location) if finding.location else None,
        "pointer": finding.pointer,
        "help": finding.help,
    }
