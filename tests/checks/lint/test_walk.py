"""The files of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cases import rows

from bespeak.checks.lint.project import looks_ours, walk


def names(folder: Path, *excluded: str) -> list[str]:
    return [str(path.relative_to(folder)) for path in walk(folder, lambda path: path.name in excluded)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b/x.agis", "b/a/y.toml", "a.json", "c.agis", "c.txt", ".git/z.agis", ".hidden.agis"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in ("node_modules", ".venv", "__pycache__"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.agis").touch()
    return tmp_path


def test_documents_are_found_in_order_without_hidden_excluded_and_linked_folders(folder: Path, tmp_path: Path) -> None:
    assert names(folder) == ["a.json", "c.agis", "b/x.agis", "b/a/y.toml"]
    assert names(folder, "b", "a.json") == ["c.agis"]
    (folder / "b" / "back").symlink_to(folder)
    (folder / "b" / "loop").symlink_to(folder / "b" / "loop")
    assert names(folder) == ["a.json", "c.agis", "b/x.agis", "b/a/y.toml"]
    assert names(tmp_path / "none") == []


@pytest.mark.requirement("AGIS-10-5")
@rows(
    "name, text",
    *((name, "") for name in ("a.agis", "bespeak.toml", "agtp-server.toml", "agtp-recipes.toml")),
    ("x.toml", "# x\n[endpoint]\n"),
    ("x.toml", "  [ endpoint . semantic ]\n"),
    ("agis.json", '{"agis": "1.0"}'),
    ("ai", '{"aiendpoint": {}}'),
    ("manifest.json", '{"agtp_version": "1.0"}'),
    ("manifest.json", '{"agtp_api_version": "1.0"}'),
    ("x.json", '{"endpoints": [], "vocabulary": {}}'),
)
def test_a_document_of_ours_is_recognised(name: str, text: str) -> None:
    assert looks_ours(name, text)


@rows(
    "name, text",
    ("pyproject.toml", "[project]\n"),
    ("config.toml", "[server]\nport = 1\n"),
    ("x.toml", "[endpoints]\n"),
    ("x.toml", "[[endpoint]]\n"),
    ("tsconfig.json", "{ // comments\n}"),
    ("package.json", '{"name": "agis"'),
)
def test_other_files_are_left_alone(name: str, text: str) -> None:
    assert looks_ours(name, text) == (name == "package.json" and '"agis"' in text)
