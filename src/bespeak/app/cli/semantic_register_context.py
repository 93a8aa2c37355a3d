"""Contexts for `bespeak semantic register`: envelopes may name a registered context, and none is ever fetched."""

from __future__ import annotations

import hashlib

from bespeak.app.cli.console import print_findings
from bespeak.app.cli.main import CommandFailedError
from bespeak.contract.ontology.namespace import is_iri
from bespeak.contract.ontology.version import parse_version
from bespeak.documents.envelope.limits import CONTEXT_LIMITS
from bespeak.documents.ontology.contexts import inline_contexts
from bespeak.documents.ontology.core_context import shipped_contexts
from bespeak.documents.ontology.fault import DocumentRefused
from bespeak.state.store.commands.ontologies import RegisterArtifact, compress
from bespeak.text.reading.json_text import json_value


def is_context(data: bytes, file: str) -> bool:
    """Return True for a JSON object whose only member is a context."""
    value = json_value(data, file) if data.lstrip()[:1] == b"{" else None
    return isinstance(value, dict) and value.keys() == {"@context"}


def context_command(data: bytes, file: str, iri: str, version: str) -> RegisterArtifact:
    """Return the command that registers a context; contexts inside of it must be shipped ones."""
    if not is_iri(iri) or parse_version(version) is None:
        raise CommandFailedError(f"{file} is a context; give its --id, an absolute IRI, and its --version")
    try:
        content = inline_contexts(data, file, shipped_contexts(), CONTEXT_LIMITS)
    except DocumentRefused as refused:
        print_findings([refused.finding])
        raise CommandFailedError(f"{file} cannot be used as it is; see the finding") from refused
    digest = hashlib.sha256(content).hexdigest()
    return RegisterArtifact("context", iri, version, digest, compress(content), source=file[:500])
