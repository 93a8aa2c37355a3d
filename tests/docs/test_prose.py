"""The prose check finds what CONTRIBUTING.md asks for, and nothing else."""

from __future__ import annotations

from pathlib import Path

import prose
import pytest


def rules(source: str, name: str = "page.py") -> list[str]:
    checked = prose.check_python if name.endswith(".py") else prose.check_text
    return [finding.rule for finding in checked(Path(name), source)]


@pytest.mark.parametrize("first", ["The head.", "Whether it fits.", "Bytes as text.", "`x` as text.", "Returns."])
def test_docstring_without_a_leading_verb_is_reported(first: str) -> None:
    assert rules(f'class A:\n    async def f(self):\n        """{first}"""') == ["begin the docstring with a verb"]


def test_verbs_properties_fixtures_and_nested_functions_pass() -> None:
    assert rules('def f():\n    """Pass the head on."""\n    def g():\n        """The head."""') == []
    assert rules('class A:\n    """The head."""\n    @property\n    def f(self):\n        """The head."""') == []
    assert rules('@pytest.fixture\ndef f():\n    """A folder."""') == []


@pytest.mark.parametrize("text", ["A list is no\nobject.", "The address is none to ask.", "Words that are nothing."])
def test_denied_noun_is_reported_in_pages_and_messages(text: str) -> None:
    assert rules(text, "page.md") == ['write "is not"']
    assert rules(f"raise ValueError(f'''{{x}} {text}''')") == ['write "is not"']


@pytest.mark.parametrize("text", ["It is no longer used.", "There is no endpoint.", "Which is None."])
def test_plain_negations_pass(text: str) -> None:
    assert rules(text, "page.md") == []


def test_finding_names_its_place_and_fails_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("A paragraph that reads well.\n\nA map is no list.")
    assert prose.main([str(page)]) == 1
    assert "page.md:3: write" in capsys.readouterr().out
    page.write_text("A map is not a list.")
    assert prose.main([str(page)]) == 0
