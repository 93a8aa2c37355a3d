"""Reads a text or a Python file for the rules: detects the kind of document and its endpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bespeak.checks.lint.subject import AGIS_NAMES, Declared, Kind, Subject
from bespeak.contract.endpoint import Endpoint
from bespeak.documents.deployment.folder import AGENT_SUFFIX
from bespeak.documents.rules import UNKNOWN_DOCUMENT
from bespeak.documents.yaml_text import parse_notation
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.table import Findings, Table, as_list, as_mapping
from bespeak.text.source.python_tree import PythonSource, PythonTree
from bespeak.text.source.tree import Location, Span, Tree, plain


def read_subject(text: str, file: str, kind: Kind | None = None) -> Subject | Diagnostic:
    """Read the document in a text, or return why it is unreadable. The kind is detected if it is not given."""
    tree = parse_notation(text, file)
    if isinstance(tree, Diagnostic):
        return tree
    kind = kind or kind_of(tree)
    if kind is None:
        known = "An AGIS document has `agis`, an endpoint file [endpoint], a manifest `agtp_version`"
        advice = f"{known}, an agent document `agent_id`."
        return UNKNOWN_DOCUMENT.found("the kind of document is not known", Location(file), advice=advice)
    root = Table(as_mapping(tree.data), "", Findings(tree.locate))
    members = _READERS[kind](root, tree)  # first: it adds to the findings
    return Subject(kind=kind, tree=tree, **{"found": tuple(root.findings.found), **members})


def kind_of(tree: Tree) -> Kind | None:
    """Detect the kind of a document by its file name and its content."""
    data: object = tree.data
    if tree.file.endswith(".agis"):
        return "agis"
    if not isinstance(data, dict):
        return None
    if tree.notation == "toml":
        return _toml_kind(data, Path(tree.file).name)
    if "aiendpoint" in data:
        return "ai"
    if "agis" in data or ("endpoints" in data and "vocabulary" in data):
        return "agis"
    if tree.file.endswith(AGENT_SUFFIX) or ("agent_id" in data and "endpoints" not in data):
        return "agent"
    if "agtp_version" in data or "agtp_api_version" in data:
        return "manifest"
    return None


def _toml_kind(data: Mapping[str, Any], name: str) -> Kind | None:
    if "endpoint" in data:
        return "endpoint"
    if "recipe" in data:
        return "recipes"
    if "server" in data or "policies" in data or name in ("bespeak.toml", "agtp-server.toml"):
        return "server"
    return None


# Most runs have few kinds of documents; importing readers on demand speeds up the start.


def _agis(_: Table, tree: Tree) -> dict[str, Any]:
    from bespeak.documents.agis.document import read_agis  # noqa: PLC0415 - as above

    document, found = read_agis(tree)
    entries = document.endpoints if document else ()
    endpoints = tuple(Declared(entry.endpoint, entry.at, entry.declared, AGIS_NAMES) for entry in entries)
    return {"endpoints": endpoints, "found": tuple(found), "agis": document}


def _endpoint(root: Table, tree: Tree) -> dict[str, Any]:
    from bespeak.documents.deployment.endpoint_toml import declared_endpoint  # noqa: PLC0415 - as above

    endpoint, written = declared_endpoint(root, tree.file), as_mapping(tree.data.get("endpoint"))
    return {"endpoints": (Declared(endpoint, "/endpoint", written),) if endpoint else ()}


def _server(root: Table, tree: Tree) -> dict[str, Any]:
    from bespeak.documents.deployment.server_toml import server_of  # noqa: PLC0415 - as above

    return {"policies": server_of(root, Path(tree.file).parent)[0].policies}


def _recipes(root: Table, tree: Tree) -> dict[str, Any]:
    from bespeak.documents.deployment.endpoint_toml import recipes_of  # noqa: PLC0415 - as above

    return {"recipes": recipes_of(root, tree.file)[0]}


def _manifest(root: Table, tree: Tree) -> dict[str, Any]:
    from bespeak.documents.manifest_json import read_manifest  # noqa: PLC0415 - as above

    document = read_manifest(root)
    return {"endpoints": tuple(_listed(document.endpoints, tree.data.get("endpoints"))), "policies": document.policies}


def _ai(root: Table, _: Tree) -> dict[str, Any]:
    from bespeak.documents.ai.document import read_ai  # noqa: PLC0415 - as above

    return {"ai": read_ai(root)}


def _agent(root: Table, _: Tree) -> dict[str, Any]:
    from bespeak.state.identity.agent_json import agent_of  # noqa: PLC0415 - as above

    agent_of(root)
    return {}


_READERS: Final = {
    "agis": _agis,
    "endpoint": _endpoint,
    "server": _server,
    "recipes": _recipes,
    "manifest": _manifest,
    "ai": _ai,
    "agent": _agent,
}


def _listed(endpoints: tuple[Endpoint, ...], written: object) -> list[Declared]:
    """Pair the endpoints of a manifest with their entries; the reader skips entries without method and path."""
    entries = ((f"/endpoints/{index}", as_mapping(entry)) for index, entry in enumerate(as_list(written)))
    usable = ((at, entry) for at, entry in entries if entry.get("method") and entry.get("path"))
    return [Declared(endpoint, at, entry) for endpoint, (at, entry) in zip(endpoints, usable, strict=False)]


def python_subject(text: str, file: str, endpoints: Sequence[Endpoint]) -> Subject:
    """Place endpoints in the text that declared them."""
    text, _ = plain(text)
    source = PythonSource(text)
    spans: dict[str, Span] = {}
    written: list[dict[str, Any]] = []
    declared: list[Declared] = []
    for number, endpoint in enumerate(endpoints):
        at = f"/endpoints/{number}"
        line = endpoint.location.line if endpoint.location else 1
        spans |= {f"{at}{inside}": span for inside, span in source.spans(line, endpoint.method, endpoint.path).items()}
        written.append(_written(endpoint))
        declared.append(Declared(endpoint, at, written[-1]))
    tree = PythonTree(text, file, {"endpoints": written}, spans)
    return Subject(kind="endpoint", tree=tree, endpoints=tuple(declared))


def _written(endpoint: Endpoint) -> dict[str, Any]:
    """Return what an author may have written; texts in it are not comments."""
    semantic = endpoint.semantic
    block: dict[str, Any] = {name: getattr(semantic, name) for name in ("intent", "outcome", "mcp_tool_name")}
    block |= {name: dict(getattr(semantic, name)) for name in ("parameter_hints", "state_transition")}
    block |= {"concepts": list(semantic.concepts), "confidence_guidance": semantic.confidence_guidance}
    return {
        "method": endpoint.method,
        "path": endpoint.path,
        "description": endpoint.description,
        "semantic": {name: value for name, value in block.items() if value},
        "input_schema": endpoint.input_schema,
        "output_schema": endpoint.output_schema,
    }
