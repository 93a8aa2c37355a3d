"""Artifacts are judged before they are used: signatures, ontologies, terms and succession."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.cases import rows
from tests.extensions.semantics.alignment.artifacts import ARTIFACT, RULE
from tests.extensions.semantics.alignment.terms import ontology, term

from bespeak.extensions.semantics.alignment.artifact import JudgedAlignment, Trust, judge_alignment
from bespeak.extensions.semantics.alignment.draft_json import canonical_json, statement_of, write_json
from bespeak.extensions.semantics.alignment.notation import write_alignment
from bespeak.extensions.semantics.alignment.policy import Alignment
from bespeak.extensions.semantics.rules import (
    ALIGNMENT_IRI,
    BAD_ARTIFACT,
    DOWNGRADE,
    OTHER_ONTOLOGY,
    SIGNATURE,
    UNKNOWN_TERM,
)
from bespeak.extensions.semantics.store import decompress
from bespeak.extensions.semantics.terms import Ontology
from bespeak.state.identity.jws import PrivateKey, generate_key, key_id
from bespeak.state.identity.key_files import trusted
from bespeak.state.identity.signed_document import sign_artifact

KEY, OTHER = generate_key(), generate_key()
TRUST = Trust(keys=trusted([KEY, OTHER]), ranks={key_id(KEY): 2, key_id(OTHER): 1})
SOURCE = ontology("https://x.org/onto/rad", terms=(term(RULE.source),), version="1.0")
TARGET = ontology("https://y.org/onto/clinical", terms=(term(RULE.target),), version="2.1")


def sign(alignment: Alignment, key: Any = KEY) -> str:
    assert isinstance(key.private_key, PrivateKey)
    return sign_artifact(statement_of(alignment), key.private_key, key_id(key), 1_790_000_000.0)


def judge(alignment: Alignment = ARTIFACT, token: str = "", **given: Any) -> JudgedAlignment:
    return judge_alignment(write_json(alignment, token), "a.json", **given)


def found(judged: JudgedAlignment) -> list[tuple[str, str]]:
    assert judged.alignment is None
    return [(one.rule, one.pointer) for one in judged.findings]


def test_signature_is_accepted_in_the_artifact_and_beside_another_notation() -> None:
    judged = judge(token=sign(ARTIFACT), source=SOURCE, target=TARGET, trust=TRUST)
    assert (judged.findings, judged.alignment) == ([], msgspec.structs.replace(ARTIFACT, signer=key_id(KEY)))
    data = write_alignment(ARTIFACT, "sssom")
    judged = judge_alignment(data, "a.tsv", trust=TRUST, signature=sign(ARTIFACT))
    assert judged.alignment.signer == key_id(KEY)


@pytest.mark.requirement("IOA-13-2", "IOA-13-6")
def test_changed_untrusted_or_missing_signature_is_found_and_an_unverified_one_names_no_signer() -> None:
    changed = msgspec.structs.replace(ARTIFACT, rules=(msgspec.structs.replace(RULE, target="https://evil.example#x"),))
    assert found(judge(changed, sign(ARTIFACT), trust=TRUST)) == [(SIGNATURE.id, "/signature")]
    trust = Trust(keys=trusted([OTHER]))
    assert found(judge(token=sign(ARTIFACT), trust=trust)) == [(SIGNATURE.id, "/signature")]
    assert found(judge(trust=Trust(signed=True))) == [(SIGNATURE.id, "/signature")]
    assert judge().alignment is not None
    judged = judge(token=sign(ARTIFACT))
    assert (judged.alignment.signer, judged.signature) == ("", "")


@rows(
    "source, rule, pointer",
    (ontology("https://other.example", terms=(term(RULE.source),)), OTHER_ONTOLOGY, "/sourceOntologyId"),
    (msgspec.structs.replace(SOURCE, version="2.0"), OTHER_ONTOLOGY, "/sourceOntologyVersion"),
    (msgspec.structs.replace(SOURCE, terms={}), UNKNOWN_TERM, "/mappingRules/0/from"),
)
def test_artifact_that_does_not_fit_the_ontology_is_refused(source: Ontology, rule: Any, pointer: str) -> None:
    assert found(judge(source=source, target=TARGET)) == [(rule.id, pointer)]


def test_notation_without_versions_is_for_the_ontologies_in_use() -> None:
    judged = judge_alignment(write_alignment(ARTIFACT, "alignment"), "a.rdf", source=SOURCE, target=TARGET)
    assert (judged.alignment.source, judged.alignment.target) == (SOURCE.ref, TARGET.ref)


def test_older_version_and_a_lower_or_missing_signer_are_refused() -> None:
    newer = msgspec.structs.replace(ARTIFACT, version="1.3")
    assert found(judge(replaces=newer)) == [(DOWNGRADE.id, "/version")]
    assert judge(replaces=msgspec.structs.replace(ARTIFACT, version="1.1")).alignment is not None
    before = msgspec.structs.replace(ARTIFACT, version="1.1", signer=key_id(KEY))
    assert found(judge(replaces=before, trust=TRUST)) == [(DOWNGRADE.id, "/signature")]
    assert found(judge(token=sign(ARTIFACT, OTHER), replaces=before, trust=TRUST)) == [(DOWNGRADE.id, "/signature")]
    assert judge(token=sign(ARTIFACT), replaces=before, trust=TRUST).alignment is not None


def test_registry_needs_an_iri_and_a_version() -> None:
    nameless = msgspec.structs.replace(ARTIFACT, id="", version="")
    assert found(judge(nameless, for_registry=True)) == [
        (ALIGNMENT_IRI.id, "/id"),
        (BAD_ARTIFACT.id, "/version"),
    ]
    named = judge(nameless, for_registry=True, id="urn:a:b", version="1.0")
    assert named.alignment is not None
    command = named.command("a.json")
    assert (command.kind, command.id, command.refs) == ("alignment", "urn:a:b", (ARTIFACT.source, ARTIFACT.target))
    assert decompress(command.content) == canonical_json(named.alignment)
