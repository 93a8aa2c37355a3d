"""One endpoint per TOML file (AGTP-API A.1). Only the shape is read here; `lint` checks the drafts' rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import HandlerBinding
from bespeak.documents.deployment.endpoint_shape import READERS
from bespeak.documents.deployment.handler_shape import read_handler
from bespeak.documents.rules import LOWERCASE_METHOD
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.fix import Fix
from bespeak.text.reading.findings import Findings
from bespeak.text.reading.rules import UNKNOWN_KEY
from bespeak.text.reading.settings import read_values
from bespeak.text.reading.table import Table
from bespeak.text.source.change import Change
from bespeak.text.source.span import Location


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
    values = read_values(Endpoint, block, readers=_READERS)
    if values["semantic"] is None or values["handler"] is None:
        return None
    return Endpoint(**values, location=Location(file))


def _explain_unread_scopes(findings: Findings) -> None:
    """Say of each unread key about scopes where scopes are written."""
    advice = "Write required_scopes, directly under [endpoint]; this key has no effect, so no scope is required."
    findings.found[:] = [
        replace(finding, help=advice, fix=None)
        if finding.rule == UNKNOWN_KEY.id and "scope" in finding.pointer.rpartition("/")[2].lower()
        else finding
        for finding in findings.found
    ]


def _read_method(block: Table) -> str:
    method = block.need_text("method")
    capitals = method.upper()
    if method != capitals:
        message = f"`method` is {brief(method)}; methods are written in capitals (AGTP-API 3.2)"
        shown = brief(capitals)[1:-1]
        fix = Fix(f"Write {shown}", (Change("replace", block.pointer("method"), capitals),))
        block.findings.warning(LOWERCASE_METHOD, message, block.pointer("method"), f"It is read as {shown}.", fix)
    return capitals


def _read_handler(block: Table) -> HandlerBinding | None:
    inner = block.table("handler")
    return read_handler(inner) if inner else None


_READERS: Final = {**READERS, "method": _read_method, "handler": _read_handler}
