"""Write every published document of the services in this repository into a folder, or compare two such folders.

    python tools/published.py write DIR            # with the bespeak that can be imported; DIR must not exist
    python tools/published.py compare DIR_A DIR_B  # exit code 1 if anything differs

Run `write` from the root of a source tree, before and after a redesign. Services are loaded by the command line, by
`bespeak.asgi` and by `bespeak.connect`, so the script does not name internal modules. Only gates.txt shows internal
names: those of the functions *_gate that a call runs through. docs/generate.py of the tree writes the reference.
"""

from __future__ import annotations

import difflib
import importlib
import json
import multiprocessing
import os
import pkgutil
import re
import shutil
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from joserfc.jwk import OKPKey
from published_service import ROOT, URL, WORK, Folder, run_script, write_service

import bespeak

SEARCHED = ("examples", "docs_src")
MOST_LINES = 20
"""Lines of difference that are shown for a file."""
SERVICE = re.compile(r'^\w+ = (bespeak\.)?App(\.from_agis)?\(|\A\s*{?\s*"?openapi"?:', re.MULTILINE)
"""What a Python file with a service has, or an OpenAPI description."""
KEY = OKPKey.import_key(
    {"kty": "OKP", "crv": "Ed25519", "x": "O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik", "d": "A" * 43}
)
"""A key that is the same in every run, for deployments whose guide creates one."""
IDENTITY = ('server_id = "all.example"', 'operator = "All Methods"', 'contact = "ops@all.example"')
ALL = {
    "all/bespeak.toml": "\n".join(("[server]", *IDENTITY, '[methods]\nenable = ["*"]'))
    + f'\n[http]\nurl = "{URL}"\n[mcp]\nenabled = true\n[a2a]\nenabled = true\n',
    "all.py": f"""import bespeak
app = bespeak.App("All", {", ".join(IDENTITY)}, methods=["*"])
@app.endpoint("BOOK", "/room", impact="reversible", idempotent=False)
def book_room(room: str) -> dict[str, str]:
    '''Reserve a room.

    Outcome: the room is reserved.
    '''
""",
}
"""The services with all standard methods: one without endpoints of its own, and one with."""


def write_commands(folder: Folder, _: str) -> None:
    """Write the help of every command, the standard methods, the schemas, and the pages that docs/generate.py makes."""
    roots: list[Any] = []
    main, click.Command.main = click.Command.main, lambda self, **_: roots.append(self)  # type: ignore[method-assign, assignment]
    run_script("bespeak")
    click.Command.main = main  # type: ignore[method-assign]
    commands: list[tuple[tuple[str, ...], Any]] = [((), roots[0])]
    for path, command in commands:
        folder.run(f"help/{'-'.join(('bespeak', *path))}.txt", *path, "--help")
        context = click.Context(command)
        inner = getattr(command, "commands", {})  # `bespeak mcp` has some too, although it is not a group
        names = command.list_commands(context) if isinstance(command, click.Group) else inner
        commands += [((*path, name), inner.get(name) or command.get_command(context, name)) for name in names]
    folder.run("help/agtp-catalog-diff.txt", "--help", script="agtp-catalog-diff")
    folder.run("methods.txt", "methods", "list")
    for method in json.loads(folder.run("methods.json", "methods", "list", "--json")):
        folder.run(f"methods/{method['name']}.txt", "methods", "show", method["name"])
    for line in folder.run("schemas.txt", "schema").splitlines():
        folder.run(f"schemas/{line.split()[0]}.json", "schema", line.split()[0])
    sys.path.insert(0, str(ROOT / "docs"))
    for name, make in importlib.import_module("generate").REFERENCE_PAGES.items():
        folder.write(f"reference/{name}", make())


