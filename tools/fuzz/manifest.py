"""Invariant: no bytes make the readers of manifests and agents raise, and every JSON object is read as a manifest.

Run `python tools/fuzz/manifest.py --seconds 60`. It prints how many documents it tried, or the one that broke the
invariant.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from campaign import campaign

from bespeak.contract.agent import UNREADABLE
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.manifest_json import parse_manifest
from bespeak.documents.projections.agtp_manifest import project_manifest
from bespeak.state.identity.agent_json import parse_agent
from bespeak.text.diagnostics.diagnostic import has_errors
from bespeak.text.diagnostics.reporters.text import full

_FOLDER = Path(__file__).parents[2] / "tests" / "documents" / "reference_deployment"
_VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    "",
    "x",
    "*",
    "\ud800",
    "\x00",
    [],
    [[]],
    {},
    {"a": {}},
    [None],
    "é" * 300,
]
_BYTES = [b"", b"{", b"}", b"[" * 2000, b'"', b"\\u", b"\xff", b"\x00", b"1e999", b"NaN", b",", b"null", b"9" * 5000]


def documents() -> list[Any]:
    """Return the documents to mutate: a manifest from this server, and agents in both forms."""
    service = read_deployment(_FOLDER)[0].service()
    manifest = project_manifest(service, service.endpoints, service.policies, "1.1.0", updated="2026-01-01T00:00:00Z")
    return [manifest, *(dict(agent.document) for agent in service.agents)]


def mutate(value: Any, source: random.Random) -> Any:
    """Mutate a document: replace, remove or move one value inside it."""
    if source.random() < 0.15 or not isinstance(value, (dict, list)) or not value:
        return source.choice(_VALUES)
    if isinstance(value, list):
        at = source.randrange(len(value))
        return [*value[:at], mutate(value[at], source), *value[at + 1 :]]
    key = source.choice(list(value))
    changed = {other: item for other, item in value.items() if other != key}
    if source.random() < 0.8:
        changed[key if source.random() < 0.9 else source.choice(["method", "path", "", "name"])] = mutate(
            value[key], source
        )
    return changed


def damage(data: bytes, source: random.Random) -> bytes:
    """Mutate bytes."""
    at = source.randrange(len(data) + 1)
    return data[:at] + source.choice(_BYTES) + data[at + source.randrange(4) :]


def try_bytes(data: bytes) -> None:
    """Check one document."""
    manifest, findings = parse_manifest(data)
    assert (manifest is None) == has_errors(findings)
    if manifest is not None:
        assert all(endpoint.method and endpoint.path and endpoint.semantic.impact for endpoint in manifest.endpoints)
    agent, more = parse_agent(data.decode(errors="surrogateescape"), "fuzz.json")
    # Of a broken document at most the id is kept, under a status by which it is refused.
    assert (agent is None or agent.status == UNREADABLE) == has_errors(more)
    full([*findings, *more], lambda _: None)


_DOCUMENTS = documents()


def trial(source: random.Random, noted: list[object]) -> None:
    """Try a mutated manifest, sometimes with damaged bytes."""
    document = source.choice(_DOCUMENTS)
    for _ in range(source.randrange(1, 5)):
        document = mutate(document, source)
    data = json.dumps(document).encode()
    if source.random() < 0.3:
        data = damage(data, source)
    noted.append(data)
    try_bytes(data)


if __name__ == "__main__":
    sys.exit(campaign(__doc__, trial))
