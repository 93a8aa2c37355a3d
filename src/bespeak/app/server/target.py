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
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bespeak.app.authoring.app import App
from bespeak.app.authoring.declarations import collected_mistakes
from bespeak.app.server import collector_paused
from bespeak.checks.lint.rules.handler import MODULE, NOT_IMPORTABLE
from bespeak.contract.catalog.document import open_catalog
from bespeak.contract.data_set import bind_sources, join_manifests
from bespeak.contract.handler import RegisteredFunction
from bespeak.contract.policy import Policies
from bespeak.contract.service import DEFAULT_CATALOG, UNSPECIFIED, Resource, ServerIdentity, Service
from bespeak.documents.deployment.deployment import Deployment, read_deployment
from bespeak.documents.deployment.endpoint_toml import HandlerEntry
from bespeak.documents.deployment.folder import CONFIGURATIONS, is_folder, is_same, is_there, read_toml, with_positions
from bespeak.documents.deployment.server_toml import (
    ServerDocument,
    check_identity,
    configuration_beside,
    configuration_naming,
    report_unread,
    with_custom,
    with_document,
)
from bespeak.documents.rules import CONTRADICTION, DATA_SET
from bespeak.errors import BespeakError, ConfigError, ContractError
from bespeak.runtime.bindings.function import describe_failure, read_lifespan, resolve_function
from bespeak.terminal.deployment import DESCRIPTIONS, app_name, names_attribute
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief
from bespeak.text.reading.table import Table
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.pointer import value_at
from bespeak.text.source.tree import Location

if TYPE_CHECKING:
    from bespeak.app.authoring.agis_contract import AgisContract

_T = TypeVar("_T")
_NOTHING: Final = (None, "", ())  # values that say nothing
_NOBODY: Final = ServerIdentity(server_id="", operator=UNSPECIFIED, contact="")
_COMMAND: Final = re.compile(
    r"\S*\b(?:python[\d.]*|uv|uvx|node|npx|docker|deno|bun|bunx)(?:\.exe)?\s+\S"
)  # of a server
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
        return _load_configured(text, path.parent, app_name(text))
    if names_attribute(text) and all(part.isidentifier() for part in place.split(".")):
        return _load_configured(text, Path.cwd(), text)
    advice = f"; the address of a service is agtp://{text}" if _ADDRESS.fullmatch(text) else ""
    if _COMMAND.match(text):
        advice = f"; for an MCP server run `bespeak import mcp {text!r} -o tools` and use `tools`"
    # A name without a suffix may also have been meant as a module; the advice covers both.
    missing = "" if not text or is_there(path) else f"; there is no file or folder {brief(place)} here"
    raise ConfigError(
        f"nothing to serve at {brief(text)}{missing}: give a folder with a bespeak.toml or endpoints/, "
        f"an .agis, .toml or .py file, module:app, or an OpenAPI file (.json, .yaml){advice}"
    )


def open_app(text: str, base: Path) -> App:
    """Import the App that `module:app`, or the path of a .py file, names. `base` is the folder of the module.

    Raises ContractError or ConfigError; the cause of the latter is the exception of the module.
    """
    place, _, name = text.rpartition(":") if names_attribute(text) else (text, "", "app")
    if place.endswith(".py"):
        return _app_in(_import_file(Path(place)), name, place)
    _make_importable(base)
    with _import_errors(place):
        module = importlib.import_module(place)
    return _app_in(module, name, place)


def _open_named(text: str, base: Path, configuration: Path) -> App:
    """Import the App that `[server] app` of a configuration names, and say so if that fails."""
    try:
        return open_app(text, base)
    except ConfigError as error:
        advice = f"; write app = {f'{Path(text).stem}:app'!r}" if text.endswith(".py") else ""
        raise ConfigError(f"`app` in [server] of {configuration}: {error}{advice}") from error.__cause__


def load_app(app: App, base: Path) -> Target:
    """Use an App as a target; `base` is the base folder of its relative paths."""
    if app.contract is not None and not app.contract.endpoints:
        raise app.contract.unserved()
    service = app.service()
    return Target(service, base, findings=[*check_identity(service.identity, app.location), *app.findings])


def _load_configured(app: App | str, folder: Path, name: str) -> Target:
    """Load an App with the configuration beside it. `app` may be its target; `name` is `module:app`."""
    configuration = configuration_beside(folder, name)
    if configuration is not None:
        return _load_deployment(configuration, app)
    target = load_app(open_app(app, folder) if isinstance(app, str) else app, folder)
    for each in CONFIGURATIONS:
        table = read_toml(folder / each) if is_there(folder / each) else None
        if isinstance(table, Table):
            target.findings.extend(report_unread(table, folder / each))
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
        apps = ((name, value) for name, value in vars(_import_file(module)).items() if isinstance(value, App))
        for name, app in apps:
            if app.contract is not None and is_same(app.contract.path, path):
                return _load_configured(app, path.parent, f"{module.stem}:{name}")
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


