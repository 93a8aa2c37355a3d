"""`bespeak diff OLD NEW`: show what changed between two contracts and whether it breaks clients."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

import click
from rich.text import Text

from bespeak.app.cli.service import open_service, service_options
from bespeak.checks.evolution.change import CATEGORIES, Category, ContractChange
from bespeak.checks.evolution.change_report import (
    APPROVALS,
    Approval,
    ChangeReport,
    FailOn,
    approve,
    by_endpoint,
    markdown,
    parse_approvals,
    with_entries,
)
from bespeak.checks.evolution.comparison import compare, read_contract
from bespeak.checks.evolution.contract_diff import Contract, manifest_contract, service_contract
from bespeak.checks.lint.registration import effective_policies
from bespeak.checks.lint.subject import Subject
from bespeak.contract.catalog.document import open_catalog
from bespeak.contract.endpoint import requires_scopes
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.deployment.folder import CONFIGURATIONS, with_positions
from bespeak.documents.deployment.server_toml import with_document
from bespeak.documents.manifest_json import parse_manifest
from bespeak.documents.replacement import replace_text
from bespeak.errors import ConfigError, ContractError
from bespeak.terminal.console import choice_option, line, print_findings, print_json, print_lines
from bespeak.text.diagnostics.diagnostic import Diagnostic, has_errors
from bespeak.text.diagnostics.reporters import reporter
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.tree import MAX_BYTES, Location

GIT: Final = "git:"
_TIMEOUT: Final = 120  # timeout in seconds for importing an app and reading its manifest

Locate = Callable[[ContractChange], Location | None]


@dataclass(frozen=True, slots=True)
class ContractSource:
    """A contract, with the locations of its parts if it was read from a file."""

    contract: Contract
    locate: Locate = lambda change: change.location

    def place(self, changes: Iterable[ContractChange]) -> list[ContractChange]:
        located = [replace(change, location=self.locate(change)) for change in changes]
        placed = with_positions(change.diagnostic() for change in located)
        return [replace(change, location=found.location) for change, found in zip(located, placed, strict=True)]


def contract_of(
    target: str, other: str, options: Mapping[str, Any], open_files: ExitStack, *, tolerant: bool = False
) -> ContractSource:
    """Read the contract that an argument names. `other` is the other argument: `git:REV` alone means its path at REV.

    With `tolerant`, an AGIS document may have errors. Raises BespeakError.
    """
    if target.startswith(GIT):
        return _at_revision(target, other, open_files, tolerant=tolerant)
    if "://" in target:
        return ContractSource(asyncio.run(_live(target, options)))
    return _local(target, Path.cwd(), tolerant=tolerant)


def _at_revision(target: str, other: str, open_files: ExitStack, *, tolerant: bool) -> ContractSource:
    revision, _, named = target.removeprefix(GIT).partition(":")
    path = named or other
    if path.startswith(GIT):
        path = path.removeprefix(GIT).partition(":")[2]
    if not path or "://" in path:
        raise ConfigError(f"{target} has no path, and {other} is not a path; write git:{revision}:PATH")
    into = Path(open_files.enter_context(TemporaryDirectory(prefix="bespeak-")))
    base = into
    if _is_module(path):
        base = check_out(revision, Path.cwd(), into)
    else:
        place = Path(path)
        # A configuration and a module may refer to files beside them.
        around = place.parent if place.suffix in (".py", ".toml") else None
        path = str(check_out(revision, place, into, surroundings=around))

    def shown(text: str) -> str:
        return text.replace(f"{into}/", f"{target}:")

    try:
        return ContractSource(_local(path, base, tolerant=tolerant).contract, lambda _: None)
    except ContractError as error:
        found = [finding for finding in error.findings if isinstance(finding, Diagnostic)]
        places = [one.location and replace(one.location, file=shown(one.location.file)) for one in found]
        moved = [replace(one, location=location) for one, location in zip(found, places, strict=True)]
        raise ContractError(shown(error.message), moved) from error
    except ConfigError as error:
        raise ConfigError(shown(str(error))) from error


_GIT_PATIENCE: Final = 60  # timeout of one git command in seconds


def check_out(revision: str, path: Path, into: Path, *, surroundings: Path | None = None) -> Path:
    """Check out `path`, and `surroundings`, at the revision below `into`; return its place. Raises ConfigError."""
    if not revision or revision.startswith("-"):
        raise ConfigError(f"{revision!r} is not a valid revision; write git:HEAD~1, git:main or git:v1.2.0")
    near = _existing_folder(path)
    top = Path(_git(near, "rev-parse", "--show-toplevel", failure=f"{path} is not in a git repository").strip())
    _git(
        top,
        *("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"),
        failure=f"there is no revision {revision!r} in the git repository {top}",
    )
    inside = _inside(path, top)
    wanted = _inside(surroundings, top) if surroundings is not None else inside
    if not _git(top, "ls-tree", "--name-only", revision, "--", *([str(inside)] if inside.parts else [])).strip():
        hint = "give git:REVISION:PATH if it had another name"
        raise ConfigError(f"{path} does not exist at revision {revision}; {hint}")
    # With its dot in front no path is taken for an option.
    archive = _run_git(top, "archive", "--format=tar", revision, *([f"./{wanted}"] if wanted.parts else []))
    if archive.returncode:
        raise ConfigError(f"git cannot give {wanted} at {revision}: {_said_by_git(archive.stderr)}")
    try:
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            tar.extractall(into, filter="data")
    except tarfile.ReadError:
        pass  # an archive of nothing
    except (tarfile.TarError, OSError) as error:
        raise ConfigError(f"cannot write {wanted} at {revision}: {error}") from error
    if not (into / inside).exists():
        raise ConfigError(f"git leaves {path} out of what it gives of {revision}: .gitattributes says export-ignore")
    return into / inside


def _existing_folder(path: Path) -> Path:
    """Return the nearest existing folder: the path itself may have been deleted."""
    place = path.absolute()
    while not place.is_dir() and place != place.parent:
        place = place.parent
    return place


def _inside(path: Path, top: Path) -> Path:
    try:
        return path.resolve().relative_to(top.resolve())
    except ValueError:
        raise ConfigError(f"{path} is outside of the git repository {top}") from None


def _git(folder: Path, *arguments: str, failure: str = "") -> str:
    done = _run_git(folder, *arguments)
    if done.returncode:
        raise ConfigError(failure or f"git {arguments[0]} failed: {_said_by_git(done.stderr)}")
    return done.stdout.decode(errors="surrogateescape")


def _run_git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603 - the revision is no option, and no shell reads it
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - the user's own git
            capture_output=True,
            check=False,
            timeout=_GIT_PATIENCE,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise ConfigError("git:REVISION needs git, which is not installed") from None
    except subprocess.TimeoutExpired:
        raise ConfigError(f"git {arguments[0]} took longer than {_GIT_PATIENCE} seconds") from None


def _said_by_git(stderr: bytes) -> str:
    return stderr.decode(errors="replace").strip().removeprefix("fatal: ")


def _local(target: str, base: Path, *, tolerant: bool) -> ContractSource:
    path = Path(target)
    if _is_module(target) or path.suffix == ".py":
        return ContractSource(_imported(target, base))
    if target and (path.is_dir() or path.suffix == ".toml"):
        return _deployment(path, base)
    if not target or not path.exists():
        others = "a manifest, module:app, agtp://HOST, https://HOST, or git:REVISION"
        raise ConfigError(f"{target!r} not found: give an .agis document, a .toml or .py file, a folder, {others}")
    return _document(path, tolerant=tolerant)


def _is_module(target: str) -> bool:
    module, _, name = target.rpartition(":")
    return len(module) > 1 and name.isidentifier() and (module.endswith(".py") or "/" not in module)


def _document(path: Path, *, tolerant: bool) -> ContractSource:
    text = read_text(path, MAX_BYTES)
    if isinstance(text, Diagnostic):
        raise ContractError(f"{path} cannot be read", [text])
    contract, subject = read_contract(text, str(path), tolerant=tolerant)
    return ContractSource(contract) if subject is None else ContractSource(contract, _locator(subject))


def _locator(subject: Subject) -> Locate:
    declared = {str(entry.endpoint): entry for entry in subject.endpoints}

    def locate(change: ContractChange) -> Location | None:
        if not change.endpoint:
            return subject.tree.locate(change.pointer, key=True)
        entry = declared.get(change.endpoint)
        return subject.tree.locate(entry.pointer(change.pointer), key=True) if entry else None

    return locate


def _deployment(path: Path, base: Path) -> ContractSource:
    deployment, findings = read_deployment(path)
    if has_errors(findings):
        raise ContractError(f"{path} has errors; fix them first", with_positions(findings))
    if deployment.server.main.app is not None:
        return ContractSource(_imported(str(path), base))
    if not path.is_dir() and path.name not in CONFIGURATIONS and deployment.server.identity is None:
        return ContractSource(Contract(endpoints=deployment.endpoints))
    from bespeak.app.server.assembly import list_builtins  # noqa: PLC0415 - only folders need the built-in methods

    service = deployment.service()
    catalog, found = open_catalog(service.catalog, deployment.root)
    if catalog is None:
        raise ContractError(f"{path} has errors; fix them first", found)
    if deployment.server.document is not None:
        from bespeak.app.authoring.agis_contract import open_agis  # noqa: PLC0415 - a folder seldom has a document

        described = open_agis(deployment.server.document, catalog, service.policies).service
        service = with_document(service, described, deployment.server)
    policies, found = effective_policies(service.policies, catalog)
    if has_errors(found):
        raise ContractError(f"{path} has errors; fix them first", found)
    builtins = list_builtins(service, stored=True)
    scoped = not deployment.server.auth.is_open or requires_scopes((*service.endpoints, *builtins))
    contract = replace(service_contract(service, policies.resolved(scoped=scoped)), catalog_version=catalog.version)
    configuration = next((path / name for name in CONFIGURATIONS if (path / name).is_file()), None)
    place = Location(str(configuration)) if configuration else None
    return ContractSource(contract, lambda change: change.location or (None if change.endpoint else place))


def _imported(target: str, base: Path) -> Contract:
    """Read the contract of an app in a separate process: two revisions of a module cannot be imported together."""
    command = [sys.executable, "-m", "bespeak", "discover", target, "--json"]
    try:
        done = subprocess.run(  # noqa: S603 - ourselves
            command, capture_output=True, check=False, cwd=base, timeout=_TIMEOUT, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"{target} did not return its contract within {_TIMEOUT} seconds") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().removeprefix("bespeak: ")
        raise ConfigError(f"{target} cannot be compared: {said}")
    manifest, findings = parse_manifest(done.stdout)
    if manifest is None:
        raise ContractError(f"{target} did not print a valid manifest", findings)
    return manifest_contract(manifest)


async def _live(uri: str, options: Mapping[str, Any]) -> Contract:
    async with open_service(uri, **options) as client:
        return manifest_contract(await client.discover())


_FORMATS: Final = ("text", "json", "markdown", "github", "gitlab", "sarif", "junit", "concise")
_FAIL_ON: Final = ("breaking", "risky", "any", "bump", "none")
_STYLES: Final = {"breaking": "bold red", "risky": "yellow", "safe": "green", "approved": "cyan"}
_QUIET: Final = "dim"


@click.command()
@click.argument("old")
@click.argument("new")
@choice_option(
    "--category",
    of=[name.lower() for name in CATEGORIES],
    default="contract",
    help="Changes to compare: the wire format; contract adds semantics, prose adds texts.",
)
@choice_option(
    "--fail-on",
    of=_FAIL_ON,
    default="breaking",
    help="Changes that make the exit code 1; `bump` is a version bump too small for the changes.",
)
@choice_option("--format", "form", of=_FORMATS, default="text", help="Output format.")
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
    if as_json or form == "json":
        print_json(report.to_json())
    elif form == "text":
        print_findings(report.other_findings)
        print_lines(_lines(report))
    else:
        click.echo(markdown(report) if form == "markdown" else reporter(form)(report.findings_report()), nl=False)
    return 1 if report.failed else 0


def _compare(
    old: str, new: str, category: Category, fail_on: FailOn, known: list[Approval], *, options: dict[str, Any]
) -> ChangeReport:
    with ExitStack() as open_files:
        before = contract_of(old, new, options, open_files, tolerant=True)
        after = contract_of(new, old, options, open_files)
        return compare(
            old,
            new,
            before.contract,
            after.contract,
            category=category,
            fail_on=fail_on,
            approvals=known,
            place=after.place,
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
        replace_text(path, with_entries(path.read_text("utf-8") if path.exists() else "", added), create=True)
    except OSError as error:
        raise ConfigError(f"cannot write the approvals to {path}: {error.strerror or error}") from error
    click.echo(f"{len(added)} approved in {path}", err=True)


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
    if report.failing:
        yield line("To accept these changes, add --approve --reason TEXT; their fingerprints are recorded.")


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
        yield line((f"                  {where}fingerprint {change.fingerprint}", _QUIET))
