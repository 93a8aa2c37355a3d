"""The measured inputs of the linter are what they say."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
import yaml
from openapi_spec_validator import OpenAPIV30SpecValidator
from tests.checks.lint.contexts import CONTEXT

from bespeak.checks.lint.document import check_text
from bespeak.contract.schema.validation import compile_schema
from bespeak.documents.openapi.reader import read_description
from bespeak.documents.openapi.schema_conversion import LIMITS
from bespeak.protocol.exchange.refusal import Fault

BENCH = Path(__file__).resolve().parents[2] / "bench"
PAIRS = 140  # number of operations after which every verb has occurred with every noun


@pytest.fixture(scope="module")
def documents() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_documents", BENCH / "documents.py")
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("first", "count"), [(0, 1), (7, 1), (3, 25)])
def test_openapi_document_has_as_many_operations_and_lines(documents: ModuleType, first: int, count: int) -> None:
    agis, openapi = documents.agis_document(first, count), documents.openapi_document(first, count)
    assert agis.count("\n") == openapi.count("\n")
    assert len(yaml.safe_load(agis)["endpoints"]) == len(yaml.safe_load(openapi)["paths"]) == count


def test_documents_are_deterministic_of_the_requested_length_and_without_findings(documents: ModuleType) -> None:
    for make in (lambda at: documents.agis_document(at, 1), documents.endpoint_file):
        texts = [make(number) for number in range(PAIRS)]
        assert texts == [make(number) for number in range(PAIRS)]
        assert len(set(texts)) == PAIRS
    assert check_text(documents.agis_document(0, PAIRS), "bookings.agis", CONTEXT).findings == ()
    for number in range(PAIRS):
        assert check_text(documents.endpoint_file(number), "booking.toml", CONTEXT).findings == ()
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


SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "large_description.py"


@pytest.fixture(scope="module")
def large() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_large_description", SCRIPT)
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_description_is_valid_and_every_operation_has_small_usable_schemas(large: ModuleType) -> None:
    assert OpenAPIV30SpecValidator(large.description(6, 12)).is_valid()
    made, found = read_description(json.dumps(large.description(90, 300, dense=True)), "things.json")
    assert len(made.operations) == 90
    assert {finding.rule for finding in found} == {"D162"}
    schemas = [answer.schema for operation in made.operations for answer in operation.answers if answer.schema]
    longest = max(len(msgspec.json.encode(schema)) for schema in schemas)
    assert LIMITS["output"].length / 2 < longest < LIMITS["output"].length * 2
    assert [fault for schema in schemas[:20] if isinstance(fault := compile_schema(schema), Fault)] == []


@pytest.mark.process
def test_script_prints_time_and_memory() -> None:
    command = [sys.executable, str(SCRIPT), "--operations", "9", "--schemas", "9", "--yaml"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "9 operations" in run.stdout
