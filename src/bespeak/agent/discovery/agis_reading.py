"""Reader of AGIS documents for agents: an invalid document is reported and not used."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bespeak.agent.discovery.document_kind import AGIS
from bespeak.agent.discovery.fetched import Fetched
from bespeak.documents.agis.document import AgisDocument, read_agis
from bespeak.documents.ai.rules import UNUSABLE_DOCUMENT
from bespeak.documents.notation_text import parse_notation
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import UNREADABLE
from bespeak.text.source.span import Location
from bespeak.text.source.tree import Tree

_MOST_WRONG: Final = 20
"""Maximum number of findings to report per document."""


def agis_tree(fetched: Fetched) -> Tree | Diagnostic | None:
    """Parse a response that is an AGIS document; return the parse error, or None if it is something else."""
    try:
        text = fetched.body.decode()
    except UnicodeDecodeError:
        return UNREADABLE.found("the document is not UTF-8", Location(fetched.final_url))
    tree = parse_notation(text, fetched.final_url)
    if isinstance(tree, Diagnostic):
        return tree
    return tree if isinstance(tree.data, dict) and "agis" in tree.data else None


def read_agis_document(fetched: Fetched) -> tuple[AgisDocument | None, list[Diagnostic]]:
    """Read the document in a response; return None if it is invalid (a failed discovery in AGIS 11 and 13)."""
    tree = agis_tree(fetched)
    if isinstance(tree, Diagnostic):
        return None, [replace(tree, severity="warning")]
    if tree is None:
        return None, [_unused("the response is not an AGIS document", fetched)]
    document, found = read_agis(tree)
    if document is None or not document.endpoints:
        return None, [*found, _unused("the AGIS document cannot be used", fetched)]
    wrong = _against_agis(fetched)
    if wrong:
        message = "the AGIS document is not valid and is not used"
        return None, [*wrong[:_MOST_WRONG], _unused(message, fetched)]
    return document, []


def _unused(message: str, fetched: Fetched) -> Diagnostic:
    return UNUSABLE_DOCUMENT.found(message, Location(fetched.final_url), severity="warning")


def _against_agis(fetched: Fetched) -> list[Diagnostic]:
    from bespeak.agent.discovery.producer_check import check_producer  # noqa: PLC0415 - most services have something shorter

    found = check_producer(replace(fetched, what=AGIS.what))
    return [finding for finding in found if finding.severity == "error"]
