"""All mistakes of a module at once, where a command loads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process import bespeak as run

from bespeak import App
from bespeak.app.authoring.declarations import collected_mistakes
from bespeak.errors import ContractError


def make_app() -> App:
    return App("T", server_id="t.example", operator="Tests", contact="ops@t.example")


def declare(app: App, path: str, impact: str = "informational") -> None:
    def fetch() -> dict[str, str]:
        """Fetch a thing.

        Outcome: The thing is returned.
        """
        return {}

    app.endpoint("FETCH", path, impact=impact)(fetch)  # type: ignore[arg-type] # wrong on purpose


def test_a_mistake_raises_at_its_declaration() -> None:
    with pytest.raises(ContractError, match="FETCH /a cannot be declared"):
        declare(make_app(), "/a", impact="none")


def test_mistakes_are_collected_and_raised_together() -> None:
    app = make_app()

    def load() -> None:
        declare(app, "/a", impact="none")
        declare(app, "/thing")
        declare(app, "/b", impact="some")
        app.resource("guide", "A guide.")(list)
        app.resource("guide", "A guide.")(list)

    with pytest.raises(ContractError) as caught, collected_mistakes("things"):
        load()
    assert caught.value.message.splitlines()[0] == "3 declarations of things are not valid"
    assert "resource 'guide' already exists" in caught.value.message
    assert [finding.rule for finding in caught.value.findings] == ["S404", "S404"]  # type: ignore[attr-defined] # Diagnostic
    assert [endpoint.path for endpoint in app.service().endpoints] == ["/thing"]


def test_one_mistake_is_raised_as_it_is() -> None:
    with pytest.raises(ContractError, match="FETCH /a cannot be declared"), collected_mistakes("things"):
        declare(make_app(), "/a", impact="none")


@pytest.mark.process
def test_a_syntax_error_is_shown_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import os\n\ndef f(:\n    pass\n")
    done = run("serve", "app.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "app.py:3:7: error[H730] syntax error: invalid syntax\n  3 | def f(:\n    |       ^" in done.stderr
