"""Promotion of a synthesis: its recipe and its endpoint as files of a deployment (AGTP-API 12.1)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bespeak.contract.handler import Composition
from bespeak.documents.deployment.folder import ENDPOINTS, RECIPES
from bespeak.documents.deployment.recipes_toml import read_recipes
from bespeak.documents.projections.deployment_files import endpoint_data, function_names
from bespeak.documents.toml_text import find_null, toml_text
from bespeak.errors import ConfigError
from bespeak.runtime.stored_endpoint import StoredEndpoint
from bespeak.text.diagnostics.diagnostic import has_errors

_LONGEST_NAME: Final = 100
"""Maximum characters of a name: it is that of a file."""


def promote_synthesis(stored: StoredEndpoint, folder: Path) -> list[Path]:
    """Write the endpoint into a new file and append its recipe; return both paths.

    Raises ConfigError if one of them exists already, or cannot be written as TOML.
    """
    assert stored.recipe is not None, "every synthesis has its recipe"
    name = function_names([stored.endpoint])[0].replace("_", "-")[:_LONGEST_NAME]
    endpoint = replace(stored.endpoint, handler=Composition(recipe=name))
    data = {"endpoint": {**endpoint_data(endpoint, ""), "handler": {"type": Composition.type, "recipe": name}}}
    recipe = {"recipe": [replace(stored.recipe, name=name, description=_describe(stored)).to_json()]}
    for part in (data, recipe):
        null = find_null(part)
        if null is not None:
            raise ConfigError(f"{endpoint} cannot be written as TOML, which has no null: {null}")
    path, recipes = folder / ENDPOINTS / f"{name}.toml", folder / RECIPES
    text = _append(recipes, name, recipe)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:  # never through a link, never over another's file
            file.write(toml_text(data))
        recipes.write_text(text, "utf-8")
    except FileExistsError as error:
        raise ConfigError(f"{error.filename} exists; move it away, or promote into another folder") from error
    except OSError as error:
        raise ConfigError(f"could not write {error.filename}: {error.strerror}") from error
    return [recipes, path]


def _append(path: Path, name: str, recipe: dict[str, Any]) -> str:
    text = toml_text(recipe, sections=("recipe", "steps"))
    if not path.exists():
        return text
    known, findings = read_recipes(path)
    if has_errors(findings):
        raise ConfigError(f"{path} has errors, so nothing is appended: {findings[0]}")
    if any(one.name == name for one in known):
        raise ConfigError(f"{path} has a recipe {name!r} already; rename it first")
    return f"{path.read_text('utf-8').rstrip()}\n\n{text}"


def _describe(stored: StoredEndpoint) -> str:
    return " ".join(stored.explanation)
