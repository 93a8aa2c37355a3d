"""A file or folder at a revision of its git repository."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path
from typing import Final

from bespeak.errors import ConfigError

_PATIENCE: Final = 60  # timeout of one git command in seconds


def check_out(revision: str, path: Path, into: Path, *, surroundings: Path | None = None) -> Path:
    """Check out `path`, and `surroundings`, at the revision below `into`; return its place. Raises ConfigError."""
    if not revision or revision.startswith("-"):
        raise ConfigError(f"{revision!r} is not a valid revision; write git:HEAD~1, git:main or git:v1.2.0")
    near = _existing(path)
    top = Path(_git(near, "rev-parse", "--show-toplevel", failure=f"{path} is not in a git repository").strip())
    _git(
        top,
        *("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"),
        failure=f"there is no revision {revision!r} in the git repository {top}",
    )
    inside = _inside(path, top)
    wanted = _inside(surroundings, top) if surroundings is not None else inside
    if not _git(top, "ls-tree", "--name-only", revision, "--", *([str(inside)] if inside.parts else [])).strip():
        hint = "give git:REVISION:PATH if it had another name"
        raise ConfigError(f"{path} does not exist at revision {revision}; {hint}")
    # With its dot in front no path is taken for an option.
    archive = _run(top, "archive", "--format=tar", revision, *([f"./{wanted}"] if wanted.parts else []))
    if archive.returncode:
        raise ConfigError(f"git cannot give {wanted} at {revision}: {_said(archive.stderr)}")
    try:
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            tar.extractall(into, filter="data")
    except tarfile.ReadError:
        pass  # an archive of nothing
    except (tarfile.TarError, OSError) as error:
        raise ConfigError(f"cannot write {wanted} at {revision}: {error}") from error
    if not (into / inside).exists():
        raise ConfigError(f"git leaves {path} out of what it gives of {revision}: .gitattributes says export-ignore")
    return into / inside


def _existing(path: Path) -> Path:
    """Return the nearest existing folder: the path itself may have been deleted."""
    place = path.absolute()
    while not place.is_dir() and place != place.parent:
        place = place.parent
    return place


def _inside(path: Path, top: Path) -> Path:
    try:
        return path.resolve().relative_to(top.resolve())
    except ValueError:
        raise ConfigError(f"{path} is outside of the git repository {top}") from None


def _git(folder: Path, *arguments: str, failure: str = "") -> str:
    done = _run(folder, *arguments)
    if done.returncode:
        raise ConfigError(failure or f"git {arguments[0]} failed: {_said(done.stderr)}")
    return done.stdout.decode(errors="surrogateescape")


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603 - the revision is no option, and no shell reads it
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - the user's own git
            capture_output=True,
            check=False,
            timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise ConfigError("git:REVISION needs git, which is not installed") from None
    except subprocess.TimeoutExpired:
        raise ConfigError(f"git {arguments[0]} took longer than {_PATIENCE} seconds") from None


def _said(stderr: bytes) -> str:
    return stderr.decode(errors="replace").strip().removeprefix("fatal: ")