def _load_deployment(path: Path, app: App | str | None = None) -> Target:
    """Load a folder or a configuration; `app` is the App that it applies to if it names none, or the target of one."""
    deployment, findings = read_deployment(path, beside_app=app is not None)
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
        findings += [*check_identity(service.identity, Location(str(contract.path))), *wrong, *contract.findings]
        # The document alone says which classes of data there are.
        manifest, faults = bind_sources(service.data_manifest, server.data, closed=True)
        service = replace(service, data_manifest=manifest)
        findings += (DATA_SET.found(fault, Location(str(path)), f"/data/{number}") for number, fault in faults)
    app = app if server.main.app is None else server.main.app
    if app is not None:
        if isinstance(app, str):
            app = open_app(app, deployment.root) if server.main.app is None else _open_named(app, deployment.root, path)
        service = join_app(service, load_app(app, deployment.root).service, server, app.location)
        findings += [*check_identity(service.identity, Location(str(path))), *app.findings]
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


def join_app(files: Service, app: Service, document: ServerDocument, place: Location) -> Service:
    """Apply a configuration to an App, which is made at `place`: endpoints add up, and what only one says holds.

    Raises ContractError with everything that the two say differently.
    """
    joining = _Joining(document, place)
    usual_catalog = None if app.catalog == DEFAULT_CATALOG else app.catalog
    catalog = joining.choose("/server/catalog", document.main.catalog, usual_catalog) or files.catalog
    either = ("description", "document_version", "wildcard_handler", "lifespan", "vocabulary", "methods")
    elsewhere = {"vocabulary": "/vocabulary", "methods": "/methods/enable"}
    chosen: dict[str, Any] = {
        name: joining.choose(elsewhere.get(name, f"/server/{name}"), getattr(files, name), getattr(app, name))
        for name in either
    }
    identity = files.identity  # that of an AGIS document takes precedence
    if document.document is None:
        identity = joining.merge("/server", document.main.identity, app.identity, _NOBODY)
    written = "/policies" if "policies" in document.given else "/policy"
    policies = joining.merge(written, files.policies, app.policies, Policies())
    if joining.findings:
        raise ContractError("the app and its configuration say different things", joining.findings)
    return replace(
        files,
        **chosen,
        identity=identity,
        policies=with_custom(policies, app.policies.methods.custom),
        catalog=catalog,
        agtp=files.agtp or app.agtp,
        endpoints=(*files.endpoints, *app.endpoints),
        recipes=(*app.recipes, *files.recipes),
        resources=(*files.resources, *(one for one in app.resources if one not in files.resources)),
        procedures=(*files.procedures, *app.procedures),
        participants=(*files.participants, *app.participants),
        extensions=app.extensions,
        data_manifest=join_manifests(files.data_manifest, app.data_manifest),
        schemas={**app.schemas, **files.schemas},
    )


class _Joining:
    """Compares what a configuration and an App say, key by key."""

    def __init__(self, document: ServerDocument, place: Location) -> None:
        self.findings: list[Diagnostic] = []
        self._source = document.source
        self._place = place

    def choose(self, pointer: str, written: _T, declared: _T) -> _T:
        """Return the value that is given, None or empty if neither is. Report two that differ."""
        if written in _NOTHING or declared in _NOTHING:
            return declared if written in _NOTHING else written
        if written != declared:
            place = None if self._source is None else self._source.findings.locate(pointer)
            key = pointer.rpartition("/")[2]
            message = f"`{key}` is {brief(written)} here, but {brief(declared)} in the App at {self._place}"
            self.findings.append(CONTRADICTION.found(message, place, pointer, "Remove one of the two."))
        return written

    def merge(self, at: str, written: _T, declared: _T, usual: _T) -> _T:
        """Merge settings of one type. An App says what is not `usual`, and a file also what it has a key for."""
        values = {}
        for name in (one.name for one in fields(usual)):  # type: ignore[arg-type]
            mine, theirs, default = (getattr(one, name) for one in (written, declared, usual))
            if is_dataclass(default):
                values[name] = self.merge(f"{at}/{name}", mine, theirs, default)
            elif name != "custom":  # methods beyond the catalog add up
                data = {} if self._source is None else self._source.data
                said = mine != default or value_at(data, f"{at}/{name}", "") != ""
                pair = (mine if said else None, theirs if theirs != default else None)
                found = self.choose(f"{at}/{name}", *pair)
                values[name] = default if found is None else found
        return replace(written, **values)  # type: ignore[type-var]


def _bind_functions(deployment: Deployment) -> Service:
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


def _app_in(module: ModuleType, name: str, place: str) -> App:
    found = getattr(module, name, None)
    if isinstance(found, App):
        return found
    apps = sorted(key for key, value in vars(module).items() if isinstance(value, App))
    named = ", ".join(f"{place}:{key}" for key in apps)
    advice = f"name the one to use: {named}" if apps else f"make one with {name} = bespeak.App(...)"
    raise ConfigError(f"{place} has no App named {name!r}; {advice}")
