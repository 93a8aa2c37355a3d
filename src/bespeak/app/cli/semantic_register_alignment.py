"""Alignments for `bespeak semantic register` and `sign`."""

from __future__ import annotations

import asyncio

from bespeak.app.cli.console import print_findings
from bespeak.app.cli.main import CommandFailedError
from bespeak.app.cli.target_store import use_store
from bespeak.checks.alignment.artifact import Trust, judge_alignment
from bespeak.documents.alignment.draft_json import statement_of
from bespeak.runtime.semantic.alignment_registration import AlignmentOffer, judge_offer
from bespeak.state.identity.artifact_signature import ArtifactStatement
from bespeak.state.store.commands.ontologies import RegisterArtifact


def command_for(place: str, offer: AlignmentOffer, trust: Trust) -> RegisterArtifact:
    """Return the command that registers an alignment; end the command line if it is refused."""
    judged = asyncio.run(use_store(place, lambda store: judge_offer(store, offer, trust)))
    print_findings(judged.findings)
    if judged.alignment is None:
        raise CommandFailedError(f"{offer.file} cannot be used as it is; see the findings")
    return judged.command(offer.file)


def alignment_statement(data: bytes, file: str, iri: str, version: str) -> ArtifactStatement:
    """Return what a signature of an alignment says; end the command line if it cannot be registered."""
    judged = judge_alignment(data, file, for_registry=True, id=iri, version=version)
    print_findings(judged.findings)
    found = judged.alignment
    if found is None:
        raise CommandFailedError(f"{file} cannot be used as it is; see the findings")
    if not (found.source.version and found.target.version):
        # The registry fills them in, and the signature would be for other content.
        raise CommandFailedError(f"{file} must say the versions of its ontologies to be signed, as JSON and SSSOM do")
    return statement_of(found)
