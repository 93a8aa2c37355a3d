"""Deployment that a file belongs to, with its catalog, policies and recipes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from bespeak.checks.lint.config import Config
from bespeak.checks.lint.context import Context
from bespeak.checks.lint.registration import effective_policies
from bespeak.contract.catalog.bundled import load_bundled, open_catalog
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe
from bespeak.documents.deployment.folder import CONFIGURATIONS, ENDPOINTS, RECIPES
from bespeak.errors import ContractError
from bespeak.text.diagnostics.diagnostic import Diagnostic


@dataclass(frozen=True, slots=True)
class Deployment:
    """Folder whose endpoint files are served together."""

    root: Path
    configuration: Path | None = None
    catalog: Catalog | None = None
    """Catalog; None for the default one."""
    policies: Policies | None = None
    recipes: tuple[Recipe, ...] = ()
    wrong: tuple[Diagnostic, ...] = ()
    """Findings about the configuration that involve other files, with pointers into it."""


class Surroundings:
    """Deployments of a run, each read once."""

    def __init__(self) -> None:
        self._above: dict[Path, Path | None] = {}
        self._deployments: dict[Path, Deployment] = {}
        self._catalogs: dict[tuple[Path, str], Catalog] = {}

    def deployment(self, path: Path) -> Deployment | None:
        """Return the deployment of a file: that of the nearest parent folder that is one."""
        root = self._root(path.absolute().parent)
        if root is None:
            return None
        if root not in self._deployments:
            self._deployments[root] = _read(root)
        return self._deployments[root]

    def context(self, path: Path, config: Config) -> Context:
        """Return the context for a file."""
        return self._context(self.deployment(path), config)

    def remote_context(self, config: Config) -> Context:
        """Return the context for a fetched document: the settings without a deployment."""
        return self._context(None, config)

    def _context(self, deployment: Deployment | None, config: Config) -> Context:
        catalog = self._catalog(config) or (deployment.catalog if deployment else None) or load_bundled()
        return Context(
            catalog=catalog,
            policies=(deployment.policies if deployment else None) or Policies(),
            recipes=deployment.recipes if deployment else (),
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


def _read(root: Path) -> Deployment:
    configuration = _configuration(root)
    if configuration is None:
        return Deployment(root, recipes=_recipes(None, root, root / ENDPOINTS))
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
    return Deployment(root, configuration, catalog, policies, recipes, tuple(wrong))


def _recipes(configured: Path | None, *folders: Path) -> tuple[Recipe, ...]:
    paths = [configured] if configured else [folder / RECIPES for folder in folders]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return ()
    from bespeak.documents.deployment.recipes_toml import read_recipes  # noqa: PLC0415 - as above

    return read_recipes(path)[0]
