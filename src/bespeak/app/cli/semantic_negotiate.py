"""`bespeak semantic negotiate`: what would come of a profile, and why."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from bespeak.agent.client.errors import Reply
from bespeak.app.cli.call import print_refusal
from bespeak.app.cli.service import is_address, open_service, service_options
from bespeak.extensions.semantics.alignment.notation import read_alignment
from bespeak.extensions.semantics.alignment.policy import Alignment
from bespeak.extensions.semantics.envelope.writer import find_payload
from bespeak.extensions.semantics.knowledge import Snapshot
from bespeak.extensions.semantics.layer import SemanticLayer
from bespeak.extensions.semantics.ontology.reader import load_ontology, read_bytes
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.extensions.semantics.terms import Ontology
from bespeak.state.store.settings import open_store
from bespeak.terminal import PATH, CommandFailedError
from bespeak.terminal.console import line, print_findings, print_result
from bespeak.terminal.deployment import store_place
from bespeak.terminal.target_store import Result, is_there, usable
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.json_data import json_value

_ONTOLOGIES: Final = frozenset({".ttl", ".rdf", ".owl", ".jsonld", ".nq", ".nt"})


@click.command()
@click.argument("target")
@click.argument("file", type=PATH)
@click.option("--endpoint", metavar="'METHOD /PATH'", help="Endpoint of the service that the profile is meant for.")
@click.option("--ontology", "others", multiple=True, type=PATH, help="Further ontology, beside one that is TARGET.")
@click.option("--alignment", "alignments", multiple=True, type=PATH, help="Alignment, beside an ontology.")
@service_options
@click.pass_context
def negotiate(
    context: click.Context,
    /,
    *,
    target: str,
    file: Path,
    endpoint: str | None,
    others: tuple[Path, ...],
    alignments: tuple[Path, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Negotiate the semantic profile in FILE with TARGET: direct, mapped or none, and why.

    TARGET is a service, by its address or its files, or an ontology in a file. A service is asked with DESCRIBE;
    one that is loaded uses the registry of its store. The exit code is 0 if there is a match, else 1.

    \b
    Examples:
    bespeak semantic negotiate agtp://127.0.0.1 profile.json --endpoint 'SUMMARIZE /note'
    bespeak semantic negotiate clinical.ttl profile.json --ontology radiology.ttl --alignment radiology-clinical.json
    """
    message = json_value(usable(read_bytes(file), file), str(file))
    if isinstance(message, Diagnostic):
        print_findings([message])
        raise CommandFailedError(f"{file} cannot be used; see the finding")
    document = find_payload(message).payload
    if not is_address(target) and Path(target).suffix.lower() in _ONTOLOGIES:
        told = _negotiate_locally(Path(target), document, others, alignments)
    else:
        if others or alignments:
            raise click.UsageError("--ontology and --alignment need an ontology as TARGET; a service has a registry")
        reply = asyncio.run(_ask(target, document, endpoint, options))
        if not reply.ok:
            print_refusal(reply)
            context.exit(1)
        told = reply.output["semantic"]
    confidence = f", confidence {told['confidence']:.2f}" if told["match"] == "mapped" else ""
    status = f" ({told['status']})" if told["match"] == "none" else ""
    lines = (f"{told['match']}{confidence}{status}", *(f"  {text}" for text in told["explanation"]))
    print_result(told, map(line, lines), as_json=as_json)
    if told["match"] == "none":
        context.exit(1)


async def _ask(target: str, document: Any, endpoint: str | None, options: Mapping[str, Any]) -> Reply:
    asked: dict[str, Any] = {"semantic_profile": document}
    if endpoint is not None:
        method, _, path = endpoint.partition(" ")
        asked["endpoint"] = {"method": method, "path": path.strip()}
    store = None
    if not is_address(target):
        place = store_place(target)
        store = open_store(place, role="visitor") if is_there(place) else None
    async with open_service(target, store=store, describes=True, **options) as client:
        return await client.request("DESCRIBE", "/", asked)


def _negotiate_locally(
    own: Path, document: Any, others: Iterable[Path], alignments: Iterable[Path]
) -> Mapping[str, Any]:
    ontology = _load(own)
    layer = SemanticLayer(SemanticSettings())
    policy = layer.negotiation.mapping_policy
    known = [ontology, *(_load(path) for path in others)]
    layer.knowledge.snapshot = Snapshot(known, [_load_alignment(path) for path in alignments], policy=policy)
    layer.own = (ontology.id,)
    _, outcome = layer.read(document)
    return outcome.document()


def _load(path: Path) -> Ontology:
    return _whole(path, *load_ontology(path))


def _load_alignment(path: Path) -> Alignment:
    document = read_alignment(usable(read_bytes(path), path), str(path))
    return _whole(path, document.alignment, document.findings)


def _whole(path: Path, read: Result | None, findings: Iterable[Diagnostic]) -> Result:
    if read is None:
        print_findings(findings)
        raise CommandFailedError(f"{path} cannot be used as it is; see the findings")
    return read
