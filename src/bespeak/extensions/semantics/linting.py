"""I111: what `bespeak lint` says of the concepts of a deployment, by the ontologies in its store."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from bespeak.contract.core_ontology import is_iri
from bespeak.contract.endpoint import Endpoint
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import ConfigError, StoreError
from bespeak.extensions.semantics.rules import UNKNOWN_CONCEPT
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief

_MOST_COMPARED: Final = 5_000  # terms that one concept is compared with
_MOST_SUGGESTED: Final = 20  # concepts for which similar terms are looked for
_ALIKE: Final = 0.7
_SIGNS: Final = re.compile("[#/:]")  # what stands before the local name of an IRI


def check_concepts(
    root: Path, server: ServerDocument, endpoints: Sequence[Endpoint]
) -> Iterator[tuple[Endpoint, Diagnostic]]:
    """Report the concepts of endpoints that no ontology in the store of their deployment has.

    Nothing is reported without a file of the store on this machine: what is registered elsewhere is not known.
    """
    settings = server.extension_tables.get("semantic")
    declared: list[tuple[Endpoint, int, object]] = [
        (endpoint, at, concept) for endpoint in endpoints for at, concept in enumerate(endpoint.semantic.concepts)
    ]
    place = server.store.located(root, os.environ)
    if not declared or not isinstance(settings, SemanticSettings) or not isinstance(place, str):
        return
    if not Path(place).is_file() or (known := _registered(place, settings)) is None:
        return
    terms, near = sorted(known), dict[str, str | None]()
    named = {_local(one): one for one in reversed(terms)}
    for endpoint, at, concept in declared:
        if isinstance(concept, str) and is_iri(concept) and concept not in known:  # S419 reports others
            if concept not in near:
                near[concept] = named.get(_local(concept)) or _similar(concept, terms, len(near))
            message = f"no registered ontology has the concept {brief(concept)}"
            meant = f"Write {near[concept]}, if that is meant. " if near[concept] else ""
            advice = f"{meant}`bespeak semantic register` registers an ontology."
            yield endpoint, UNKNOWN_CONCEPT.at(endpoint, f"/semantic/concepts/{at}", message, advice)


def _registered(place: str, settings: SemanticSettings) -> Collection[str] | None:
    """Return the terms of all registered ontologies; None if the store cannot be read."""
    from bespeak.extensions.semantics.knowledge import Knowledge  # noqa: PLC0415 - most runs need none of it
    from bespeak.extensions.semantics.layer import check_extra  # noqa: PLC0415
    from bespeak.state.store.settings import open_store  # noqa: PLC0415

    async def read() -> Collection[str]:
        knowledge, store = Knowledge(settings.namespace), open_store(place)
        try:
            await store.start()
            await knowledge.follow(store)
            meanings = knowledge.snapshot.meanings
            return frozenset(iri for ontology in meanings.ontologies.values() for iri in ontology.terms)
        finally:
            await knowledge.close()
            await store.close()

    try:
        check_extra()
        # An editor has an event loop of its own.
        with ThreadPoolExecutor(1) as beside:
            return beside.submit(asyncio.run, read()).result()
    except (ConfigError, StoreError):
        return None


def _similar(concept: str, terms: Sequence[str], asked: int) -> str | None:
    """Return the term whose IRI is most similar; None behind the first concepts, for each takes a fifth of a second."""
    if asked >= _MOST_SUGGESTED:
        return None
    return next(iter(get_close_matches(concept, terms[:_MOST_COMPARED], n=1, cutoff=_ALIKE)), None)


def _local(iri: str) -> str:
    return _SIGNS.split(iri)[-1].casefold()
