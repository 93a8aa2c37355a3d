"""A path at a revision of its repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.cases import rows

from bespeak.app.cli.diff import check_out
from bespeak.errors import ConfigError

pytestmark = pytest.mark.process


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Make a repository with two revisions of api/a.agis; api/b.toml is new in the second."""
    root = tmp_path / "repository"
    (root / "api").mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    (root / "api" / "a.agis").write_text("one")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "one")
    (root / "api" / "a.agis").write_text("two")
    (root / "api" / "b.toml").write_text("two")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "two")
    (root / "api" / "a.agis").write_text("three")
    return root


def test_file_is_read_at_the_revision_with_its_neighbours_and_any_name(repository: Path, tmp_path: Path) -> None:
    for revision, text in (("HEAD", "two"), ("HEAD~1", "one"), ("main", "two")):
        found = check_out(revision, repository / "api" / "a.agis", tmp_path / revision)
        assert found.read_text() == text
        assert [path.name for path in found.parent.iterdir()] == ["a.agis"]
    found = check_out("HEAD", repository / "api" / "b.toml", tmp_path / "x", surroundings=repository / "api")
    assert (found.parent / "a.agis").read_text() == "two"
    (repository / "--output=x.agis").write_text("four")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "three")
    assert check_out("HEAD", repository / "--output=x.agis", tmp_path / "x").read_text() == "four"


def test_folder_and_repository_are_read_completely(repository: Path, tmp_path: Path) -> None:
    assert sorted(path.name for path in check_out("HEAD", repository / "api", tmp_path / "x").iterdir()) == [
        "a.agis",
        "b.toml",
    ]
    assert (check_out("HEAD", repository, tmp_path / "y") / "api" / "a.agis").read_text() == "two"


def test_path_removed_since_is_found(repository: Path, tmp_path: Path) -> None:
    (repository / "api" / "b.toml").unlink()
    assert check_out("HEAD", repository / "api" / "b.toml", tmp_path / "x").read_text() == "two"


@rows(
    "revision, path, part",
    ("v9", "api/a.agis", "no revision 'v9'"),
    ("--output=x", "api/a.agis", "is not a valid revision"),
    ("", "api/a.agis", "is not a valid revision"),
    ("HEAD~1", "api/b.toml", "does not exist at revision HEAD~1"),
    ("HEAD", "..", "is not in a git repository"),
)
def test_missing_revision_or_path_is_reported(
    repository: Path, tmp_path: Path, revision: str, path: str, part: str
) -> None:
    with pytest.raises(ConfigError, match=part):
        check_out(revision, repository / path, tmp_path / "x")


def test_paths_excluded_from_archives_are_reported(repository: Path, tmp_path: Path) -> None:
    (repository / ".gitattributes").write_text("*.agis export-ignore\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "three")
    with pytest.raises(ConfigError, match="export-ignore"):
        check_out("HEAD", repository / "api" / "a.agis", tmp_path / "x")
    assert check_out("HEAD", repository / "api" / "b.toml", tmp_path / "y").read_text() == "two"
