"""Check a text in an editor by the same run as `bespeak lint`, and convert its findings to LSP diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lsprotocol import types

from bespeak.app.lsp.cursor import Positions
from bespeak.checks.lint.config import Configs, Judge, relative_to
from bespeak.checks.lint.document import read_subject
from bespeak.checks.lint.project import STDIN, Deployments, Options, Project, looks_ours
from bespeak.checks.lint.subject import Kind, Subject
from bespeak.checks.lint.suppress import UNUSED, read_baseline
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.catalog.document import load_bundled
from bespeak.documents.deployment.folder import AGENT_SUFFIX, CONFIGURATIONS, RECIPES
from bespeak.errors import BespeakError, ContractError
from bespeak.text.diagnostics.diagnostic import Diagnostic, Severity
from bespeak.text.diagnostics.report import Finding
from bespeak.text.reading.rules import UNREADABLE, WRONG_VALUE

LONGEST: Final = 1 << 21  # Maximum characters of a text that is checked while typing. `bespeak lint` reads longer ones.
_SUFFIXES: Final = (".agis", ".toml", ".json")
_WELL_KNOWN: Final = (".well-known", "ai")


@dataclass(frozen=True, slots=True)
class CheckedText:
    text: str
    findings: tuple[Finding, ...] = ()
    subject: Subject | None = None  # the parsed text; None if it cannot be parsed, which is common while typing
    catalog: Catalog | None = None
    judge: Judge | None = None  # the settings in force; None if they are not valid


def is_ours(path: Path | None, language: str, text: str) -> bool:
    """Return True if bespeak handles the document; editors send any JSON or TOML file."""
    if language == "agis" or path is None:
        return language == "agis"
    return (path.name.endswith(_SUFFIXES) or path.parts[-2:] == _WELL_KNOWN) and looks_ours(path.name, text)


def guess_kind(path: Path | None, text: str) -> Kind:
    """Guess the kind of a document that cannot be parsed, from its name and its words."""
    name = path.name if path else ""
    if name.endswith(".toml"):
        return "recipes" if name == RECIPES else "server" if name in CONFIGURATIONS else "endpoint"
    if name.endswith(".agis") or '"agis"' in text or path is None:
        return "agis"
    if name.endswith(AGENT_SUFFIX) or '"agent_id"' in text:
        return "agent"
    return "ai" if '"aiendpoint"' in text else "manifest"


def is_excluded(path: Path, here: Path) -> bool:
    """Return True if the settings exclude a file or a folder above it."""
    config = Configs(here).of(path.parent.absolute())
    above = [folder for folder in path.absolute().parents if folder.is_relative_to(config.base)]
    return any(config.excludes(entry) for entry in (path, *above) if entry != config.base)


def check(text: str, path: Path | None, here: Path) -> CheckedText:
    """Return the findings `bespeak lint` would report if the text were saved. `here` is the project folder."""
    if len(text) > LONGEST:
        millions = LONGEST >> 20
        message = f"this document has more than {millions} million characters and is not checked while it is edited"
        found = UNREADABLE.found(message, advice="Run `bespeak lint` on it.", severity="info")
        return CheckedText(text, (Finding(found),))
    try:
        return _run(text, path, here)
    except ContractError as error:
        return CheckedText(text, tuple(_about_settings(error.message, error.findings)))
    except BespeakError as error:
        return CheckedText(text, tuple(_about_settings(str(error), ())))


def _run(text: str, path: Path | None, here: Path) -> CheckedText:
    if path is not None and is_excluded(path, here):
        return CheckedText(text)
    configs = Configs(here)
    project = Project(here, configs, Options(with_edits=True))
    project.add_text(text, path)
    project.check_together()
    known = next((file for file in project.baselines() if file.is_file()), None)
    outcome = project.outcome(read_baseline(known) if known else None)
    shown = relative_to(path, here) if path else STDIN
    config = configs.of((path.parent if path else here).absolute())
    subject = read_subject(text, shown)
    return CheckedText(
        text,
        # Stale baseline entries are findings about the baseline file.
        tuple(finding for finding in outcome.findings if finding.file in ("", shown)),
        None if isinstance(subject, Diagnostic) else subject,
        Deployments().context(path or here / STDIN, config).catalog,
        Judge(config),
    )


def _about_settings(message: str, findings: Iterable[object]) -> Iterable[Finding]:
    """Report invalid settings at the top of every document they apply to."""
    known = [finding for finding in findings if isinstance(finding, Diagnostic)]
    for finding in known or [WRONG_VALUE.found(message)]:
        where = f" ({finding.location})" if finding.location else ""
        text = f"{message} {finding.message}{where}" if known else message
        yield Finding(replace(finding, message=text, location=None, fix=None))


def catalog_of(checked: CheckedText | None) -> Catalog:
    """Return the catalog for a text; the default one before the first check."""
    return (checked.catalog if checked else None) or load_bundled()


SOURCE: Final = "bespeak"
MOST: Final = 1000  # maximum number of findings shown per document; more slow an editor down and do not help

_SEVERITIES: Final[dict[Severity, types.DiagnosticSeverity]] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


def shown(findings: Sequence[Finding], positions: Positions) -> list[types.Diagnostic]:
    """Convert the findings of a document, up to the maximum, followed by the number of the rest."""
    made = [to_diagnostic(finding, positions) for finding in findings[:MOST]]
    if len(findings) > MOST:
        more = f"{len(findings) - MOST} more findings are not shown; `bespeak lint` shows all of them."
        severity = types.DiagnosticSeverity.Information
        made.append(types.Diagnostic(positions.place(None), more, severity, source=SOURCE))
    return made


def to_diagnostic(finding: Finding, positions: Positions) -> types.Diagnostic:
    """Convert a finding. Its `data` identifies it in requests for code actions."""
    said = finding.diagnostic
    return types.Diagnostic(
        range=positions.place(said.location),
        message=f"{said.message}\n{said.help}" if said.help else said.message,
        severity=_SEVERITIES[said.severity],
        code=said.rule,
        source=SOURCE,
        tags=[types.DiagnosticTag.Unnecessary] if said.rule == UNUSED.id else None,
        data={"pointer": said.pointer, "fingerprint": finding.fingerprint},
    )


def touching(findings: Sequence[Finding], positions: Positions, wanted: types.Range) -> Iterator[Finding]:
    """Yield the findings that overlap or touch a range: a cursor is between two characters."""
    start, end = positions.offset(wanted.start), positions.offset(wanted.end)
    for finding in findings[:MOST]:
        place = positions.place(finding.diagnostic.location)
        if positions.offset(place.start) <= end and start <= positions.offset(place.end):
            yield finding
