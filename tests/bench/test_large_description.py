"""The description that reading is measured on is a good one, and reading keeps its bounds on it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from openapi_spec_validator import OpenAPIV30SpecValidator

from bespeak.contract.schema.validation import compile_schema
from bespeak.documents.openapi.reader import read_description
from bespeak.documents.openapi.schema_conversion import LIMITS
from bespeak.protocol.exchange.refusal import Fault

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "large_description.py"


@pytest.fixture(scope="module")
def large() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_large_description", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_public_validator_accepts_the_description(large: ModuleType) -> None:
    assert OpenAPIV30SpecValidator(large.description(6, 12)).is_valid()


def test_every_operation_is_read_with_small_usable_schemas(large: ModuleType) -> None:
    made, found = read_description(json.dumps(large.description(90, 300, dense=True)), "things.json")
    assert made is not None
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
