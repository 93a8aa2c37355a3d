"""`bespeak diff OLD NEW`: show what changed between two contracts and whether it breaks clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, cast

import click
from rich.text import Text

from bespeak.app.cli.console import line, print_findings, print_json, print_lines
from bespeak.app.cli.contract_source import contract_of
from bespeak.app.cli.service import service_options
from bespeak.checks.evolution.approvals import APPROVALS, Approval, approve, judge, parse_approvals, with_entries
from bespeak.checks.evolution.change import ContractChange
from bespeak.checks.evolution.change_report import ChangeReport, FailOn, by_endpoint, markdown, within
from bespeak.checks.evolution.change_rules import CATEGORIES, Category
from bespeak.checks.evolution.contract_diff import diff_contracts
from bespeak.checks.evolution.version_bump import advise
from bespeak.documents.files.file_replacement import replace_text
from bespeak.errors import ConfigError, ContractError
from bespeak.text.diagnostics.diagnostic import Diagnostic, has_errors
from bespeak.text.diagnostics.reporters import reporter
from bespeak.text.reading.text_file import read_text

_FORMATS: Final = ("text", "json", "markdown", "github", "gitlab", "sarif", "junit", "concise")
_FAIL_ON: Final = ("breaking", "risky", "any", "bump", "none")
_STYLES: Final = {"breaking": "bold red", "risky": "yellow", "safe": "green", "approved": "cyan"}
_QUIET: Final = "dim"


@click.command()
@click.argument("old")
@click.argument("new")
@click.option(
    "--category",
    type=click.Choice([name.lower() for name in CATEGORIES]),
    default="contract",
    show_default=True,
    help="Changes to compare: the wire format; contract adds semantics, prose adds texts.",
)
@click.option(
    "--fail-on",
    type=click.Choice(_FAIL_ON),
    default="breaking",
    show_default=True,
    help="Changes that make the exit code 1; `bump` is a version bump too small for the changes.",
)
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True, help="Output format.")
@click.option(
    "--approvals",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"File with approved changes.  [default: {APPROVALS}, if it exists]",
)
@click.option("--approve", "approving", is_flag=True, help="Approve the changes that fail now.")
@click.option("--reason", help="Reason for the approval; required with --approve.")
@click.option("--expires", type=click.DateTime(["%Y-%m-%d"]), help="Last day the new approvals are valid.")
@service_options
def diff(
    old: str,
    new: str,
    *,
    category: str,
    fail_on: FailOn,
    form: str,
    approvals: Path | None,
    approving: bool,
    reason: str | None,
    expires: datetime | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Compare contract OLD with contract NEW and report breaking changes.

    OLD and NEW are .agis documents, endpoint files, folders, .py files, module:app, JSON manifests, agtp://HOST[:4480]
    or https://HOST. git:REV is the path of the other argument at that revision; git:REV:PATH is any path.
    Python code is imported in a separate process.

    Examples:

    \b
    bespeak diff git:HEAD~1 examples/hotel
    bespeak diff agtp://rooms.example rooms.agis --format markdown
    bespeak diff git:main rooms.agis --approve --reason "No callers; see ticket 71."

    Exit codes: 0 no failing changes, 1 failing changes, 2 a contract cannot be read.
    """
    if approving and not (reason and reason.strip()):
        raise click.UsageError('--approve needs --reason "..."')
    place = approvals or Path(APPROVALS)
    known = _read_approvals(place, wanted=approvals is not None and not approving)
    report = _compare(old, new, cast("Category", category.upper()), fail_on, known, options=options)
    if approving and reason:
        added = approve(report.failing, reason, expires.date() if expires else None)
        _append(place, added)
        report = replace(report, approved={**report.approved, **{entry.fingerprint: entry for entry in added}})
    _print(report, "json" if as_json else form)
    return 1 if report.failed else 0


def _compare(
    old: str, new: str, category: Category, fail_on: FailOn, known: list[Approval], *, options: dict[str, Any]
) -> ChangeReport:
    with ExitStack() as open_files:
        before = contract_of(old, new, options, open_files, tolerant=True)
        after = contract_of(new, old, options, open_files)
        everything = diff_contracts(before.contract, after.contract)
        changes = after.place(within(everything, category))
    judgement = judge(everything, known, datetime.now().astimezone().date())
    # Prose changes need at most a patch bump, so they count for the version in every category.
    counted = [*changes, *(change for change in everything if change.category == "PROSE")]
    version = advise(counted, before.contract.version, after.contract.version)
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


def _read_approvals(path: Path, *, wanted: bool) -> list[Approval]:
    if not path.exists() and not wanted:
        return []
    text = read_text(path)
    if isinstance(text, Diagnostic):
        raise ContractError("the approvals file cannot be read", [text])
    approvals, findings = parse_approvals(text, str(path))
    if has_errors(findings):
        raise ContractError("the approvals file has errors", findings)
    return approvals


def _append(path: Path, added: list[Approval]) -> None:
    if not added:
        return
    try:
        text = path.read_text("utf-8") if path.exists() else ""
        replace_text(path, with_entries(text, added), create=True)
    except OSError as error:
        raise ConfigError(f"cannot write the approvals to {path}: {error.strerror or error}") from error
    click.echo(f"{len(added)} approved in {path}", err=True)


def _print(report: ChangeReport, form: str) -> None:
    if form == "json":
        print_json(report.to_json())
    elif form == "markdown":
        click.echo(markdown(report), nl=False)
    elif form != "text":
        click.echo(reporter(form)(report.findings_report()), nl=False)
    else:
        print_findings(report.other_findings)
        print_lines(_lines(report))


def _lines(report: ChangeReport) -> Iterator[Text]:
    yield line((f"{report.old} -> {report.new}", "bold"))
    for endpoint, group in by_endpoint(report.changes).items():
        yield Text()
        yield line((endpoint or "The service", "bold"))
        for change in group:
            yield from _change_lines(change, report)
    yield Text()
    yield line((report.summary(), "bold red" if report.failing else "bold green"))
    advice = str(report.version)
    yield line((advice, "yellow")) if report.version.too_small else line(advice)


def _change_lines(change: ContractChange, report: ChangeReport) -> Iterator[Text]:
    approval = report.approved.get(change.fingerprint)
    level = "approved" if approval else change.level
    yield line("  ", (f"{level:8}", _STYLES[level]), f"  {change.rule}  {change.message}")
    if approval:
        until = f" (until {approval.expires})" if approval.expires else ""
        yield line((f"                  {approval.reason}{until}", _QUIET))
    elif change.help:
        yield line(f"                  {change.help}")
    if change.level != "safe":
        where = f"{change.location}  " if change.location else ""
        yield line((f"                  {where}{change.fingerprint}", _QUIET))