def prepare() -> list[str]:
    """Copy the services, add files that their guides create, and return the targets."""
    for name in SEARCHED:
        shutil.copytree(ROOT / name, WORK / name, ignore=shutil.ignore_patterns("__pycache__", "*.db*"))
    os.chdir(WORK)
    Path("all").mkdir()
    for name, text in ALL.items():
        Path(name).write_text(text, "utf-8")
    targets = {Path("all"), Path("all.py")}
    for path in sorted(path for name in SEARCHED for path in Path(name).rglob("*.*") if path.is_file()):
        text, folder = path.read_text("utf-8", "replace"), path.parent
        if path.name in ("bespeak.toml", "agtp-server.toml") or folder.name == "endpoints":
            targets.add(folder.parent if folder.name == "endpoints" else folder)
            for key in re.findall(r'^signing_key = "(.+)"', text, re.MULTILINE):
                (folder / key).write_bytes(KEY.as_pem(private=True))
                (folder / key).chmod(0o600)
            for key in re.findall(r'^keys = "(.+\.json)"', text, re.MULTILINE):
                (folder / key).write_text(json.dumps({"keys": [KEY.as_dict(private=False)]}), "utf-8")
            for module in re.findall(r'^app = "(\w+):app"', text, re.MULTILINE):
                if not (folder / f"{module}.py").exists():  # the guide uses that of another one
                    shutil.copy(min(Path("docs_src").rglob(f"*/{module}.py")), folder)
        elif path.suffix == ".agis" or (path.suffix in (".py", ".yaml", ".json") and SERVICE.search(text)):
            targets.add(path)
    return sorted(map(str, targets))


def _work(task: tuple[Path, Callable[[Folder, str], None], str]) -> None:
    """Carry out one task in a process of its own, because deployments have modules of the same name."""
    place, write, target = task
    folder = Folder(place)
    try:
        write(folder, target)
    except Exception:  # noqa: BLE001 - errors are compared too
        folder.write("failure.txt", traceback.format_exc())
    parts = [f"== {', '.join(sources)}\n{text}\n" for text, sources in folder.messages.items() if text]
    folder.write("messages.txt", "".join(parts))


def write_all(place: Path) -> None:
    """Write the documents of all services into a new folder."""
    begun = time.monotonic()
    place.mkdir(parents=True)
    place = place.resolve()
    for name in [name for name in os.environ if name.startswith("BESPEAK_")]:
        del os.environ[name]
    os.environ.update(COLUMNS="100", NO_COLOR="1", TZ="UTC")
    for module in pkgutil.walk_packages(bespeak.__path__, "bespeak.", onerror=lambda _: None):
        if not module.name.endswith("__main__"):  # import everything once here, and every fork starts fast
            with suppress(ImportError):
                importlib.import_module(module.name)
    try:
        targets = prepare()
        tasks: list[Any] = [(place / "services" / target, write_service, target) for target in targets]
        with multiprocessing.get_context("fork").Pool(maxtasksperchild=1) as pool:
            pool.map_async(_work, [(place / "commands", write_commands, ""), *tasks], chunksize=1).get(timeout=900)
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
    summary = f"{len(_files(place))} files, {len(targets)} services, {time.monotonic() - begun:.0f} s"
    sys.stdout.write(f"{summary}; {bespeak.__file__}\n")


def _files(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}


def compare(before: Path, after: Path) -> int:
    """Print the differences between two folders, the first lines of each file. Return the exit code."""
    names = sorted(_files(before) | _files(after))
    different = 0
    for name in names:
        old, new = (path.read_bytes() if path.exists() else b"" for path in (before / name, after / name))
        if old == new and (before / name).exists() == (after / name).exists():
            continue
        different += 1
        kind = "new" if not (before / name).exists() else "different" if (after / name).exists() else "missing"
        removed, added = (text.decode().split("\n") if kind == "different" else [] for text in (old, new))
        lines = list(difflib.unified_diff(removed, added, n=1))[2:]
        more = [f"... and {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
        shown = [f"    {line.rstrip()[:300]}" for line in [*lines[:MOST_LINES], *more]]
        sys.stdout.write("\n".join((f"{kind}: {name}", *shown, "")))
    sys.stdout.write(f"{different} of {len(names)} files differ\n")
    return 1 if different or not names else 0


def main() -> int:
    """Run the command that the arguments name."""
    match sys.argv[1:]:
        case ["write", place]:
            write_all(Path(place))
            return 0
        case ["compare", before, after]:
            return compare(Path(before), Path(after))
    sys.stderr.write(__doc__ or "")
    return 2


if __name__ == "__main__":
    sys.exit(main())
