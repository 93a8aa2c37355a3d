"""Targets: turn a folder, an AGIS document, another file or `module:app` into a Service."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from bespeak.app.authoring.app import App
from bespeak.app.authoring.declarations import collected_mistakes
from bespeak.app.server.collector import collector_paused
from bespeak.checks.lint.rules.handler import MODULE, NOT_IMPORTABLE
from bespeak.contract.catalog.document import open_catalog
from bespeak.contract.data_set import bind_sources, join_manifests
from bespeak.contract.handler import RegisteredFunction
from bespeak.contract.service import DEFAULT_CATALOG, Resource, Service
from bespeak.documents.deployment.deployment import Deployment, read_deployment
from bespeak.documents.deployment.folder import CONFIGURATIONS, is_folder, is_same, is_there, with_positions
from bespeak.documents.deployment.handlers import HandlerEntry
from bespeak.documents.deployment.rules import DATA_SET
from bespeak.documents.deployment.server_toml import (
    ServerDocument,
    check_identity,
    configuration_naming,
    report_unread,
    with_custom,
    with_document,
)
from bespeak.errors import BespeakError, ConfigError, ContractError
from bespeak.runtime.bindings.function import describe_failure, read_lifespan, resolve_function
from bespeak.terminal.deployment import DESCRIPTIONS, names_attribute
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.table import Table
from bespeak.text.reading.text_file import read_text, toml_table
from bespeak.text.source.tree import Location

if TYPE_CHECKING:
    from bespeak.app.authoring.agis_contract import AgisContract


_ADDRESS: Final = re.compile(r"[A-Za-z0-9.-]+:[0-9]+")  # an address without its scheme


@dataclass(frozen=True, slots=True)
class Target:
    """A loaded target: the service, the base folder of its relative paths, its configuration."""

    service: Service
    base: Path
    document: ServerDocument = field(default_factory=ServerDocument)
    findings: list[Diagnostic] = field(default_factory=list)


@collector_paused()
def load_target(text: str) -> Target:
    """Load the target of a command. Raises ConfigError if there is nothing to serve."""
    place = text.rpartition(":")[0] if names_attribute(text) else text
    path = Path(place)
    if text and (is_folder(path) or (path.suffix == ".toml" and is_there(path))):
        return _load_deployment(path)
    if path.suffix == ".agis" and is_there(path):
        return _load_document(path)
    if path.suffix in DESCRIPTIONS and is_there(path):
        return _load_description(path)
    if path.suffix == ".py" and is_there(path):
        return _without_configuration(load_app(open_app(text, path.parent), path.parent))
    if names_attribute(text) and all(part.isidentifier() for part in place.split(".")):
        return _without_configuration(load_app(open_app(text, Path.cwd()), Path.cwd()))
    advice = f"; the address of a service is agtp://{text}" if _ADDRESS.fullmatch(text) else ""
    raise ConfigError(
        f"nothing to serve at {text!r}: give a folder with a bespeak.toml or endpoints/, an .agis, .toml or .py file, "
        f"module:app, or an OpenAPI file (.json, .yaml){advice}"
    )


def open_app(text: str, base: Path) -> App:
    """Import the App that `module:app`, or the path of a .py file, names. `base` is the folder of the module.

    Raises ContractError or ConfigError; the cause of the latter is the exception of the module.
    """
    place, _, name = text.rpartition(":") if names_attribute(text) else (text, "", "app")
    if place.endswith(".py"):
        return _app_in(_import_file(Path(place)), name)
    _make_importable(base)
    with _import_errors(place):
        module = importlib.import_module(place)
    return _app_in(module, name)


def load_app(app: App, base: Path) -> Target:
    """Use an App as a target; `base` is the base folder of its relative paths."""
    if app.contract is None:
        return Target(app.service(), base)
    if not app.contract.endpoints:
        raise app.contract.unserved()
    service = app.service()
    return Target(service, base, findings=[*check_identity(service.identity, app.contract.path), *app.findings])


def _without_configuration(target: Target) -> Target:
    """Warn of a configuration beside an App that is served on its own: what it guards is not guarded."""
    for name in CONFIGURATIONS:
        text = read_text(target.base / name) if is_there(target.base / name) else ""
        table = toml_table(text, str(target.base / name)) if isinstance(text, str) else text
        if isinstance(table, Table):
            target.findings.extend(report_unread(table, target.base / name))
    return target


def _load_document(path: Path) -> Target:
    """Load a document on its own; the configuration that names it, or the module of the same name, binds it."""
    configuration, wrong = configuration_naming(path)
    if wrong:
        raise ContractError("the configuration beside the document cannot be used", with_positions(wrong))
    if configuration is not None:
        return _load_deployment(configuration)
    module = path.with_suffix(".py")
    if is_there(module):
        for value in vars(_import_file(module)).values():
            if isinstance(value, App) and value.contract is not None and is_same(value.contract.path, path):
                return load_app(value, path.parent)
    raise _open_contract(path, ServerDocument(), path.parent).unserved()


def _load_description(path: Path) -> Target:
    """Load an OpenAPI description as the facade that `bespeak import openapi` would write for it."""
    from bespeak.documents.openapi.description import MOST_BYTES  # noqa: PLC0415
    from bespeak.documents.openapi.facade import import_description  # noqa: PLC0415 - slow to load
    from bespeak.documents.openapi.reader import read_description  # noqa: PLC0415

    text = read_text(path, MOST_BYTES)
    if isinstance(text, Diagnostic):
        raise ContractError(f"{path} cannot be read", [text])
    description, findings = read_description(text, str(path))
    if description is None:
        raise ContractError(f"{path} is not an OpenAPI description that can be used", findings)
    imported = import_description(description)
    if not imported.facades:
        reason = next((f": {entry.why}" for entry in imported.left_out), "")
        raise ConfigError(f"{path} has no operations that can be called{reason}")
    return Target(imported.service, path.parent, findings=[one for one in findings if one.severity != "info"])


def _load_deployment(path: Path) -> Target:
    deployment, findings = read_deployment(path)
    if deployment.faults:
        raise ContractError("the configuration cannot be used", with_positions(deployment.faults))
    _make_importable(deployment.root)
    service, server = _bind_functions(deployment), deployment.server
    if server.document is not None:
        contract = _open_contract(server.document, server, deployment.root)
        wrong = [finding for entry in server.handlers for finding in _bind_entry(contract, entry)]
        if not contract.endpoints and server.main.app is None:
            raise contract.unserved(wrong)
        service = with_document(service, replace(contract.service, endpoints=contract.endpoints), server)
        findings += [*check_identity(service.identity, contract.path), *wrong, *contract.findings]
        service, wrong = _bind_data(service, server, path)
        findings += wrong
    if server.main.app is not None:
        loaded = load_app(open_app(server.main.app, deployment.root), deployment.root)
        service = _join(service, loaded.service, server)
        findings += loaded.findings
    return Target(service, deployment.root, server, findings)


def _open_contract(path: Path, server: ServerDocument, base: Path) -> AgisContract:
    from bespeak.app.authoring.agis_contract import open_agis  # noqa: PLC0415 - other targets need no rules of AGIS

    catalog, found = open_catalog(server.main.catalog or DEFAULT_CATALOG, base)
    if catalog is None:
        raise ContractError("the catalog cannot be used", found)
    return open_agis(path, catalog, server.policies)


def _bind_entry(contract: AgisContract, entry: HandlerEntry) -> list[Diagnostic]:
    """Bind one entry of `[handlers]`; its function is imported here, so that an error can name the entry."""
    handler = entry.handler
    if isinstance(handler, RegisteredFunction):
        function = resolve_function(handler.function)
        if isinstance(function, str):
            message = f"{entry.method} {entry.path}: the handler {handler.function!r} cannot be used: {function}"
            return [NOT_IMPORTABLE.found(message, entry.location, entry.pointer)]
        handler = replace(handler, target=function)
    return contract.bind(entry.method, entry.path, handler, entry.location)


def _bind_data(service: Service, server: ServerDocument, path: Path) -> tuple[Service, list[Diagnostic]]:
    """Give the classes of a document the sources of `[[data]]`. The document alone says which classes there are."""
    manifest, faults = bind_sources(service.data_manifest, server.data, closed=True)
    findings = [DATA_SET.found(fault, Location(str(path)), f"/data/{number}") for number, fault in faults]
    return replace(service, data_manifest=manifest), findings


def _join(files: Service, app: Service, document: ServerDocument) -> Service:
    """Merge an App into a deployment: its endpoints join those of the files, and settings of files take precedence."""
    own = files.policies if "policies" in document.given or document.document is not None else app.policies
    used = {endpoint.method for endpoint in app.endpoints}
    named = replace(files.identity, name=files.identity.name or app.identity.name)
    either = ("methods", "wildcard_handler", "lifespan", "document_version", "description", "agtp", "vocabulary")
    return replace(
        files,
        **{name: getattr(files, name) or getattr(app, name) for name in either},
        identity=named if document.identity is not None else app.identity,
        # Verbs of the app's endpoints beyond the catalog are admitted, although settings of files take precedence.
        policies=with_custom(own, (verb for verb in app.policies.methods.custom if verb in used)),
        catalog=document.main.catalog or app.catalog,
        endpoints=(*files.endpoints, *app.endpoints),
        recipes=(*app.recipes, *files.recipes),
        resources=(*files.resources, *app.resources),
        procedures=(*files.procedures, *app.procedures),
        data_manifest=join_manifests(files.data_manifest, app.data_manifest),
        schemas={**app.schemas, **files.schemas},
    )


def _bind_functions(deployment: Deployment) -> Service:
    """Build the service of a deployment; import the functions that its configuration names."""
    server = deployment.server
    wildcard = _function(server.main.wildcard_handler, "wildcard_handler") if server.main.wildcard_handler else None
    lifespan = _function(server.main.lifespan, "lifespan") if server.main.lifespan else None
    resources = tuple(
        Resource(name=one.name, description=one.description, items=_function(one.function, f"resource {one.name!r}"))
        for one in server.resources
    )
    resident = None if lifespan is None else read_lifespan(lifespan)
    return replace(deployment.service(), wildcard_handler=wildcard, lifespan=resident, resources=resources)


def _function(dotted: str, what: str) -> Any:
    function = resolve_function(dotted)
    if isinstance(function, str):
        raise ConfigError(f"{what}: {dotted!r} cannot be used: {function}")
    return function


def _make_importable(folder: Path) -> None:
    place = str(folder.resolve())
    if place not in sys.path:
        sys.path.insert(0, place)


def _import_file(path: Path) -> ModuleType:
    """Import a file under a unique module name: a second `app.py` must not get the first one's module."""
    _make_importable(path.parent)
    name = f"bespeak_target_{path.stem}_{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _import_errors(str(path)):
        spec.loader.exec_module(module)
    return module


@contextmanager
def _import_errors(what: str) -> Iterator[None]:
    """Report any exception of an operator's module as a ConfigError, and mistakes of contracts all at once."""
    try:
        with collected_mistakes(what):
            yield
    except BespeakError:
        raise
    except SyntaxError as error:
        place = None if error.filename is None else Location(error.filename, error.lineno or 1, error.offset or 1)
        finding = MODULE.found(f"syntax error: {error.msg}", place)
        raise ContractError(f"{what} cannot be imported", [finding]) from error
    except (Exception, SystemExit) as error:
        raise ConfigError(describe_failure(f"importing {what}", error)) from error


def _app_in(module: ModuleType, name: str) -> App:
    found = getattr(module, name, None)
    if isinstance(found, App):
        return found
    apps = sorted(key for key, value in vars(module).items() if isinstance(value, App))
    advice = f"; it has {', '.join(apps)}" if apps else "; make one with bespeak.App(...)"
    raise ConfigError(f"{module.__name__} has no App named {name!r}{advice}")
