"""Comparing two contracts: read one from a text, and report what changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from bespeak.checks.evolution.change import Category, ContractChange
from bespeak.checks.evolution.change_report import Approval, ChangeReport, FailOn, advise, judge, within
from bespeak.checks.evolution.contract_diff import Contract, diff_contracts, manifest_contract
from bespeak.checks.lint.document import read_subject
from bespeak.checks.lint.subject import Subject
from bespeak.documents.manifest_json import parse_manifest
from bespeak.errors import ContractError
from bespeak.text.diagnostics.diagnostic import Diagnostic, has_errors


def read_contract(text: str, name: str, *, tolerant: bool = False) -> tuple[Contract, Subject | None]:
    """Read the contract of a manifest, an AGIS document or an endpoint file, and the document unless it is a manifest.

    With `tolerant`, an AGIS document may have errors. Raises ContractError.
    """
    subject = read_subject(text, name)
    if isinstance(subject, Diagnostic):
        raise ContractError(f"{name} cannot be compared", [subject])
    if subject.kind == "manifest":
        manifest, findings = parse_manifest(text.encode())
        if manifest is None:
            raise ContractError(f"{name} cannot be compared", findings)
        return manifest_contract(manifest), None
    if subject.agis is None:
        raise ContractError(f"{name} is not a contract", subject.found)
    if not tolerant and has_errors(subject.found):
        raise ContractError(f"{name} has errors; fix them first", subject.found)
    document = subject.agis
    contract = Contract(
        endpoints=tuple(entry.endpoint for entry in document.endpoints),
        vocabulary=document.vocabulary,
        data_manifest=document.data_manifest,
        version=document.version or document.vocabulary.version,
    )
    return contract, subject


def compare(
    old: str,
    new: str,
    before: Contract,
    after: Contract,
    *,
    category: Category = "CONTRACT",
    fail_on: FailOn = "breaking",
    approvals: Iterable[Approval] = (),
    place: Callable[[Iterable[ContractChange]], list[ContractChange]] = list,
) -> ChangeReport:
    """Report the changes from a contract to another; `place` finds where they are written."""
    everything = diff_contracts(before, after)
    changes = place(within(everything, category))
    judgement = judge(everything, approvals, datetime.now().astimezone().date())
    # Prose changes need at most a patch bump, so they count for the version in every category.
    counted = [*changes, *(change for change in everything if change.about.category == "PROSE")]
    version = advise(counted, before.version, after.version)
    too_small = version.finding()
    return ChangeReport(
        old=old,
        new=new,
        changes=changes,
        hidden=len(everything) - len(changes),
        category=category,
        fail_on=fail_on,
        version=version,
        approved=judgement.approved,
        findings=[*judgement.findings, *([too_small] if too_small else [])],
    )
