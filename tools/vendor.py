"""Check the vendored code of the console, or update it from packages: `python -m tools.vendor [PACKAGE.tgz...]`.

A package is what `npm pack preact htm` writes. The files go into the tree unchanged, so that their sha256 is that of
the published ones; VENDORED.toml names each with its version and licence.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "src/bespeak/faces/console/static/vendor"
LIST = "VENDORED.toml"


def read_list(folder: Path = FOLDER) -> list[dict[str, Any]]:
    """Return the entries of the list of vendored files."""
    found: list[dict[str, Any]] = tomllib.loads((folder / LIST).read_text("utf-8"))["file"]
    return found


def check(folder: Path = FOLDER) -> list[str]:
    """Return what is wrong with the vendored files; an empty list if they are as listed."""
    wrong = []
    entries = read_list(folder)
    for entry in entries:
        file = folder / entry["name"]
        if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != entry["sha256"]:
            wrong.append(f"{entry['name']}: missing, or its sha256 is not the listed one")
        if not (folder / entry["licence_file"]).is_file():
            wrong.append(f"{entry['name']}: {entry['licence_file']} is missing")
    known = {LIST, *(entry["name"] for entry in entries), *(entry["licence_file"] for entry in entries)}
    wrong += [f"{file.name}: not in {LIST}" for file in sorted(folder.iterdir()) if file.name not in known]
    return wrong


def update(package: Path, folder: Path = FOLDER) -> None:
    """Replace the files that come from a package, and their entries in the list."""
    text = (folder / LIST).read_text("utf-8")
    with tarfile.open(package) as archive:
        described = json.loads(_read(archive, "package.json"))
        for entry in read_list(folder):
            if entry["package"] != described["name"]:
                continue
            content = _read(archive, entry["path"])
            (folder / entry["name"]).write_bytes(content)
            (folder / entry["licence_file"]).write_bytes(_read(archive, "LICENSE"))
            block = re.search(rf'\[\[file\]\]\nname = "{re.escape(entry["name"])}"\n(?:.+\n)*', text)
            assert block is not None, entry["name"]
            new = re.sub(r"(?m)^version = .*$", f'version = "{described["version"]}"', block[0])
            new = re.sub(r"(?m)^licence = .*$", f'licence = "{described["license"]}"', new)
            new = re.sub(r"(?m)^sha256 = .*$", f'sha256 = "{hashlib.sha256(content).hexdigest()}"', new)
            text = text.replace(block[0], new)
    (folder / LIST).write_text(text, "utf-8")


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(f"package/{name}")
    assert member is not None, name
    return member.read()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        update(Path(name))
    problems = check()
    print("\n".join(problems) or "All vendored files are as listed.")
    sys.exit(bool(problems))
