"""Test reading contracts from command-line arguments."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.process import HOTEL, ROOT

from bespeak.app.cli.diff import contract_of
from bespeak.checks.evolution.contract_diff import Contract
from bespeak.errors import ConfigError, ContractError


def read(target: object) -> Contract:
    with ExitStack() as files:
        return contract_of(str(target), "other", {}, files).contract


def test_folder_has_policies_and_a_single_endpoint_has_none() -> None:
    with ExitStack() as files:
        folder = contract_of(str(HOTEL), "", {}, files).contract
        single = contract_of(str(HOTEL / "endpoints" / "book-room.toml"), "", {}, files).contract
    assert folder.policies is not None
    assert folder.catalog_version == "1.1.0"
    assert [str(endpoint) for endpoint in single.endpoints] == ["BOOK /room"]
    assert (single.policies, single.catalog_version) == (None, None)


def test_folder_documents_are_read_without_importing_handlers(tmp_path: Path) -> None:
    text = (HOTEL / "endpoints" / "book-room.toml").read_text().replace("hotel.desk.book_room", "no.such.function")
    (tmp_path / "endpoints").mkdir()
    (tmp_path / "endpoints" / "book.toml").write_text(text)
    with ExitStack() as files:
        assert len(contract_of(str(tmp_path), "", {}, files).contract.endpoints) == 1


def test_a_folder_whose_configuration_names_a_document_has_its_contract() -> None:
    with ExitStack() as files:
        folder = contract_of(str(ROOT / "examples" / "restaurant"), "", {}, files).contract
        document = contract_of(str(ROOT / "examples" / "restaurant" / "menu.agis"), "", {}, files).contract
    assert {endpoint.key for endpoint in folder.endpoints} == {endpoint.key for endpoint in document.endpoints}
    assert (folder.vocabulary, folder.version) == (document.vocabulary, document.version)
    assert folder.policies is not None


def test_size_limit_is_the_same_as_for_lint(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "restaurant" / "menu.agis").read_text("utf-8")
    small, large = tmp_path / "small.agis", tmp_path / "large.agis"
    small.write_text(text, "utf-8")
    large.write_text(text + "# a long story\n" * 100_000, "utf-8")
    assert read(large).endpoints[0].semantic == read(small).endpoints[0].semantic


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.json", "[1]"), ("a.agis", "\0"), ("a.yaml", "x: 1"), ("a.toml", "[server]\ncatalog = 7"), ("a.agis", "- 1")],
)
def test_invalid_document_is_refused(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ContractError):
        read(tmp_path / name)


@pytest.mark.process
@pytest.mark.parametrize("target", ["", "git:", "git:HEAD", "nowhere", "ftp://example.com", "git:HEAD:"])
def test_missing_path_is_reported(target: str) -> None:
    with pytest.raises(ConfigError):
        read(target)
