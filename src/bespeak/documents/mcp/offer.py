"""Prompts and resources of an MCP server as endpoints that only read: MCP clients get them as what they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, count
from typing import Any, Final

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.contract.grammar.path_syntax import leaking_segment
from bespeak.contract.handler import TOOL_ERROR, McpTool
from bespeak.contract.mcp_server import McpServer
from bespeak.contract.semantic import Semantic
from bespeak.documents.adoption.candidate import Candidate
from bespeak.documents.adoption.error_names import shape_errors
from bespeak.documents.adoption.facade import Facade, Variable
from bespeak.documents.adoption.guess import Guess, LeftOut
from bespeak.documents.adoption.judgement import choose_scopes
from bespeak.documents.adoption.naming import hyphenated
from bespeak.documents.adoption.plain_text import PlainText, plain_text
from bespeak.documents.mcp.reviewed import Reviewed
from bespeak.documents.mcp.tool_list import Offer
from bespeak.text.language.segment import judge_segment

MOST_ARGUMENTS: Final = 40
"""Arguments of a prompt."""
LONGEST_URI: Final = 2_000
_METHOD: Final = "FETCH"
_TIMEOUT: Final = 60.0
_LONGEST_TEXT: Final = 400
_LONGEST_SLUG: Final = 48
_TEXT: Final = {"type": "string", "maxLength": 20_000}
_PROMPTED: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "description": {"type": "string"},
        "messages": {"type": "array", "items": {"type": "object", "required": ["role", "content"]}},
    },
    "required": ["messages"],
}
_READ: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"contents": {"type": "array", "items": {"type": "object", "required": ["uri"]}}},
    "required": ["contents"],
}


def make_offers(
    offers: tuple[Offer, ...],
    server: McpServer,
    title: str,
    catalog: Catalog,
    reviewed: Mapping[str, Reviewed],
) -> tuple[list[Facade], list[LeftOut]]:
    """Make the endpoints of prompts and resources; `reviewed` are those of an earlier import by `kind key`."""
    facades: list[Facade] = []
    left_out: list[LeftOut] = []
    taken = {one.endpoint.path for one in reviewed.values()}
    for offer in offers:
        fault = _fault(offer)
        if fault:
            left_out.append(LeftOut(f"the {offer.kind} {offer.name[:80]}", fault))
            continue
        plain = _path(offer, catalog)
        path = next(one for one in chain((plain,), (f"{plain}-{at}" for at in count(2))) if one not in taken)
        taken.add(path)
        made = _facade(offer, path, server, title)
        known = reviewed.get(f"{offer.kind} {offer.key}")
        facades.append(made if known is None else known.renew(made))
    return facades, left_out


def _fault(offer: Offer) -> str:
    if not offer.key or not offer.key.isprintable() or len(offer.key) > LONGEST_URI:
        return f"its name must be printable text of at most {LONGEST_URI} characters"
    names = [name for name, _, _ in offer.arguments]
    if len(names) > MOST_ARGUMENTS or len(set(names)) != len(names) or not all(name.isprintable() for name in names):
        return f"it must have at most {MOST_ARGUMENTS} arguments with different names"
    return ""


def _path(offer: Offer, catalog: Catalog) -> str:
    slug = hyphenated(offer.name)[:_LONGEST_SLUG].strip("-") or offer.kind
    # AGTP-API 5.1: no segment is a method, or says an action. The prompt keeps its name for clients of MCP.
    verdict = judge_segment(slug, _METHOD)
    is_fine = leaking_segment(f"/{slug}", catalog.names) is None and (verdict is None or verdict.tier != "error")
    return f"/{offer.kind}s/{slug if is_fine else 'entry'}"


def _facade(offer: Offer, path: str, server: McpServer, title: str) -> Facade:
    candidate = Candidate(
        name=offer.name, full_name=offer.key, name_kind=f"the {offer.kind}", description=offer.description
    )
    variables = tuple(Variable(name, "a variable that the MCP server needs") for name in server.variables)
    has_credential = bool(variables or server.token_file)
    scopes, scope_guess = choose_scopes(title, "informational", has_credential=has_credential)
    named = plain_text(offer.title or offer.name, 80)
    said = plain_text(offer.description, _LONGEST_TEXT)
    shown = named.text or offer.kind
    described = {name: plain_text(text, _LONGEST_TEXT) for name, text, _ in offer.arguments}
    called = replace(server, prompt=offer.name) if offer.kind == "prompt" else replace(server, resource=offer.uri)
    endpoint = Endpoint(
        method=_METHOD,
        path=path,
        description=said.text or f"Returns the {offer.kind} {shown}.",
        semantic=Semantic(
            intent=f"Fetch the {offer.kind} {shown}.",
            actor="agent",
            outcome=f"The {'messages' if offer.kind == 'prompt' else 'contents'} are returned.",
            capability="retrieval",
            confidence=0.8,
            impact="informational",
            is_idempotent=True,
        ),
        input_schema={
            "type": "object",
            "properties": {
                name: {**_TEXT, **({"description": text.text} if text.text else {})} for name, text in described.items()
            },
            "required": [name for name, _, required in offer.arguments if required],
            "additionalProperties": False,
        },
        output_schema=dict(_PROMPTED if offer.kind == "prompt" else _READ),
        errors=(
            DeclaredError(TOOL_ERROR, f"The server refuses the {offer.kind}; the message says why."),
            *shape_errors(candidate, has_credential=has_credential).errors,
        ),
        handler=McpTool(mcp=called, timeout_seconds=_TIMEOUT),
        namespace=f"{offer.kind}s",
        required_scopes=scopes,
        reviewed=False,
    )
    lost = (*_losses("/description", said), *_losses("/semantic/intent", named))
    unsafe = (guess for text in described.values() for guess in _losses("/input_schema", text))
    return Facade(candidate, endpoint, (*scope_guess, *lost, *unsafe), variables)


def _losses(at: str, text: PlainText) -> Iterator[Guess]:
    if text.fault:
        why = "the server's text is not fit for a contract"
        yield Guess(at=at, text=f"without {text.fault}", why=why, confidence=0.5, risk="high")
