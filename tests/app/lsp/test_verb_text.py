"""A verb in an editor."""

from __future__ import annotations

from dataclasses import replace

from bespeak.app.lsp.hover import verb_text
from bespeak.contract.catalog.document import load_bundled
from bespeak.text.diagnostics.diagnostic import Diagnostic

CATALOG = load_bundled()


def test_a_verb_shows_its_entry() -> None:
    text = verb_text("book", CATALOG)
    assert text.startswith("**BOOK** · ")
    assert CATALOG.verbs["BOOK"].description in text


def test_a_deprecated_verb_names_its_successor() -> None:
    old = replace(CATALOG.verbs["BOOK"], deprecated_in="1.2.0", removed_in="2.0.0", successor="RESERVE")
    text = verb_text("BOOK", replace(CATALOG, verbs={**CATALOG.verbs, "BOOK": old}))
    assert "Deprecated since 1.2.0 and is removed in 2.0.0, use **RESERVE**." in text


def test_a_verb_of_http_names_the_preferred_one() -> None:
    assert f"Use **{CATALOG.legacy['GET'].preferred}**" in verb_text("GET", CATALOG)


def test_an_unknown_verb_shows_similar_verbs_and_its_findings() -> None:
    finding = Diagnostic("M211", "error", "BOOKING is a present participle", help="Write BOOK.")
    text = verb_text("BOOKING", CATALOG, [finding])
    assert "not in the catalog" in text
    assert "Similar verbs: BOOK" in text
    assert "M211: BOOKING is a present participle. Write BOOK." in text
