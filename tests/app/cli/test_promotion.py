"""Files of a promoted synthesis."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.runtime.negotiation.negotiating import FIND, LODGINGS

from bespeak.app.cli.proposals import promote_synthesis
from bespeak.contract.handler import Composition
from bespeak.documents.deployment.endpoint_toml import endpoint_of, read_recipes
from bespeak.errors import ConfigError
from bespeak.runtime.additions import StoredEndpoint
from bespeak.text.reading.table import Table
from bespeak.text.reading.text_file import read_text, toml_table

STORED = StoredEndpoint(
    endpoint=replace(FIND, path="/lodgings", handler=Composition(recipe="synthesis-1")),
    recipe=replace(LODGINGS, name="synthesis-1", pattern={}),
    explanation=("Calls FIND /rooms.",),
)


def test_files_are_read_back_as_the_same_composition(tmp_path: Path) -> None:
    recipes, path = promote_synthesis(STORED, tmp_path)
    [recipe], findings = read_recipes(recipes)
    assert not findings
    assert (recipe.name, recipe.steps, recipe.description) == ("find-lodgings", LODGINGS.steps, "Calls FIND /rooms.")
    root = toml_table(str(read_text(path)), str(path))
    assert isinstance(root, Table)
    endpoint, findings = endpoint_of(root, str(path))
    assert not findings
    assert endpoint is not None
    assert (endpoint.key, endpoint.handler) == (("FIND", "/lodgings"), Composition(recipe="find-lodgings"))
    assert endpoint.output_schema == FIND.output_schema


def test_recipe_is_appended_to_those_of_the_operator(tmp_path: Path) -> None:
    own = '[[recipe]]\nname = "own"\n\n[[recipe.steps]]\nmethod = "FIND"\n'
    (tmp_path / "agtp-recipes.toml").write_text(own)
    recipes, _ = promote_synthesis(STORED, tmp_path)
    assert recipes.read_text().startswith(own)
    assert [recipe.name for recipe in read_recipes(recipes)[0]] == ["own", "find-lodgings"]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    _, path = promote_synthesis(STORED, tmp_path)
    with pytest.raises(ConfigError, match="has a recipe 'find-lodgings' already"):
        promote_synthesis(STORED, tmp_path)
    (tmp_path / "agtp-recipes.toml").unlink()
    with pytest.raises(ConfigError, match="exists; move it away"):
        promote_synthesis(STORED, tmp_path)
    (tmp_path / "agtp-recipes.toml").write_text("[[recipe]]\n")
    path.unlink()
    with pytest.raises(ConfigError, match="has errors"):
        promote_synthesis(STORED, tmp_path)


def test_null_cannot_be_written(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [None]}}}
    stored = replace(STORED, endpoint=replace(STORED.endpoint, output_schema=schema))
    with pytest.raises(ConfigError, match="no null: /endpoint/output_schema/properties/a/enum/0"):
        promote_synthesis(stored, tmp_path)
    assert not list(tmp_path.iterdir())


def test_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "endpoints").mkdir()
    (tmp_path / "endpoints" / "find-lodgings.toml").symlink_to(tmp_path / "elsewhere.toml")
    with pytest.raises(ConfigError, match="exists; move it away"):
        promote_synthesis(STORED, tmp_path)
    assert not (tmp_path / "elsewhere.toml").exists()
    assert not (tmp_path / "agtp-recipes.toml").exists()


@pytest.mark.parametrize("path", ["/../../etc", "/%2e%2e/x", "/.hidden", "/" + "x" * 490, "/a\\b", "/~a/!$&'()*+,;=:@"])
def test_no_path_leaves_the_folder(path: str, tmp_path: Path) -> None:
    stored = replace(STORED, endpoint=replace(STORED.endpoint, path=path))
    for written in promote_synthesis(stored, tmp_path / "deployment"):
        assert written.resolve().is_relative_to(tmp_path / "deployment")
        assert not written.name.startswith(".")
