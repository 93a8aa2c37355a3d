"""What to serve: a folder, a file, or `module:app` becomes a Service."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from bespeak.authoring.app import App
from bespeak.contract.service import Resource, Service
from bespeak.diagnostics.diagnostic import Diagnostic
from bespeak.documents.deployment import Deployment, read_deployment
from bespeak.documents.folder import is_folder, is_there
from bespeak.documents.positions import with_positions
from bespeak.documents.server_toml import ServerDocument
from bespeak.errors import BespeakError, ConfigError, ContractError
from bespeak.runtime.bindings.function import import_failure, resolve_function
from bespeak.server.collector import collector_paused


@dataclass(frozen=True, slots=True)
class Target:
    """A loaded target: the service, the folder its relative paths start from, its configuration."""

    service: Service
    base: Path
    document: ServerDocument = field(default_factory=ServerDocument)
    findings: list[Diagnostic] = field(default_factory=list)


@collector_paused()
def load_target(text: str) -> Target:
    """Read what a command was given. Raises ConfigError when there is nothing to serve in it."""
    place, _, name = text.rpartition(":") if _names_attribute(text) else (text, "", "app")
    path = Path(place)
    if text and (is_folder(path) or (path.suffix == ".toml" and is_there(path))):
        return _load_deployment(path)
    if path.suffix == ".py" and is_there(path):
        return Target(_app_in(_import_file(path), name).service(), path.parent)
    if _names_attribute(text) and all(part.isidentifier() for part in place.split(".")):
        _make_importable(Path.cwd())
        return Target(_app_in(_import_module(place), name).service(), Path.cwd())
    raise ConfigError(
        f"nothing to serve at {text!r}: give a folder with a bespeak.toml or endpoints/, a .toml or .py file, "
        "or module:app"
    )


def _names_attribute(text: str) -> bool:
    """Whether the text ends in `:name`. A drive letter is no module."""
    head, _, name = text.rpartition(":")
    return len(head) > 1 and name.isidentifier()


def _load_deployment(path: Path) -> Target:
    deployment, findings = read_deployment(path)
    if deployment.faults:
        raise ContractError("the configuration cannot be used", with_positions(deployment.faults))
    _make_importable(deployment.root)
    service = _bind_functions(deployment)
    if deployment.server.app is not None:
        module, _, name = deployment.server.app.partition(":")
        service = _join(service, _app_in(_import_module(module), name or "app").service(), deployment.server)
    return Target(service, deployment.root, deployment.server, findings)


def _join(files: Service, app: Service, document: ServerDocument) -> Service:
    """An app inside a deployment: its endpoints join those of the files, its settings yield to what a file says."""
    return replace(
        files,
        identity=files.identity if document.identity is not None else app.identity,
        policies=files.policies if "policies" in document.given else app.policies,
        catalog=document.catalog or app.catalog,
        endpoints=(*files.endpoints, *app.endpoints),
        resources=(*files.resources, *app.resources),
        wildcard_handler=files.wildcard_handler or app.wildcard_handler,
    )


def _bind_functions(deployment: Deployment) -> Service:
    """The service of a deployment, with the functions its configuration names imported."""
    server = deployment.server
    wildcard = _function(server.wildcard_handler, "wildcard_handler") if server.wildcard_handler else None
    resources = tuple(
        Resource(
            name=resource.name,
            description=resource.description,
            items=_function(resource.function, f"resource {resource.name!r}"),
        )
        for resource in server.resources
    )
    return replace(deployment.service(), wildcard_handler=wildcard, resources=resources)


def _function(dotted: str, what: str) -> Any:
    function = resolve_function(dotted)
    if isinstance(function, str):
        raise ConfigError(f"{what}: {dotted!r} cannot be used: {function}")
    return function


def _make_importable(folder: Path) -> None:
    """Let a deployment's own modules be found, before anything else of the same name."""
    place = str(folder.resolve())
    if place not in sys.path:
        sys.path.insert(0, place)


def _import_file(path: Path) -> ModuleType:
    """A file as a module of its own name: a second `app.py` must not find the first one's module."""
    _make_importable(path.parent)
    name = f"bespeak_target_{path.stem}_{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _import_errors(str(path)):
        spec.loader.exec_module(module)
    return module


def _import_module(name: str) -> ModuleType:
    with _import_errors(name):
        return importlib.import_module(name)


@contextmanager
def _import_errors(what: str) -> Iterator[None]:
    """An operator's module may fail in any way; a contract that is wrong says so itself."""
    try:
        yield
    except BespeakError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(import_failure(what, error)) from error


def _app_in(module: ModuleType, name: str) -> App:
    found = getattr(module, name, None)
    if isinstance(found, App):
        return found
    apps = sorted(key for key, value in vars(module).items() if isinstance(value, App))
    advice = f"; it has {', '.join(apps)}" if apps else "; make one with bespeak.App(...)"
    raise ConfigError(f"{module.__name__} has no App named {name!r}{advice}")
