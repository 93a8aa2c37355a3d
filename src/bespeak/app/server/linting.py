"""Findings about a loaded service: its endpoints are checked at their places in Python files, without an import."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bespeak.checks.lint.config import Configs
from bespeak.checks.lint.project import Options, Project
from bespeak.checks.lint.rule_index import all_rules
from bespeak.checks.lint.suppress import read_baseline
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import RegisteredFunction
from bespeak.contract.service import Service
from bespeak.runtime.bindings.function import plan_output
from bespeak.runtime.functions.reading import locate
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Report
from bespeak.text.diagnostics.reporters.json_report import document
from bespeak.text.diagnostics.reporters.text import frame_of
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.tree import MAX_BYTES, Location


def add_service(project: Project, service: Service, catalog: Catalog) -> None:
    """Add the endpoints that are declared in Python files to a run."""
    for path, endpoints in _by_file(service):
        text = read_text(path, MAX_BYTES)
        if isinstance(text, Diagnostic):
            project.add_findings(path, [text])
        else:
            project.add_python(path, text, endpoints, catalog, service.policies, recipes=service.recipes)


def _by_file(service: Service) -> Iterator[tuple[Path, list[Endpoint]]]:
    """Group the endpoints whose declaration is Python; those bound to an AGIS document are checked with it."""
    files: dict[str, list[Endpoint]] = defaultdict(list)
    for endpoint in service.endpoints:
        if endpoint.location is not None and endpoint.location.file.endswith(".py"):
            files[endpoint.location.file].append(endpoint)
    return ((Path(file).absolute(), endpoints) for file, endpoints in files.items())


def open_results(service: Service) -> Iterator[tuple[Location, Diagnostic]]:
    """Yield the functions that do not say what they return, and where they are."""
    for endpoint in service.endpoints:
        function = endpoint.handler.target if isinstance(endpoint.handler, RegisteredFunction) else None
        finding = plan_output(endpoint, endpoint.output_schema).finding if function is not None else None
        source = locate(function) if function is not None else None
        if finding is not None and source is not None:
            yield source, finding


def lint_served(target: str, service: Service, catalog: Catalog) -> dict[str, Any]:
    """Check a service that is being served, with the files of its target; return the report as `bespeak lint --json`.

    Each finding has a `frame` as well: the line of its source, with carets.
    """
    project = Project(Path.cwd(), Configs(Path.cwd()), Options())
    path = Path(target)
    if path.exists() and path.suffix != ".py":
        project.add((path,))
    add_service(project, service, catalog)
    for source, finding in open_results(service):
        project.add_findings(Path(source.file).absolute(), [replace(finding, location=source)])
    project.check_together()
    baseline = next((one for one in project.baselines() if one.is_file()), None)
    outcome = project.outcome(None if baseline is None else read_baseline(baseline))
    report = Report(
        findings=outcome.findings,
        version=version("bespeak"),
        files=outcome.files,
        rules=all_rules(),
        source=project.text,
        ignored=outcome.ignored,
        baselined=outcome.baselined,
    )
    told = document(report)
    for entry, found in zip(told["findings"], report.findings, strict=True):
        entry["frame"] = frame_of(found.diagnostic, project.text)
    return told
