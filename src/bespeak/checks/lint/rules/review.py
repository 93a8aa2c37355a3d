"""R9xx: a person reviews the guesses of an importer before the contract is used (AGTP-API 14.1)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule
from bespeak.text.source.toml_tree import toml_comments

if TYPE_CHECKING:
    from bespeak.checks.lint.subject import LintContext, Subject

WAITING: Final = Rule("R901", "guess-to-review", "style", "AGTP-API 14.1")

_HOW: Final = "Read REVIEW.md, then run `bespeak review FOLDER`. `bespeak lint` counts what is left."


def check_document(subject: Subject, context: LintContext) -> Iterator[Diagnostic]:
    """Report all guesses in a file in one finding: each comment explains its own."""
    if subject.kind not in ("endpoint", "server"):
        return
    if "# review (" not in subject.tree.text:
        for declared in subject.endpoints:
            if not declared.endpoint.reviewed:
                advice = "Check it, then run `bespeak review`, or remove `reviewed = false`."
                yield WAITING.inside(f"{declared.at}/reviewed", "the endpoint is published as unreviewed", advice)
        return
    text = subject.tree.text
    from bespeak.documents.adoption.facade import MARKER  # noqa: PLC0415 - loads English, which servers do without

    places = [span.start for span in toml_comments(text) if MARKER.match(text, span.start)]
    if places:
        several = len(places) > 1
        line = text.count("\n", 0, places[0]) + 1
        message = f"{len(places)} guess{'es wait' if several else ' waits'} for a review, the first in line {line}"
        yield WAITING.inside("", message, "Check what each comment describes, then remove the comment.")


def unreviewed(endpoints: Collection[Endpoint]) -> Iterator[Diagnostic]:
    """Report in one finding the endpoints of a service that nobody has reviewed."""
    waiting = [endpoint for endpoint in endpoints if not endpoint.reviewed]
    if waiting:
        count = f"{len(waiting)} of {len(endpoints)} endpoints" if len(endpoints) > 1 else "the endpoint"
        message = f"{count} {'is' if len(waiting) == 1 else 'are'} published as unreviewed guesses of an importer"
        yield WAITING.found(message, advice=_HOW, severity="warning")
