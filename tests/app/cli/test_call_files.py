"""`bespeak call` with files, and with work that a service carries on in the background."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.process import Served, bespeak, refused, serving
from tests.warm import start

pytestmark = pytest.mark.process
SERVICE = '''
import asyncio

from bespeak import App, Download, Policies, Upload

app = App("Files", server_id="files.example", operator="Acme", contact="ops@files.example",
          policies=Policies(scope_required_for_invocation=False), methods=["IMPORT", "CHECK", "CANCEL", "TRANSFORM"])


@app.endpoint("SCAN", "/documents", impact="informational")
def count(document: Upload, note: str = "") -> dict[str, str]:
    """Count the bytes of a document.

    Outcome: Their number is returned.
    """
    return {"size": str(document.size), "note": note}


@app.endpoint("EXPORT", "/documents", impact="informational")
def export(size: int) -> Download:
    """Write a file.

    Outcome: A file of this size is returned.
    """
    return Download(bytes(size), name="zeros.bin")
'''
SETTINGS = '[server]\napp = "service:app"\n[delivery]\nallow = ["127.0.0.1"]\n'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("service")
    (folder / "service.py").write_text(SERVICE)
    (folder / "bespeak.toml").write_text(SETTINGS)
    with serving(folder, "--http", "127.0.0.1:0") as found:
        yield found


def called(*arguments: str, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    result = bespeak("call", *arguments, "--as", "ann", cwd=cwd)
    assert result.returncode == code, result.stderr
    return result


def test_members_are_read_from_files(served: Served, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("ünder")
    (tmp_path / "raw.bin").write_bytes(b"\xff" * 1000)
    for where in (served.uri, served.url):
        result = called(where, "SCAN", "/documents", "document=@raw.bin", "note=@note.txt", cwd=tmp_path)
        assert json.loads(result.stdout) == {"size": "1000", "note": "ünder"}
    (tmp_path / "document.json").write_text(json.dumps({"data": base64.b64encode(b"ab").decode()}))
    given = ("document:=@document.json", "note=@@ann")
    result = called(served.uri, "SCAN", "/documents", *given, cwd=tmp_path)
    assert json.loads(result.stdout) == {"size": "2", "note": "@ann"}
    (tmp_path / "large.bin").write_bytes(bytes(2_000_000))
    result = called(served.url, "SCAN", "/documents", "document=@large.bin", cwd=tmp_path)
    assert json.loads(result.stdout)["size"] == "2000000"


def test_a_file_that_cannot_be_sent_is_a_clear_error(served: Served, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "raw.bin").write_bytes(b"\xff")
    (tmp_path / "large.bin").write_bytes(bytes(11_000_000))
    cases = {
        "document=@missing": "No such file",
        "document=@folder": "is a folder",
        "note=@raw.bin": "is not UTF-8",
        "note:=@raw.bin": "is not UTF-8",
        "document=@large.bin": "takes at most 10,000,000",
    }
    for member, message in cases.items():
        assert message in refused("call", served.uri, "SCAN", "/documents", member, cwd=tmp_path), member
    (tmp_path / "large.bin").write_bytes(bytes(1_000_000))
    told = refused("call", served.uri, "SCAN", "/documents", "document=@large.bin", cwd=tmp_path)
    assert "web address of the service" in told


def test_an_output_is_written_to_a_file(served: Served, tmp_path: Path) -> None:
    for where, size in ((served.uri, 1000), (served.url, 1_000_000)):
        result = called(where, "EXPORT", "/documents", f"size={size}", "-o", "zeros.bin", cwd=tmp_path)
        assert (result.stdout, (tmp_path / "zeros.bin").read_bytes()) == ("", bytes(size))
    rows = json.dumps([{"a": 1}])
    called(served.uri, "TRANSFORM", "/", f"source:={rows}", "target_format=csv", "-o", "rows.csv", cwd=tmp_path)
    assert (tmp_path / "rows.csv").read_text() == "a\n1\n"
    called(served.uri, "SCAN", "/documents", 'document:={"data": ""}', "-o", "all.json", cwd=tmp_path)
    assert json.loads((tmp_path / "all.json").read_text())["size"] == "0"
    for file, message in ((".", "is a folder"), ("none/x", "does not exist")):
        assert message in refused("call", served.uri, "EXPORT", "/documents", "size=1", "-o", file, cwd=tmp_path)


def test_work_in_the_background_is_followed_to_its_receipt_unless_told_not_to(served: Served, tmp_path: Path) -> None:
    rows = "id,name\n" + "".join(f"{number},name\n" for number in range(12_000))
    (tmp_path / "rows.csv").write_text(rows)
    given = ("IMPORT", "/", "source=@rows.csv", "format=csv", "target=people", "key=id")
    receipt = json.loads(called(served.uri, *given, cwd=tmp_path).stdout)
    assert (receipt["status"], receipt["added"]) == ("done", 12_000)
    told = json.loads(called(served.url, *given, "--no-wait", cwd=tmp_path).stdout)
    assert told["status"] == "queued"
    body = json.loads(called(served.url, *given, "--json", cwd=tmp_path).stdout)["body"]
    assert body["result"]["details"]["progress"]["total"] == len(rows)
    (tmp_path / "rows.csv").write_text(rows + '13,"open\n')
    result = called(served.uri, *given, cwd=tmp_path, code=1)
    assert "It is failed: invalid-source: The source is not csv that can be read: line 12002" in result.stderr


def test_the_work_goes_on_after_ctrl_c_and_its_id_is_told(served: Served) -> None:
    arguments: list[Any] = ["call", "-v", served.uri, "IMPORT", "/", "source=https://127.0.0.1:1/rows", "format=csv"]
    process = start(
        [*arguments, "target=people", "--as", "ann"],
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "AGTP/1.0 CHECK" in line:
            break
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=20)[1]
    hint = next(line for line in told.splitlines() if line.startswith("It goes on."))
    target = hint.rpartition("target=")[2]
    found = bespeak("call", served.uri, "CHECK", "/", f"target={target}", "--as", "ann")
    assert json.loads(found.stdout)["status"] in ("queued", "running")
    assert bespeak("call", served.uri, "CANCEL", "/", f"target_id={target}", "--as", "ann").returncode == 0
