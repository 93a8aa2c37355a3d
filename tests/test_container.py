"""The container image and the compose file: what they name exists, and the image serves where it can be built."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
import uuid
from pathlib import Path

import pytest
import yaml

from bespeak.app.cli.serve import serve

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def builder() -> str | None:
    """Return the command of a container engine that answers; None if there is none."""
    for name in ("docker", "podman"):
        if (
            shutil.which(name)
            and subprocess.run([name, "info"], capture_output=True, timeout=60, check=False).returncode == 0
        ):
            return name
    return None


def test_the_image_contains_what_the_build_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = re.search(r"'\.\[([a-z,]+)\]'", DOCKERFILE)
    assert found
    assert set(found[1].split(",")) <= set(project["optional-dependencies"])
    copied = [name for line in re.findall(r"^COPY (.+)$", DOCKERFILE, re.MULTILINE) for name in line.split()[:-1]]
    ignored = (ROOT / ".dockerignore").read_text()
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored


def test_the_commands_of_the_image_and_of_compose_are_valid() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["hotel"]
    image = re.search(r"^CMD \[(.+)\]$", DOCKERFILE, re.MULTILINE)
    assert image
    for command in (compose["command"], [part.strip(' "') for part in image[1].split(",")]):
        assert command[0] == "serve"
        context = serve.make_context("serve", list(command[1:]))
        assert context.params["target"] == "/service"
        assert context.params["operations"].endswith(":9464")


@pytest.mark.process
def test_the_image_is_built_and_serves() -> None:
    engine = builder()
    if engine is None:
        pytest.skip("neither docker nor podman answers on this machine")
    name = f"bespeak-test-{uuid.uuid4().hex[:8]}"
    subprocess.run([engine, "build", "-q", "-t", name, str(ROOT)], check=True, capture_output=True, timeout=900)
    try:
        version = subprocess.run([engine, "run", "--rm", name, "--version"], check=True, capture_output=True, text=True)
        assert version.stdout.startswith("bespeak, version")
        mounted = f"{ROOT / 'examples' / 'hotel'}:/service:ro"
        command = [engine, "run", "--rm", "-v", mounted, name, "call", "/service", "QUERY", "/rooms", "beds=3"]
        answer = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
        assert '"rooms"' in answer.stdout
    finally:
        subprocess.run([engine, "rmi", "-f", name], check=False, capture_output=True, timeout=120)
