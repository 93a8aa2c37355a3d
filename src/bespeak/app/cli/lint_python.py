"""Endpoints written in Python for `bespeak lint`: their module is imported, as every command that takes an app does."""

from __future__ import annotations

import ast
import contextlib
import sys
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from bespeak.app.server.linting import add_service, open_results
from bespeak.app.server.target import join_app, open_app
from bespeak.checks.lint.project import Project
from bespeak.checks.lint.rules.handler import MODULE, OPEN_RESULT, TYPE_ADVICE
from bespeak.contract.catalog.document import load_bundled, open_catalog
from bespeak.contract.handler import RegisteredFunction
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.deployment.server_toml import read_server
from bespeak.errors import ConfigError, ContractError
from bespeak.terminal.deployment import configuration_of
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.tree import MAX_BYTES, Location


def check_apps(project: Project, targets: Iterable[str]) -> None:
    """Check the apps that were named, and those that the configurations of the run name."""
    for target in targets:
        file = Path(target) if target.endswith(".py") else None
        _check(project, target, Path.cwd(), file, configuration_of(target)[1])
    for configuration in project.configurations():
        server, _ = read_server(configuration)
        if server.main.app is not None:
            _check(project, server.main.app, configuration.parent, None, configuration)
        _check_results(project, configuration)


def _check_results(project: Project, configuration: Path) -> None:
    """Find functions without a return type among those that a deployment names. They are read, not imported."""
    deployment, _ = read_deployment(configuration)
    handlers = [endpoint.handler for endpoint in deployment.endpoints]
    handlers += [entry.handler for entry in deployment.server.handlers]
    for dotted in sorted({handler.function for handler in handlers if isinstance(handler, RegisteredFunction)}):
        module, _, name = dotted.rpartition(".")
        stem = configuration.parent / module.replace(".", "/")
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            text = read_text(path, MAX_BYTES) if module and path.is_file() else None
            line = _untyped(text, name) if isinstance(text, str) else None
            if line is not None:
                message = f"{name}() does not say what it returns, so every field of its results is sent"
                finding = OPEN_RESULT.found(message, Location(str(path), line), advice=TYPE_ADVICE)
                project.add_findings(path.absolute(), [finding])


def _untyped(text: str, name: str) -> int | None:
    """Return the line of a function that does not say what it returns; None if it does, or is not here."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            shown = "Any" if node.returns is None else ast.unparse(node.returns).strip("'\"")
            return node.lineno if shown.removeprefix("typing.") in ("Any", "object") else None
    return None


def _check(project: Project, target: str, base: Path, file: Path | None, configuration: Path | None) -> None:
    try:
        # What a module prints must not end up in a report.
        with contextlib.redirect_stdout(sys.stderr), _own_modules(base):
            app = open_app(target, base)
            service = app.service()
            unsaid = list(open_results(service))
            if configuration is not None:
                deployed = read_deployment(configuration, beside_app=True)[0]
                joined = join_app(deployed.service(), service, deployed.server, app.location)
                service = replace(service, policies=joined.policies, catalog=joined.catalog)
    except ContractError as error:
        findings = [finding for finding in error.findings if isinstance(finding, Diagnostic)]
        _report(project, findings or [MODULE.found(str(error))], _place(error.__cause__ or error, base, target, file))
        return
    except ConfigError as error:
        cause = error.__cause__
        place = _place(cause or error, base, target, file)
        message = f"importing {target} failed with {type(cause).__name__}: {cause}" if cause else str(error)
        _report(project, [MODULE.found(message, place, advice="Fix it; nothing in the module was checked.")], place)
        return
    add_service(project, service, open_catalog(service.catalog, base)[0] or load_bundled())
    for source, finding in unsaid:
        project.add_findings(Path(source.file).absolute(), [replace(finding, location=source)])


@contextlib.contextmanager
def _own_modules(base: Path) -> Iterator[None]:
    """Forget the modules of a folder afterwards: another deployment of the run may have modules of the same names."""
    before, path = set(sys.modules), list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(base.resolve()):
                del sys.modules[name]


def _report(project: Project, findings: list[Diagnostic], place: Location) -> None:
    files: dict[str, list[Diagnostic]] = defaultdict(list)
    for finding in findings:
        files[finding.location.file if finding.location else place.file].append(finding)
    for file, found in files.items():
        project.add_findings(Path(file).absolute(), found)


def _place(error: BaseException, base: Path, target: str, file: Path | None) -> Location:
    """Return the line of the user's code where an import failed."""
    if isinstance(error, SyntaxError) and error.filename:
        return Location(error.filename, error.lineno or 1, error.offset or 1)
    ours = str(Path(__file__).parents[2])
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith((ours, "<")) and Path(frame.filename).is_relative_to(base.absolute()):
            return Location(frame.filename, frame.lineno or 1)
    return Location(str(file or base / f"{target.partition(':')[0].replace('.', '/')}.py"))
