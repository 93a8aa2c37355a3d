"""The two domains of the draft's story, and its two meanings of LLM, as the example has them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

import msgspec

from bespeak.extensions.semantics.alignment.draft_json import canonical_json, read_json
from bespeak.extensions.semantics.alignment.policy import DEFAULT, Alignment, Policy
from bespeak.extensions.semantics.knowledge import Snapshot
from bespeak.extensions.semantics.ontology.reader import read_ontology
from bespeak.extensions.semantics.ontology.registration import judge_registration
from bespeak.extensions.semantics.store import RegisterArtifact, compress
from bespeak.extensions.semantics.terms import Ontology
from bespeak.state.store.store import Conflict, Store

FOLDER: Final = Path(__file__).parent.parent / "examples" / "semantic" / "ontologies"
NAMES: Final = ("radiology", "clinical", "computer-science", "law")

RAD: Final = "https://x.org/onto/rad"
CLINICAL: Final = "https://y.org/onto/clinical"
CS: Final = "https://ex.org/onto/cs"
LAW: Final = "https://ex.org/onto/law"
ALIGNMENT: Final = "https://ex.org/align/X-Y-2026"

RAD_PROFILE: Final[dict[str, Any]] = {
    "@context": ["https://ex.org/ctx", {"rad": f"{RAD}#"}],
    "type": "ioa:SemanticProfile",
    "ontologyId": RAD,
    "ontologyVersion": "1.0",
    "capabilityRefs": ["rad:report-summary"],
    "intentRef": "rad:summarize-report",
}
CLINICAL_PROFILE: Final[dict[str, Any]] = {
    "@context": ["https://ex.org/ctx", {"clinical": f"{CLINICAL}#"}],
    "type": "ioa:SemanticProfile",
    "ontologyId": CLINICAL,
    "ontologyVersion": "2.1",
    "capabilityRefs": ["clinical:note-summarize"],
    "intentRef": "clinical:summary-intent",
}


def ontology(name: str) -> Ontology:
    found, findings = read_ontology((FOLDER / f"{name}.ttl").read_bytes(), f"{name}.ttl")
    assert found is not None, findings
    return found


def alignment(**changes: Any) -> Alignment:
    document = read_json((FOLDER / "radiology-clinical.json").read_bytes(), "radiology-clinical.json")
    assert document.alignment is not None, document.findings
    return msgspec.structs.replace(document.alignment, **changes)


def snapshot(*alignments: Alignment, policy: Policy = DEFAULT) -> Snapshot:
    return Snapshot([ontology(name) for name in NAMES], alignments or (alignment(),), revision=5, policy=policy)


def registrations(*alignments: Alignment) -> list[RegisterArtifact]:
    commands = []
    for name in NAMES:
        judged = judge_registration((FOLDER / f"{name}.ttl").read_bytes(), f"{name}.ttl")
        assert judged.command is not None, judged.findings
        commands.append(judged.command)
    return [*commands, *(registration_of(one) for one in alignments or (alignment(),))]


def registration_of(found: Alignment) -> RegisterArtifact:
    content = canonical_json(found)
    digest = hashlib.sha256(content).hexdigest()
    refs = (found.source, found.target)
    return RegisterArtifact("alignment", found.id, found.version, digest, compress(content), refs)


async def register_all(store: Store, *alignments: Alignment) -> None:
    for command in registrations(*alignments):
        done = await store.do(command)
        assert not isinstance(done, Conflict), done
