"""Location of a deployment's state: from the command line, else its configuration, else its folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from bespeak.documents.deployment.folder import CONFIGURATIONS, is_folder, is_there, with_positions
from bespeak.documents.deployment.server_toml import (
    ServerDocument,
    configuration_beside,
    configuration_naming,
    read_server,
)
from bespeak.errors import ConfigError, ContractError
from bespeak.state.store.settings import MissingVariable, StoreSettings

DESCRIPTIONS: Final = (".json", ".yaml", ".yml")  # suffixes of OpenAPI files


def store_place(target: str, override: str | None = None) -> str:
    """Return the place of a target's store: `override` (--store), else `[store] place`, else `bespeak.db` beside it.

    Only the configuration is read: no code of the operator is imported, and invalid endpoints block nothing.
    """
    if override is not None:
        if not override.strip():
            raise ConfigError("--store is empty: give a file, memory or postgresql://..., or leave the option out")
        return override
    base, configuration = configuration_of(target)
    settings = StoreSettings()
    if configuration is not None:
        document, findings = read_server(configuration)
        errors = [finding for finding in findings if finding.severity == "error"]
        if errors and document == ServerDocument():
            raise ContractError("the configuration cannot be used", with_positions(errors))
        wrong = [finding for finding in errors if f"{finding.pointer}/".startswith("/store/")]
        if wrong:
            raise ContractError("the configuration does not say where the store is", with_positions(wrong))
        settings = document.store
    place = settings.located(base, os.environ)
    if isinstance(place, MissingVariable):
        needed = f"`place` of [store] needs the environment variable {place.name!r}, which is not set"
        raise ConfigError(f"{needed}. Set it, or name the store with --store.")
    return place


def server_document(target: str) -> ServerDocument:
    _, configuration = configuration_of(target)
    return read_server(configuration)[0] if configuration is not None else ServerDocument()


def names_attribute(text: str) -> bool:
    """Return True if the text ends in `:name`. A drive letter is not a module."""
    head, _, name = text.rpartition(":")
    return len(head) > 1 and name.isidentifier()


def app_name(target: str) -> str:
    """Return `module:app` for the path of a .py file, as a configuration beside it would name the app."""
    place, _, name = target.rpartition(":") if names_attribute(target) else (target, "", "app")
    return f"{Path(place).stem}:{name}"


def configuration_of(target: str) -> tuple[Path, Path | None]:
    """Return the folder of a target, and its configuration file if there is one."""
    place = Path(target.rpartition(":")[0] if names_attribute(target) else target)
    if target and is_folder(place):
        return place, next((place / name for name in CONFIGURATIONS if is_there(place / name)), None)
    if is_there(place) and place.suffix == ".toml":
        return place.parent, place
    if is_there(place) and place.suffix == ".agis":
        return place.parent, configuration_naming(place)[0] or configuration_beside(place.parent, app_name(target))
    if is_there(place) and place.suffix == ".py":
        return place.parent, configuration_beside(place.parent, app_name(target))
    if is_there(place) and place.suffix in DESCRIPTIONS:
        return place.parent, None
    if names_attribute(target) and all(part.isidentifier() for part in str(place).split(".")):
        return Path(), configuration_beside(Path(), target)
    advice = "give a folder, an .agis, .toml or .py file, or module:app; or name the store with --store"
    raise ConfigError(f"there is no deployment at {target!r}: {advice}")
