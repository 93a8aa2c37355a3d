"""Files to check, and the deployment that a file belongs to, with its catalog, policies and recipes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from bespeak.checks.lint.config import Config
from bespeak.checks.lint.registration import effective_policies
from bespeak.checks.lint.subject import LintContext
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.catalog.document import load_bundled, open_catalog
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe
from bespeak.documents.deployment.folder import AGENT_SUFFIX, CONFIGURATIONS, ENDPOINTS, RECIPES
from bespeak.errors import ContractError
from bespeak.text.diagnostics.diagnostic import Diagnostic

Excluded = Callable[[Path], bool]  # function that returns True if settings exclude a file or folder

_SKIPPED: Final = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
"""Folders with third-party files. Hidden folders are skipped, too."""

_ENDPOINT: Final = re.compile(r"^[ \t]*+\[[ \t]*+endpoint[ \t]*+[.\]]", re.MULTILINE)
_JSON_KEYS: Final = ('"agis"', '"aiendpoint"', '"agtp_version"', '"agtp_api_version"')


def walk(folder: Path, excluded: Excluded) -> Iterator[Path]:
    """Find the files in a folder tree that may be documents, by path. No folder is entered twice."""
    entered: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            status = here.stat()
            if (status.st_dev, status.st_ino) in entered:
                continue
            entered.add((status.st_dev, status.st_ino))
            with os.scandir(here) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            continue  # unreadable folders are skipped
        folders: list[Path] = []
        for entry in entries:
            if entry.name.startswith(".") or entry.name in _SKIPPED:
                continue
            path, is_folder = here / entry.name, _is_folder(entry)
            if (not is_folder and not entry.name.endswith((".agis", ".toml", ".json"))) or excluded(path):
                continue
            if is_folder:
                folders.append(path)
            else:
                yield path
        waiting.extend(reversed(folders))


def looks_ours(name: str, text: str) -> bool:
    """Return True if a file looks like a bespeak document; most TOML and JSON files do not."""
    if name.endswith((".agis", AGENT_SUFFIX)) or name in (*CONFIGURATIONS, RECIPES):
        return True
    if name.endswith(".toml"):
        return _ENDPOINT.search(text) is not None
    return any(key in text for key in _JSON_KEYS) or ('"endpoints"' in text and '"vocabulary"' in text)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


@dataclass(frozen=True, slots=True)
class DeploymentFolder:
    """Folder whose endpoint files are served together."""

    root: Path
    configuration: Path | None = None
    catalog: Catalog | None = None  # catalog; None for the default one
    policies: Policies | None = None
    recipes: tuple[Recipe, ...] = ()
    wrong: tuple[Diagnostic, ...] = ()  # About the configuration, if they involve other files.


class Deployments:
    """Deployments of a run, each read once."""

    def __init__(self) -> None:
        self._above: dict[Path, Path | None] = {}
        self._deployments: dict[Path, DeploymentFolder] = {}
        self._catalogs: dict[tuple[Path, str], Catalog] = {}

    def deployment(self, path: Path) -> DeploymentFolder | None:
        """Return the deployment of a file: that of the nearest parent folder that is one."""
        root = self._root(path.absolute().parent)
        if root is None:
            return None
        if root not in self._deployments:
            self._deployments[root] = _read(root)
        return self._deployments[root]

    def context(self, path: Path | None, config: Config) -> LintContext:
        """Return the context for a file; without one, for a fetched document, which belongs to no deployment."""
        deployment = (self.deployment(path) if path is not None else None) or DeploymentFolder(config.base)
        return LintContext(
            catalog=self._catalog(config) or deployment.catalog or load_bundled(),
            policies=deployment.policies or Policies(),
            recipes=deployment.recipes,
            level=config.conformance_level,
            allowed_verbs=frozenset(verb.upper() for verb in config.allowed_verbs),
            allowed_segments=frozenset(config.allowed_segments),
        )

    def _catalog(self, config: Config) -> Catalog | None:
        if config.catalog is None:
            return None
        key = (config.base, config.catalog)
        if key not in self._catalogs:
            catalog, findings = open_catalog(config.catalog, config.base)
            if catalog is None:
                raise ContractError("The catalog in the lint settings is not usable.", findings)
            self._catalogs[key] = catalog
        return self._catalogs[key]

    def _root(self, folder: Path) -> Path | None:
        if folder not in self._above:
            if _configuration(folder) is not None:
                root: Path | None = folder
            elif folder.name == ENDPOINTS and _configuration(folder.parent) is None:
                root = folder.parent
            else:
                root = self._root(folder.parent) if folder.parent != folder else None
            self._above[folder] = root
        return self._above[folder]


def _configuration(folder: Path) -> Path | None:
    return next((folder / name for name in CONFIGURATIONS if (folder / name).is_file()), None)


def _read(root: Path) -> DeploymentFolder:
    configuration = _configuration(root)
    if configuration is None:
        return DeploymentFolder(root, recipes=_recipes(None, root, root / ENDPOINTS))
    from bespeak.documents.deployment.server_toml import read_server  # noqa: PLC0415 - most runs have no deployment

    # Faults in the files themselves are found when they are checked.
    server, _ = read_server(configuration)
    wrong: list[Diagnostic] = []
    catalog: Catalog | None = None
    if server.main.catalog is not None:
        catalog, findings = open_catalog(server.main.catalog, root)
        if catalog is None:
            wrong = [replace(finding, location=None, pointer="/server/catalog") for finding in findings[:1]]
    policies, _ = effective_policies(server.policies, catalog or load_bundled())
    recipes = _recipes(server.recipes, root, server.main.endpoints or root / ENDPOINTS)
    return DeploymentFolder(root, configuration, catalog, policies, recipes, tuple(wrong))


def _recipes(configured: Path | None, *folders: Path) -> tuple[Recipe, ...]:
    paths = [configured] if configured else [folder / RECIPES for folder in folders]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return ()
    from bespeak.documents.deployment.endpoint_toml import read_recipes  # noqa: PLC0415 - as above

    return read_recipes(path)[0]
