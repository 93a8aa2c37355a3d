"""Agent identity documents (core 7.3): the form of the draft, and the form of the reference implementation."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bespeak.contract.agent import Agent
from bespeak.diagnostics.brief import brief
from bespeak.diagnostics.diagnostic import Diagnostic
from bespeak.documents.json_text import json_table
from bespeak.documents.table import Table
from bespeak.documents.text_file import read_text
from bespeak.exchange.principal import is_canonical_id
from bespeak.exchange.scope import is_scope_token

_DOCUMENT_TYPE: Final = "agtp-identity"
_REQUIRED: Final = (
    "agtp_version",
    "document_version",
    "description",
    "principal",
    "principal_id",
    "issuer",
    "issued_at",
    "updated_at",
    "status",
    "methods",
    "capabilities",
    "scopes_accepted",
    "trust_score",
)
"""Core 7.3: what a document of the draft's form carries beside its type, its id and its name."""

_STATUSES: Final = ("active", "suspended", "retired", "deprecated", "pending")


def read_agent(path: Path) -> tuple[Agent | None, list[Diagnostic]]:
    """The agent in a file, and everything that is wrong with its document."""
    text = read_text(path)
    return (None, [text]) if isinstance(text, Diagnostic) else parse_agent(text, str(path))


def parse_agent(text: str, file: str) -> tuple[Agent | None, list[Diagnostic]]:
    """The agent a document describes. None when any finding is an error. Other keys are the issuer's business."""
    root = json_table(text.encode(errors="surrogatepass"), file)
    if isinstance(root, Diagnostic):
        return None, [root]
    agent_id = root.need_text("agent_id")
    if agent_id and not is_canonical_id(agent_id):
        message = f"`agent_id` is {brief(agent_id)}, not 64 lower-case hexadecimal digits (core 7.1)"
        root.findings.error("D104", message, "/agent_id")
    requires = root.table("requires")
    agent = Agent(
        agent_id=agent_id,
        name=root.need_text("name"),
        description=root.text("description") or "",
        status=_read_status(root),
        scopes=_read_scopes(root, requires),
        methods=requires.texts("methods") if requires and requires.has("methods") else root.texts("methods"),
        wildcards=bool(requires and requires.boolean("wildcards")) or root.boolean("wildcards") or False,
        document=root.data,
    )
    if root.value("document_type") == _DOCUMENT_TYPE:
        lacking = [key for key in _REQUIRED if not root.has(key)]
        if lacking:
            root.findings.warning("D115", f"the identity document lacks {', '.join(lacking)} (core 7.3)")
    return None if root.findings.failed else agent, root.findings.found


def _read_status(root: Table) -> str:
    """The lifecycle state in lower case. Revoked and retired are the same state (core 7.4)."""
    status = (root.text("status") or "active").lower()
    status = "retired" if status == "revoked" else status
    if status not in _STATUSES:
        message = f"`status` is {brief(status)}, which is none of {', '.join(_STATUSES)}"
        root.findings.error("D106", message, "/status")
    return status


def _read_scopes(root: Table, requires: Table | None) -> tuple[str, ...]:
    """The granted scopes: `requires.scopes` where there are any, else `scopes_accepted`."""
    if requires is not None and requires.has("scopes"):
        holder, key = requires, "scopes"
    else:
        holder, key = root, "scopes_accepted"
    granted: list[str] = []
    for token in holder.texts(key):
        if is_scope_token(token):
            granted.append(token)
        else:
            message = f"`{key}` holds {brief(token)}, which is no scope token and grants nothing"
            holder.findings.warning("D104", message, holder.pointer(key), "Write domain:action in lower case.")
    return tuple(granted)
