"""The AGIS conformance set: documents, the findings a validator must report, and validators to hold against it."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.subject import LintContext
from bespeak.contract.catalog.document import load_bundled
from bespeak.errors import ConfigError
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.tree import MAX_BYTES

Kind = Literal["valid", "invalid", "borderline"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_SECONDS: Final = 60  # time limit of a foreign validator, per document
_PLACE: Final = "{}"
PACKAGED: Final = Path(__file__).with_name("documents")  # folder of the set in an installed package
SOURCE: Final = Path(__file__).resolve().parents[4] / "tests" / "documents"  # folder of the set in a working copy


@dataclass(frozen=True, slots=True, order=True)
class Expected:
    """One finding that a validator must report: the rule, and the place by JSON Pointer."""

    rule: str
    pointer: str = ""

    def __str__(self) -> str:
        return f"{self.rule} {self.pointer}".rstrip()


@dataclass(frozen=True, slots=True)
class DocumentCase:
    kind: Kind
    file: Path
    expected: tuple[Expected, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.file.name}"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The result of a validator: True if the document is accepted, and its errors if the validator lists them."""

    accepted: bool
    errors: tuple[Expected, ...] | None = None
    note: str = ""


Validator = Callable[[DocumentCase], Acceptance]


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A case and the mistakes of the validator; empty if there are none."""

    case: DocumentCase
    wrong: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"document": self.case.name, "right": not self.wrong, "wrong": self.wrong}


def find_cases(root: Path | None = None) -> list[DocumentCase]:
    """Find the cases in a folder with `valid`, `invalid` and `borderline`; by default the bundled set."""
    folder = root or (PACKAGED if PACKAGED.is_dir() else SOURCE)
    cases = [case for kind in KINDS for case in _cases(folder / kind, kind)]
    if not cases:
        raise ConfigError(f"{folder} has no .agis documents in {', '.join(KINDS)}")
    return cases


def hold(validator: Validator, cases: list[DocumentCase]) -> Iterator[CaseResult]:
    """Run a validator on each case and report its mistakes (AGIS 9.3)."""
    yield from (CaseResult(case, _wrong(case, validator(case))) for case in cases)


def _cases(folder: Path, kind: Kind) -> Iterator[DocumentCase]:
    for file in sorted(folder.glob("*.agis")) if folder.is_dir() else ():
        beside = file.with_suffix(".expected")
        try:
            lines = beside.read_text("utf-8").splitlines() if kind == "invalid" else []
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{beside} cannot be read: {error}") from error
        words = (line.partition("#")[0].split() for line in lines)
        expected = tuple(Expected(*parts[:2]) for parts in words if parts)
        if kind == "invalid" and not expected:
            raise ConfigError(f"{beside} lists no findings; an invalid document needs at least one")
        yield DocumentCase(kind, file, expected)


def _wrong(case: DocumentCase, verdict: Acceptance) -> str:
    if case.kind != "invalid":
        errors = ", ".join(str(error) for error in verdict.errors or ())
        return "" if verdict.accepted else f"is rejected{f' for {errors}' if errors else ''}{verdict.note}"
    if verdict.accepted:
        return f"is accepted but breaks {', '.join(str(expected) for expected in case.expected)}"
    if verdict.errors is None:
        return ""
    missing = [str(expected) for expected in case.expected if expected not in verdict.errors]
    more = [str(error) for error in verdict.errors if error not in case.expected]
    parts = {"lacks": missing, "has unexpected": more}
    return "; ".join(f"{what} {', '.join(listed)}" for what, listed in parts.items() if listed)


def own_validator() -> Validator:
    """Return a validator that applies the rules of `bespeak lint` without configuration."""
    context = LintContext(catalog=load_bundled())

    def judge(case: DocumentCase) -> Acceptance:
        text = read_text(case.file, MAX_BYTES)
        found = (text,) if isinstance(text, Diagnostic) else check_text(text, str(case.file), context).findings
        errors = sorted({Expected(each.rule, each.pointer) for each in found if each.severity == "error"})
        return Acceptance(not errors, tuple(errors))

    return judge


def command_validator(command: str) -> Validator:
    """Return a validator that runs a command with the file in place of `{}` or at its end; exit code 0 accepts."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"the validator {command!r} is not a valid command: {error}") from error
    if not words:
        raise ConfigError("the validator is empty; give a command, such as 'agis-validate {}'")
    if not any(_PLACE in word for word in words):
        words.append(_PLACE)

    def judge(case: DocumentCase) -> Acceptance:
        line = [word.replace(_PLACE, str(case.file)) for word in words]
        try:
            done = subprocess.run(line, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603 - the user's own command
        except subprocess.TimeoutExpired:
            return Acceptance(False, note=f" after {_SECONDS} seconds without a result")
        except OSError as error:
            raise ConfigError(f"the validator cannot be run: {words[0]}: {error.strerror or error}") from error
        return Acceptance(done.returncode == 0)

    return judge
