"""Runs the passes on one document and places the findings in its text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bespeak.checks.lint.context import Context
from bespeak.checks.lint.failed_check import attempt, failed_document
from bespeak.checks.lint.passes import DOCUMENTS, PASSES, RULES
from bespeak.checks.lint.reading import read_subject
from bespeak.checks.lint.registration import check_binding, check_contract, check_service, effective_policies
from bespeak.checks.lint.subject import Kind, Subject
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.policy import Policies
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import MISSING_KEY
from bespeak.text.source.pointer import child
from bespeak.text.source.tree import Tree

_MOST: Final = 10_000
"""Default maximum number of findings per document."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Result of checking one text. `subject` is None if the text could not be read."""

    findings: tuple[Diagnostic, ...]
    subject: Subject | None = None


def check_text(
    text: str, file: str, context: Context, kind: Kind | None = None, *, most: int | None = _MOST
) -> Checked:
    """Check a text; return at most `most` findings. Never raises."""
    try:
        subject = read_subject(text, file, kind)
    except Exception as error:  # noqa: BLE001 - one document must not stop the others
        return Checked((failed_document("reading the document", error, file),))
    if isinstance(subject, Diagnostic):
        return Checked((subject,))
    return Checked(tuple(check(subject, context, most=most)), subject)


def check(subject: Subject, context: Context, *, most: int | None = _MOST) -> list[Diagnostic]:
    """Check a document; return at most `most` findings in the order of the text. None returns all of them."""
    context = _within(subject, context)
    found = list(_unspoken(subject.found, _agtp(subject, context)))
    advice = _agis(subject, context)
    if subject.kind != "agis":
        advice = _as_advice((*subject.found, *found), advice)
    placed = [*subject.found, *(located(finding, subject.tree) for finding in (*found, *advice))]
    placed.sort(key=_order)
    return placed[:most]


def _within(subject: Subject, context: Context) -> Context:
    """Add the document's own vocabulary and policies to the context."""
    agis = subject.kind == "agis"
    vocabulary = subject.agis.vocabulary if subject.agis else None
    return replace(context, agis=agis, vocabulary=vocabulary, policies=subject.policies or context.policies)


def _agis(subject: Subject, context: Context) -> Iterator[Diagnostic]:
    for step in PASSES:
        for check_document in step.document:
            yield from attempt(check_document, subject, context)
        for check_endpoint in step.endpoint:
            for declared in subject.endpoints:
                for finding in attempt(check_endpoint, declared, context, endpoint=declared.endpoint):
                    yield declared.place(finding)


def _agtp(subject: Subject, context: Context) -> Iterator[Diagnostic]:
    owners = {id(declared.endpoint): declared for declared in subject.endpoints}
    # Of two colliding endpoints the second is reported.
    for endpoint, finding in check_service(declared.endpoint for declared in subject.endpoints):
        yield owners[id(endpoint)].place(finding)
    if subject.kind == "agis":
        return
    for check_document in DOCUMENTS:
        yield from attempt(check_document, subject, context)
    if subject.policies is not None:
        yield from attempt(_check_policies, subject.policies, context.catalog)
    for declared in subject.endpoints:
        for finding in check_contract(declared.endpoint, context.catalog, context.policies):
            yield declared.place(finding)
        if subject.kind == "endpoint":
            for finding in check_binding(declared.endpoint, context.recipes):
                yield declared.place(finding)


def _check_policies(policies: Policies, catalog: Catalog) -> list[Diagnostic]:
    return effective_policies(policies, catalog)[1]


def _as_advice(found: Sequence[Diagnostic], advice: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Turn errors of AGIS-only rules into warnings; skip them where AGTP-API already reports the same place."""
    spoken = {(finding.rule[0], finding.pointer) for finding in found}
    for finding in _unspoken(found, advice):
        if (finding.rule[0], finding.pointer) in spoken:
            continue
        rule = RULES.get(finding.rule)
        if rule is not None and rule.is_agis and finding.severity == "error":
            yield replace(finding, severity="warning")
        else:
            yield finding


def _unspoken(found: Iterable[Diagnostic], more: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Skip findings about keys that the reader has reported as missing."""
    missing = {
        child(finding.pointer, finding.message.split("`")[1]) for finding in found if finding.rule == MISSING_KEY.id
    }
    for finding in more:
        if finding.pointer not in missing:
            yield finding


def located(finding: Diagnostic, tree: Tree) -> Diagnostic:
    """Set the location of a finding from its pointer: on the value, also in TOML, where readers use the key."""
    span = tree.value_span(finding.pointer) if finding.pointer and not finding.on_key else None
    place = tree.locate(finding.pointer, key=finding.on_key) if span is None else tree.location(span)
    return replace(finding, location=place)


def _order(finding: Diagnostic) -> tuple[int, int, str, str]:
    location = finding.location
    return (location.line, location.column, finding.rule, finding.message) if location else (0, 0, finding.rule, "")
