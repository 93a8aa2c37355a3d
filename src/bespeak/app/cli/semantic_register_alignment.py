"""Registration of an alignment, judged against the ontologies and the artifact that the store has."""

from __future__ import annotations

import asyncio

from bespeak.app.cli.console import print_findings
from bespeak.app.cli.main import CommandFailedError
from bespeak.app.cli.target_store import use_store
from bespeak.checks.alignment.artifact import Trust
from bespeak.runtime.semantic.alignment_registration import AlignmentOffer, judge_offer
from bespeak.state.store.commands.ontologies import RegisterArtifact


def command_for(place: str, offer: AlignmentOffer, trust: Trust) -> RegisterArtifact:
    """Return the command that registers an alignment; end the command line if it is refused."""
    judged = asyncio.run(use_store(place, lambda store: judge_offer(store, offer, trust)))
    print_findings(judged.findings)
    if judged.alignment is None:
        raise CommandFailedError(f"{offer.file} cannot be used as it is; see the findings")
    return judged.command(offer.file)
