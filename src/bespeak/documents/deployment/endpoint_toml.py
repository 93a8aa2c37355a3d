"""One endpoint per TOML file (AGTP-API A.1). Only the shape is read here; `lint` checks the drafts' rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.semantic import Semantic
from bespeak.documents.deployment.endpoint_shape import (
    read_cost_block,
    read_deprecation,
    read_errors,
    read_input_schema,
    read_output_schema,
)
from bespeak.documents.deployment.handler_shape import read_handler
from bespeak.documents.rules import LOWERCASE_METHOD
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.fix import Fix
from bespeak.text.reading.findings import Findings
from bespeak.text.reading.rules import UNKNOWN_KEY
from bespeak.text.reading.settings import read_settings
from bespeak.text.reading.table import Table
from bespeak.text.source.change import Change
from bespeak.text.source.span import Location

_Part = TypeVar("_Part")


def endpoint_of(root: Table, file: str) -> tuple[Endpoint | None, list[Diagnostic]]:
    """Read the endpoint in the root table of a document; return None if any finding is an error."""
    endpoint = declared_endpoint(root, file)
    return None if root.findings.failed else endpoint, root.findings.found


def declared_endpoint(root: Table, file: str) -> Endpoint | None:
    """Read the endpoint despite errors, so that a linter can check the readable parts."""
    block = root.table("endpoint")
    if block is None:
        if not root.has("endpoint"):
            root.missing("endpoint", "An endpoint file starts with [endpoint].")
        return None
    endpoint = _read(block, file)
    block.finish()
    root.finish()
    _explain_unread_scopes(root.findings)
    return endpoint


def _read(block: Table, file: str) -> Endpoint | None:
    """Read every part before giving up, so that all findings are reported at once."""
    semantic = _part(block, "semantic", _read_semantic, "Every endpoint has [endpoint.semantic] (AGTP-API 7.1).")
    handler = _part(block, "handler", read_handler, "Every endpoint has [endpoint.handler] (AGTP-API 12).")
    method, path = _read_method(block), block.need_text("path")
    description = block.need_text("description", "One sentence for people who read the manifest (AGTP-API 6.2).")
    input_schema, output_schema = read_input_schema(block), read_output_schema(block)
    if not block.has("errors"):
        block.missing("errors", "Write `errors = []` for an endpoint that has none (AGTP-API 6.2).")
    errors, scopes, namespace = read_errors(block), block.texts("required_scopes"), block.text("namespace")
    deprecated, cost = read_deprecation(block.table("deprecated")), read_cost_block(block.table("cost"))
    confirm, since = block.boolean("confirm"), block.text("since")
    internal = block.boolean("internal") or False
    if semantic is None or handler is None:
        return None
    return Endpoint(
        method=method,
        path=path,
        description=description,
        semantic=semantic,
        input_schema=input_schema,
        output_schema=output_schema,
        errors=errors,
        handler=handler,
        namespace=namespace,
        required_scopes=scopes,
        deprecated=deprecated,
        cost=cost,
        confirm=confirm,
        internal=internal,
        since=since,
        location=Location(file),
    )


def _read_semantic(block: Table) -> Semantic:
    return read_settings(Semantic, block)


def _explain_unread_scopes(findings: Findings) -> None:
    """Say of each unread key about scopes where scopes are written."""
    advice = "Write required_scopes, directly under [endpoint]; this key has no effect, so no scope is required."
    findings.found[:] = [
        replace(finding, help=advice, fix=None)
        if finding.rule == UNKNOWN_KEY.id and "scope" in finding.pointer.rpartition("/")[2].lower()
        else finding
        for finding in findings.found
    ]


def _part(block: Table, key: str, read: Callable[[Table], _Part], advice: str) -> _Part | None:
    inner = block.table(key)
    if inner is not None:
        return read(inner)
    if not block.has(key):
        block.missing(key, advice)
    return None


def _read_method(block: Table) -> str:
    method = block.need_text("method")
    capitals = method.upper()
    if method != capitals:
        message = f"`method` is {brief(method)}; methods are written in capitals (AGTP-API 3.2)"
        shown = brief(capitals)[1:-1]
        fix = Fix(f"Write {shown}", (Change("replace", block.pointer("method"), capitals),))
        block.findings.warning(LOWERCASE_METHOD, message, block.pointer("method"), f"It is read as {shown}.", fix)
    return capitals
