"""The documents that linters are measured on are what they should be, and the measuring runs without any peer."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from tests.checks.lint.contexts import CONTEXT

from bespeak.checks.lint.document import check_text

BENCH = Path(__file__).resolve().parents[2] / "bench"
PAIRS = 140
"""Number of operations after which every verb has occurred with every noun."""


@pytest.fixture(scope="module")
def documents() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_documents", BENCH / "documents.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("first", "count"), [(0, 1), (7, 1), (3, 25)])
def test_an_openapi_document_has_as_many_operations_on_as_many_lines(
    documents: ModuleType, first: int, count: int
) -> None:
    agis, openapi = documents.agis_document(first, count), documents.openapi_document(first, count)
    assert agis.count("\n") == openapi.count("\n")
    assert len(yaml.safe_load(agis)["endpoints"]) == len(yaml.safe_load(openapi)["paths"]) == count


def test_documents_are_deterministic_and_differ(documents: ModuleType) -> None:
    for make in (lambda at: documents.agis_document(at, 1), documents.endpoint_file):
        texts = [make(number) for number in range(PAIRS)]
        assert texts == [make(number) for number in range(PAIRS)]
        assert len(set(texts)) == PAIRS


def test_documents_have_no_findings(documents: ModuleType) -> None:
    assert check_text(documents.agis_document(0, PAIRS), "bookings.agis", CONTEXT).findings == ()
    for number in range(PAIRS):
        assert check_text(documents.endpoint_file(number), "booking.toml", CONTEXT).findings == ()


def test_document_has_about_the_requested_number_of_lines(documents: ModuleType) -> None:
    assert documents.agis_document(0, documents.operations_in(50_000)).count("\n") == pytest.approx(50_000, rel=0.01)


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "wait4"), reason="processor time of one process comes from wait4")
def test_machine_without_node_measures_bespeak_and_names_skipped_linters(tmp_path: Path) -> None:
    code = "import lint; lint.STARTS = 1; print(lint.measure(rounds=1, lines=200, files=2))"
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=BENCH,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    for name in ("redocly", "spectral"):
        assert f"{name} is skipped: it needs node" in done.stdout
    assert "endpoint files/s" in done.stdout
    assert done.stdout.endswith("True\n")
