"""`bespeak bench verbs`: the table, the files, own task sets, and a language model that chooses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.app.cli.invoking import invoking
from tests.language_model import data_of
from tests.loopback import Asked, Told, json_server

from bespeak.app.cli.bench import bench
from bespeak.errors import BespeakError

run = invoking(bench, "verbs", raises=True)
TASKS = """
service = "rooms"

[[endpoints]]
intent = "BOOK /room"
http = "POST /bookings"
function = "create_booking"
description = "Reserve a room."
requests = ["book me a room", "I'd like to stay for two nights"]

[[endpoints]]
intent = "CANCEL /room"
http = "DELETE /bookings/{id}"
function = "delete_booking"
description = "Give a reserved room up."
requests = ["cancel my room", "we won't come"]
"""


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "rooms.toml"
    path.write_text(TASKS)
    return path


def told(content: str) -> Told:
    return Told(json.dumps({"choices": [{"message": {"content": content}}]}).encode())


def test_the_table_the_json_and_the_plots_are_of_one_report(tasks: Path, tmp_path: Path) -> None:
    written, page = tmp_path / "report.json", tmp_path / "report.html"
    result = run("--tasks", tasks, "--seed", 3, "--json", written, "--plot", page, code=0)
    report = json.loads(written.read_bytes())
    assert (report["matcher"], report["seed"], report["tasks"], report["endpoints"]) == ("words", 3, 4, 2)
    assert len(report["conditions"]) == 24
    lines = result.stdout.splitlines()
    assert lines[0].startswith("4 requests, 2 endpoints, services: 1; matcher words, seed 3.")
    assert lines[0].endswith("Accuracy of a random choice: 0.500.")
    assert len([line for line in lines if line.startswith("intent  ")]) == 6
    assert lines[0].split(";")[0] in page.read_text()
    assert "<svg" in page.read_text()


def test_a_png_is_drawn_where_the_extra_is_installed(tasks: Path, tmp_path: Path) -> None:
    pytest.importorskip("typst")
    run("--tasks", tasks, "--plot", tmp_path / "report.png", code=0)
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")


def test_the_bundled_task_sets_are_measured_by_default() -> None:
    assert run("--limit", 5, code=0).stdout.startswith("5 requests, 96 endpoints, services: 8;")


def test_faulty_task_sets_are_shown_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "rooms.toml"
    path.write_text(TASKS.replace("BOOK /room", "book a room"))
    assert "rooms.toml:5:" in run("--tasks", path, code=2).stderr
    assert "cannot be read" in run("--tasks", tmp_path / "none.toml", code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--plot", "report.pdf"), "--plot writes .html or .png; got 'report.pdf'"),
        (("--model", "x"), "--model-url and --model go together"),
        (("--model", "x", "--model-url", "http://model.example/v1"), "not an https:// address"),
        (("--limit", "0"), "0 is not in the range"),
    ],
)
def test_wrong_options_are_refused(arguments: tuple[str, ...], message: str) -> None:
    assert message in run(*arguments, code=2).stderr


def test_a_key_that_is_not_in_the_environment_is_named() -> None:
    with pytest.raises(BespeakError, match="environment variable NOT_SET"):
        run("--model", "x", "--model-url", "https://model.example/v1", "--api-key-env", "NOT_SET")


def test_a_language_model_chooses_by_number_and_gets_the_request_as_data(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY", "secret")
    asked: list[dict[str, Any]] = []

    def answer(given: Asked) -> Told:
        assert given.path == "/v1/chat/completions"
        assert given.headers["authorization"] == "Bearer secret"
        data = data_of(given.body)
        asked.append(data)
        wanted = "CANCEL" if data["request"] in ("cancel my room", "we won't come") else "BOOK"
        found = [int(number) for number, option in data["options"].items() if wanted in option]
        return told(json.dumps({"choice": found[: data["at_most"]]}))

    with json_server(answer) as address:
        model = ("--model-url", f"{address}/v1", "--model", "stub", "--api-key-env", "MODEL_KEY")
        result = run("--tasks", tasks, *model, "--json", tmp_path / "report.json", code=0)
    report = json.loads((tmp_path / "report.json").read_bytes())
    found = {(one["naming"], one["stages"]): one["accuracy"] for one in report["conditions"]}
    assert report["matcher"] == "stub"
    assert found["intent", 1] == found["intent", 2] == 1.0
    assert found["http", 1] == 0.0
    assert {one["at_most"] for one in asked} == {1, 3}
    assert "asking: intent kept 1" in result.stderr


@pytest.mark.parametrize("content", ["", "the second", '{"choice": [0, 7, -1]}', '{"choice": "1"}', "{" * 5000])
def test_an_answer_that_cannot_be_used_counts_as_wrong(tasks: Path, tmp_path: Path, content: str) -> None:
    with json_server(lambda _: told(content)) as address:
        model = ("--model-url", f"{address}/v1", "--model", "stub")
        run("--tasks", tasks, "--limit", 1, *model, "--json", tmp_path / "report.json", code=0)
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert {one["accuracy"] for one in report["conditions"]} == {0.0}


@pytest.mark.parametrize("answer", [Told(b"", 500), Told(b"hello"), Told(b"[]"), Told(b'{"choices": []}')])
def test_a_provider_that_fails_ends_the_measurement_with_its_reason(tasks: Path, answer: Told) -> None:
    with json_server(lambda _: answer) as address, pytest.raises(BespeakError, match="provider"):
        run("--tasks", tasks, "--model-url", f"{address}/v1", "--model", "stub")
