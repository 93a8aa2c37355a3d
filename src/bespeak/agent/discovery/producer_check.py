"""Producer rules on a fetched document: what its author should fix, even if agents can read it."""

from __future__ import annotations

from typing import Final

from bespeak.agent.discovery.web_document import AGIS, DISCOVERY, MANIFEST, Fetched
from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.subject import Kind, LintContext
from bespeak.contract.catalog.document import load_bundled
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import UNREADABLE
from bespeak.text.source.tree import Location

_KINDS: Final[dict[str, Kind]] = {DISCOVERY.what: "ai", AGIS.what: "agis", MANIFEST.what: "manifest"}


def check_producer(fetched: Fetched) -> list[Diagnostic]:
    """Check a document by the rules of its kind; return nothing for kinds without rules. Never raises."""
    kind = _KINDS.get(fetched.what)
    if kind is None or not fetched.ok:
        return []
    try:
        text = fetched.body.decode()
    except UnicodeDecodeError as error:
        message = f"the document is not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}"
        return [UNREADABLE.found(message, Location(fetched.final_url))]
    return list(check_text(text, fetched.final_url, LintContext(catalog=load_bundled()), kind).findings)
