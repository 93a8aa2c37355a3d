"""Checks that raise: each is a finding, and everything else is still reported."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.checks.evolution.contracts import BOOK
from tests.checks.lint.contexts import CONTEXT
from tests.checks.lint.test_document import MENU
from tests.documents.openapi.notes_api import described
from tests.documents.openapi.reading import read

import bespeak.checks
import bespeak.text.language
from bespeak.app.lsp.completion import check as check_in_editor
from bespeak.checks.evolution import contract_diff
from bespeak.checks.evolution.contract_diff import Contract
from bespeak.checks.lint import document, registration, subject
from bespeak.checks.lint.config import Config, Judge
from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.registration import check_endpoint, check_service
from bespeak.checks.lint.rule_index import Pass
from bespeak.checks.lint.rules import path as path_rules
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.documents.openapi import facade
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.language.lexicon import lexicon


def broken(*_: Any) -> Iterator[Diagnostic]:
    raise KeyError("inside")


def test_a_failing_endpoint_check_is_reported_at_its_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = Pass(4, "Broken", "", (), endpoint=(broken,))
    monkeypatch.setattr(document, "PASSES", (extra, *document.PASSES))
    spoilt = MENU.replace("path: /dish", "path: /Dish")
    found = check_text(spoilt, "menu.agis", CONTEXT).findings
    assert [finding.rule for finding in found] == [subject.FAILED.id, "P322"]
    failure = found[0]
    assert failure.message.startswith("FIND /Dish: the check test_failed_check.broken failed with KeyError: ")
    assert "inside" in failure.message
    assert "at test_failed_check.py:" in failure.message
    assert failure.pointer == "/endpoints/0"
    assert failure.location is not None
    assert failure.location.line == 10
    assert "Report it" in failure.help


def test_a_failing_check_names_the_rules_that_it_stands_for(
    monkeypatch: pytest.MonkeyPatch, room: Endpoint, catalog: Catalog
) -> None:
    monkeypatch.setattr(path_rules, "parse_template", broken)
    first = check_endpoint(room, catalog, Policies())[0]
    assert "the check path.check_endpoint of P301 to P335 failed with KeyError" in first.message


def test_a_failing_document_check_is_reported_at_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "PASSES", (Pass(1, "Broken", "", (), document=(broken,)),))
    (failure,) = check_text(MENU, "menu.agis", CONTEXT).findings
    assert (failure.rule, failure.pointer, str(failure.location)) == (subject.FAILED.id, "", "menu.agis:1:1")


def test_a_failing_reader_is_reported_for_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(document._READERS, "agis", broken)
    (failure,) = check_text(MENU, "menu.agis", CONTEXT).findings
    assert failure.rule == subject.FAILED.id
    assert failure.message.startswith("reading the document failed with KeyError")


def test_a_failing_collision_check_is_reported_for_each_endpoint(
    monkeypatch: pytest.MonkeyPatch, room: Endpoint
) -> None:
    monkeypatch.setattr(path_rules, "parse_template", broken)
    assert [(endpoint, finding.rule) for endpoint, finding in check_service([room])] == [(room, subject.FAILED.id)]


def test_an_endpoint_that_could_not_be_checked_is_not_served(
    monkeypatch: pytest.MonkeyPatch, room: Endpoint, catalog: Catalog
) -> None:
    monkeypatch.setattr(registration.semantic, "check_endpoint", broken)
    (failure,) = check_endpoint(room, catalog, Policies())
    assert (failure.rule, failure.severity, failure.location) == (subject.FAILED.id, "error", room.location)


def test_no_selection_hides_a_failing_check() -> None:
    judge = Judge(Config(base=Path(), select=("S4",), ignore=(subject.FAILED.id,)))
    assert judge.is_on(subject.FAILED.id)


def test_an_editor_shows_a_failing_check_beside_the_other_findings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(document, "PASSES", (*document.PASSES, Pass(4, "Broken", "", (), endpoint=(broken,))))
    checked = check_in_editor(MENU.replace("path: /dish", "path: /Dish"), tmp_path / "menu.agis", tmp_path)
    assert [finding.diagnostic.rule for finding in checked.findings] == [subject.FAILED.id, "P322"]


def test_an_endpoint_that_cannot_be_compared_is_a_breaking_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract_diff, "diff_endpoints", broken)
    monkeypatch.setattr(contract_diff, "diff_services", broken)
    same = Contract(endpoints=(BOOK,))
    found = contract_diff.diff_contracts(same, same)
    said = [(change.rule, change.level, change.endpoint) for change in found]
    assert said == [("C118", "breaking", ""), ("C118", "breaking", str(BOOK))]


def test_an_operation_that_cannot_be_imported_is_left_out_with_the_cause(
    monkeypatch: pytest.MonkeyPatch, catalog: Catalog
) -> None:
    shape = facade.shape_output

    def spoilt(operation: Any, *arguments: Any) -> Any:
        return broken() if operation.method == "POST" else shape(operation, *arguments)

    monkeypatch.setattr(facade, "shape_output", spoilt)
    made, left_out = facade.make_facades(read(described("https://notes.example"))[0], catalog)
    assert made
    assert {entry.what.split()[0] for entry in left_out} == {"POST"}
    assert "KeyError" in left_out[0].why


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


def _type_of(name: str, module: ModuleType) -> object:
    """Return the type that a name means in a module, even if it is imported for type checkers only."""
    if hasattr(module, name):
        return getattr(module, name)
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and node.module and any(one.name == name for one in node.names):
            return getattr(importlib.import_module(node.module), name)
    return None


def test_every_table_with_a_closed_set_of_keys_has_all_of_them() -> None:
    checked = []
    for module in (*_modules(bespeak.checks), *_modules(bespeak.text.language)):
        for name, annotation in getattr(module, "__annotations__", {}).items():
            keys = re.match(r"Final\[(?:dict|Mapping)\[(\w+),", str(annotation))
            kind = _type_of(keys[1], module) if keys else None
            if get_origin(kind) is Literal and f"{name}.get(" not in inspect.getsource(module):
                assert set(getattr(module, name)) == set(get_args(kind)), f"{module.__name__}.{name}"
                checked.append(name)
    assert {"_WHERE", "_BY_KIND"} <= set(checked)


_WORDS = st.sampled_from(sorted({*lexicon().verbs, *lexicon().nouns, *lexicon().irregular, *lexicon().others}))
_PLAIN = st.one_of(_WORDS, st.sampled_from(("bulk", "to", "is", "and", "not", "un", "re", "{id}", "2", "é", "_", "")))
_SEGMENTS = st.lists(_PLAIN, min_size=1, max_size=4).flatmap(
    lambda parts: st.sampled_from(
        ("-".join(parts), "_".join(parts), "".join(parts), "".join(map(str.capitalize, parts)))
    )
)
_PATHS = st.lists(_SEGMENTS, min_size=1, max_size=3).map(lambda segments: "/" + "/".join(segments))
_SENTENCES = st.lists(_PLAIN, min_size=1, max_size=8).map(" ".join)


@settings(max_examples=300, deadline=None)
@given(_PATHS, _WORDS, _SENTENCES, _SENTENCES)
def test_no_words_of_english_make_a_check_fail(path: str, verb: str, intent: str, outcome: str) -> None:
    texts = {"path: /dish": f"path: '{path}'", "method: FIND": f"method: '{verb.upper()}'"}
    texts |= {"intent: Finds dishes that match the taste of a guest": f"intent: '{intent}'"}
    texts |= {"outcome: A list of matching dishes is returned": f"outcome: '{outcome}'"}
    text = MENU
    for old, new in texts.items():
        text = text.replace(old, new)
    found = check_text(text, "menu.agis", CONTEXT).findings
    assert [str(finding) for finding in found if finding.rule == subject.FAILED.id] == []
