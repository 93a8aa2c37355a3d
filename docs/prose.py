"""Check the prose rules of CONTRIBUTING.md that can be checked reliably: `python docs/prose.py [FILE...]`.

Two patterns have no false positives: a function docstring that does not begin with a verb, and "is no X" where English
says "is not a X".
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CODE = ("bench", "docs", "examples", "src", "tools")
GENERATED = "<!-- Written by docs/generate.py"

NOT_A_VERB = re.compile(
    r"[^A-Z]|[A-Z]{2}|\w*[^s\W]s\b|\w*[^e\W]ed\b|"
    r"(?:A|All|Also|An|Another|Any|Around|Aside|As|At|Before|Behind|Both|By|Data|Each|Either|Endpoint|Every|Everything|"
    r"False|First|For|Foreign|From|Here|How|However|If|In|Input|It|Markdown|Method|More|Most|Much|Neither|No|Nobody|None|"
    r"Not|Nothing|Noun|Of|On|Once|One|Only|Other|Reading|Resident|Same|Several|So|Some|Somebody|Such|Text|That|The|Their|Those|"
    r"Then|There|These|They|Three|Tier|Time|To|This|Token|True|Two|Under|Until|Up|Verb|What|Whatever|When|Where|Whether|Which|"
    r"While|Who|Whoever|Whom|Whose|Why|With|Without|Your)\b"
)
"""Wrong beginnings of a function docstring: code, acronyms, plurals, participles, and words that are never verbs."""

ODD_NEGATION = re.compile(
    r"(?<![Tt]here )\b(?:is|are|was|were|be|been) "
    r"(?:no (?!better|different|fewer|later|less|longer|matter|more|one|other|sooner|worse)[a-z]\w*"
    r"|none|nobody|nothing)\b"
)
"""A noun that is denied with "no" instead of the verb with "not"."""


class Finding(NamedTuple):
    """A place that breaks a rule."""

    path: Path
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {' '.join(self.text.split())[:100]}"


def check_python(path: Path, source: str) -> Iterator[Finding]:
    """Find noun-first docstrings of functions and odd negations in all strings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from check_text(path, node.value, node.lineno)
    for function in functions(tree):
        text = ast.get_docstring(function) or ""
        if NOT_A_VERB.match(text):
            yield Finding(path, function.lineno, "begin the docstring with a verb", text)


def functions(node: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """List functions and methods. Properties are values, and nested functions need no docstring."""
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from functions(child)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = " ".join(ast.unparse(decorator) for decorator in child.decorator_list)
            if not re.search(r"property|\.setter|fixture", decorators):
                yield child


def check_text(path: Path, text: str, line: int = 1) -> Iterator[Finding]:
    """Find odd negations, also across line breaks."""
    for match in ODD_NEGATION.finditer(re.sub(r"\s", " ", text)):
        words = text[max(0, match.start() - 40) : match.end()]
        yield Finding(path, line + text[: match.start()].count("\n"), 'write "is not"', words)


def check(paths: Iterable[Path]) -> list[Finding]:
    """Return the findings of all Python files and pages."""
    found: list[Finding] = []
    for path in paths:
        text, shown = path.read_text("utf-8"), path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        found += check_python(shown, text) if path.suffix == ".py" else check_text(shown, text)
    return found


def all_files() -> list[Path]:
    """List the Python files and hand-written pages of the repository."""
    paths = [path for folder in CODE for path in sorted((ROOT / folder).rglob("*.py"))]
    pages = [*ROOT.glob("*.md"), *(page for folder in CODE for page in (ROOT / folder).rglob("*.md"))]
    return [*paths, *sorted(page for page in pages if GENERATED not in page.read_text("utf-8"))]


def main(arguments: list[str]) -> int:
    """Print the findings in the given files, or in all; return 1 if there are any."""
    found = check([Path(name).resolve() for name in arguments] or all_files())
    sys.stdout.write("".join(f"{finding}\n" for finding in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
