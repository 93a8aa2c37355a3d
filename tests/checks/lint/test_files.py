"""What stands around a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from bespeak.checks.lint.config import Config
from bespeak.checks.lint.project import Deployments
from bespeak.errors import ContractError

SERVER = """
[server]
server_id = "rooms.example"
operator = "Rooms"
contact = "ops@rooms.example"
catalog = "1.0.0"

[policies.methods]
custom = ["FLARE"]
"""
RECIPES = '[[recipe]]\nname = "trip"\n[[recipe.steps]]\nmethod = "BOOK"\npath = "/room"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "endpoints" / "deep").mkdir(parents=True)
    (tmp_path / "bespeak.toml").write_text(SERVER)
    (tmp_path / "agtp-recipes.toml").write_text(RECIPES)
    return tmp_path


def test_file_has_the_catalog_policies_and_recipes_of_its_deployment_unless_that_is_broken(folder: Path) -> None:
    context = Deployments().context(folder / "endpoints" / "deep" / "x.toml", Config())
    assert str(context.catalog.version) == "1.0.0" or context.catalog.version == (1, 0, 0)
    assert "FLARE" in context.policies.methods.custom
    assert [recipe.name for recipe in context.recipes] == ["trip"]
    (folder / "bespeak.toml").write_text("[server\n")
    assert Deployments().context(folder / "x.toml", Config()).policies.methods.custom == ()


def test_settings_go_before_the_deployment(folder: Path) -> None:
    config = Config(
        base=folder, catalog="1.1.0", conformance_level=2, allowed_verbs=("Flare",), allowed_segments=("book",)
    )
    context = Deployments().context(folder / "endpoints" / "x.toml", config)
    default = Deployments().context(folder / "endpoints" / "x.toml", Config())
    assert context.catalog.version != default.catalog.version
    assert (context.level, context.allowed_verbs, context.allowed_segments) == (2, {"FLARE"}, {"book"})


def test_folder_of_endpoints_makes_a_deployment_and_a_missing_catalog_stops_the_run(tmp_path: Path) -> None:
    (tmp_path / "endpoints").mkdir()
    deployment = Deployments().deployment(tmp_path / "endpoints" / "x.toml")
    assert deployment is not None
    assert (deployment.root, deployment.configuration) == (tmp_path, None)
    assert Deployments().deployment(tmp_path / "x.toml") is None
    assert Deployments().context(tmp_path / "x.toml", Config()).recipes == ()
    with pytest.raises(ContractError, match="catalog"):
        Deployments().context(tmp_path / "x", Config(base=tmp_path, catalog="none.json"))


def test_missing_catalog_is_reported_at_its_key(folder: Path) -> None:
    (folder / "bespeak.toml").write_text(SERVER.replace("1.0.0", "9.9.9"))
    deployment = Deployments().deployment(folder / "x.toml")
    assert deployment is not None
    [finding] = deployment.wrong
    assert (finding.rule, finding.pointer) == ("V562", "/server/catalog")


def test_a_document_from_elsewhere_has_the_settings_and_no_deployment(folder: Path) -> None:
    surroundings = Deployments()
    near = surroundings.context(folder / "bespeak.toml", Config(conformance_level=2))
    far = surroundings.context(None, Config(conformance_level=2))
    assert near.recipes
    assert (far.recipes, far.level) == ((), 2)
