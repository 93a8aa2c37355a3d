"""Versions, alignments and indexes of one revision of the registry."""

from __future__ import annotations

import msgspec
from tests.meaning import CLINICAL, CS, RAD, alignment, ontology, snapshot

from bespeak.runtime.semantic.snapshot import Snapshot


def test_highest_version_that_serves_a_request_is_found() -> None:
    clinical = ontology("clinical")
    known = Snapshot([msgspec.structs.replace(clinical, version=version) for version in ("2.10", "3.0", "2.9")])
    serving = {wanted: known.serving(CLINICAL, wanted) for wanted in ("2.0", "2.10", "3.0", "2.11", "4")}
    assert {wanted: one and one.version for wanted, one in serving.items()} == {
        "2.0": "2.10",
        "2.10": "2.10",
        "3.0": "3.0",
        "2.11": None,
        "4": None,
    }
    latest = known.serving(CLINICAL, "")
    assert latest is not None
    assert latest.version == "3.0"


def test_core_is_always_known() -> None:
    assert Snapshot().serving("https://ex.org/onto/agent-core", "1.0") is not None
    assert Snapshot().latest(CS) is None


def test_index_has_the_asked_version_and_the_latest_of_all_others() -> None:
    old = msgspec.structs.replace(ontology("clinical"), version="1.0", terms={})
    known = Snapshot([ontology("clinical"), old, ontology("radiology")])
    assert f"{CLINICAL}#note-summarize" in known.meanings
    older = known.meanings_with(old)
    assert f"{CLINICAL}#note-summarize" not in older
    assert f"{RAD}#report-summary" in older
    assert known.meanings_with(old) is older
    assert known.meanings_with(ontology("radiology")) is not known.meanings


def test_newest_version_of_an_alignment_counts() -> None:
    newer = alignment(version="1.1", rules=())
    known = snapshot(newer, alignment())
    assert known.alignments[newer.id].version == "1.1"
    assert known.mappings.translator([newer.id]).translate(f"{RAD}#report-summary", CLINICAL) is None
    assert known.declaring([f"{RAD}#report-summary", f"{CLINICAL}#Medicine"]) == (RAD, CLINICAL)
