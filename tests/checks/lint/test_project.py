"""Runs over files and folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.checks.lint.endpoint_files import ENDPOINT as BOOK_FILE

from bespeak.checks.lint.config import Configs
from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.project import LintResult, Options, Project
from bespeak.checks.lint.suppress import Baseline, read_baseline
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.tree import Location

GUEST = '[endpoint.input_schema.properties.guest_id]\ntype = "string"\n\n'
ENDPOINT = BOOK_FILE.replace("[endpoint.output", f"{GUEST}[endpoint.output").replace("/room/{room_id}", "{path}")
ONLY = Options(select=("P30", "D1", "V56"))


def save(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def run(folder: Path, *paths: Path, options: Options = ONLY, baseline: Baseline | None = None) -> LintResult:
    project = Project(folder, Configs(folder), options)
    project.add(paths or (folder,))
    project.check_together()
    return project.outcome(baseline)


def shown(outcome: LintResult) -> list[tuple[str, str]]:
    return [(finding.file, finding.diagnostic.rule) for finding in outcome.findings]


def test_findings_come_by_file_and_place_with_names_from_here(tmp_path: Path) -> None:
    save(tmp_path, {"b.toml": ENDPOINT.format(path="/book"), "a/c.toml": ENDPOINT.format(path="/room/")})
    outcome = run(tmp_path)
    assert shown(outcome) == [("a/c.toml", "P301"), ("b.toml", "P302")]
    assert outcome.files == ("a/c.toml", "b.toml")
    assert outcome.failed


def test_the_same_file_is_looked_at_once(tmp_path: Path) -> None:
    save(tmp_path, {"a/b.toml": ENDPOINT.format(path="/book")})
    outcome = run(tmp_path, tmp_path, tmp_path / "a" / ".." / "a" / "b.toml")
    assert shown(outcome) == [("a/b.toml", "P302")]


def test_unknown_files_are_skipped_in_folders_and_reported_when_named(tmp_path: Path) -> None:
    save(tmp_path, {"pyproject.toml": "[project]\n", "x.json": "[1, 2", "y.json": "{}"})
    assert run(tmp_path) == LintResult((), (), False)
    assert shown(run(tmp_path, tmp_path / "y.json")) == [("y.json", "D114")]
    assert shown(run(tmp_path, tmp_path / "x.json")) == [("x.json", "D102")]


def test_a_file_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "x.agis").write_bytes(b"\xff\xfe\x00")
    assert shown(run(tmp_path)) == [("x.agis", "D101")]


@pytest.mark.parametrize("server", [True, False], ids=["bespeak.toml", "endpoints only"])
def test_endpoints_of_one_deployment_may_not_share_a_place(server: bool, tmp_path: Path) -> None:
    save(tmp_path, {f"endpoints/{name}.toml": ENDPOINT.format(path="/room/{room_id}") for name in "ab"})
    save(tmp_path, {"endpoints/c.toml": ENDPOINT.format(path="/room/{guest_id}")})
    if server:
        save(tmp_path, {"bespeak.toml": '[server]\nserver_id = "r"\noperator = "r"\ncontact = "c@r"\n'})
    assert shown(run(tmp_path)) == [("endpoints/b.toml", "P307"), ("endpoints/c.toml", "P306")]


def test_endpoints_of_two_deployments_may(tmp_path: Path) -> None:
    save(tmp_path, {f"{name}/endpoints/x.toml": ENDPOINT.format(path="/room") for name in "ab"})
    assert shown(run(tmp_path)) == []


def test_cross_file_finding_can_be_ignored_in_one_file(tmp_path: Path) -> None:
    text = ENDPOINT.format(path="/room")
    save(tmp_path, {"endpoints/a.toml": text, "endpoints/b.toml": f"# bespeak: ignore-file[P307] a copy\n{text}"})
    outcome = run(tmp_path)
    assert (shown(outcome), outcome.ignored) == ([], 1)


def test_missing_catalog_is_reported_in_the_configuration(tmp_path: Path) -> None:
    server = '[server]\nserver_id = "r"\noperator = "r"\ncontact = "c@r"\ncatalog = "9.9.9"\n'
    save(tmp_path, {"bespeak.toml": server})
    outcome = run(tmp_path)
    assert shown(outcome) == [("bespeak.toml", "V562")]
    assert outcome.findings[0].diagnostic.location is not None
    assert outcome.findings[0].diagnostic.location.line == 5


def test_each_file_has_the_settings_of_its_folder(tmp_path: Path) -> None:
    text = ENDPOINT.format(path="/book")
    save(tmp_path, {"a/x.toml": text, "b/x.toml": text, "b/y/old.toml": text})
    save(tmp_path, {"a/pyproject.toml": '[tool.bespeak.lint]\nseverity = { P302 = "info" }\n'})
    save(tmp_path, {"b/pyproject.toml": '[tool.bespeak.lint]\nexclude = ["y"]\nfail-on = "warning"\n'})
    outcome = run(tmp_path)
    assert [(finding.file, finding.diagnostic.severity) for finding in outcome.findings] == [
        ("a/x.toml", "info"),
        ("b/x.toml", "error"),
    ]
    assert not run(tmp_path, tmp_path / "a").failed
    assert run(tmp_path, tmp_path / "a", options=Options(select=("P30",), fail_on="info")).failed


def test_a_text_on_standard_input_is_looked_at_under_its_name(tmp_path: Path) -> None:
    save(tmp_path, {"pyproject.toml": '[tool.bespeak.lint]\nper-path-ignores = { "old/*" = ["P302"] }\n'})
    for name, rules in (("old/x.toml", []), ("new/x.toml", ["P302"])):
        project = Project(tmp_path, Configs(tmp_path), ONLY)
        project.add_text(ENDPOINT.format(path="/book"), tmp_path / name)
        project.check_together()
        outcome = project.outcome()
        assert [finding.diagnostic.rule for finding in outcome.findings] == rules
        assert outcome.files == (name,)
        assert project.text(name) == ENDPOINT.format(path="/book")


def test_baseline_hides_known_findings_and_reports_stale_entries(tmp_path: Path) -> None:
    save(tmp_path, {"a.toml": ENDPOINT.format(path="/book"), "b.toml": ENDPOINT.format(path="/list")})
    project = Project(tmp_path, Configs(tmp_path), ONLY)
    project.add([tmp_path])
    path = tmp_path / "bespeak-baseline.json"
    project.new_baseline(Baseline(path, {})).write()
    known = run(tmp_path, baseline=read_baseline(path))
    assert (shown(known), known.baselined, known.failed) == ([], 2, False)
    save(tmp_path, {"a.toml": "\n\n# moved\n" + ENDPOINT.format(path="/book"), "b.toml": ENDPOINT.format(path="/room")})
    save(tmp_path, {"c.toml": ENDPOINT.format(path="/find")})
    later = run(tmp_path, baseline=read_baseline(path))
    assert shown(later) == [("bespeak-baseline.json", "D193"), ("c.toml", "P302")]
    alone = run(tmp_path, tmp_path / "a.toml", baseline=read_baseline(path))
    assert shown(alone) == [], "what was not looked at is not stale"


def test_a_file_that_cannot_be_read_is_in_no_baseline(tmp_path: Path) -> None:
    save(tmp_path, {"a.agis": "a: [\n"})
    project = Project(tmp_path, Configs(tmp_path), ONLY)
    project.add([tmp_path])
    assert project.new_baseline(Baseline(tmp_path / "b.json", {})).entries == {}


def test_steps_are_measured_when_asked_for(tmp_path: Path) -> None:
    save(tmp_path, {"a.toml": ENDPOINT.format(path="/room")})
    project = Project(tmp_path, Configs(tmp_path), ONLY, measured=True)
    project.add([tmp_path])
    assert project.times is not None
    assert "1 documents" in next(project.times.rows())


URL = "https://flights.test/.well-known/ai"


def remote(tmp_path: Path, *, ignore: tuple[str, ...] = ()) -> Project:
    """A run with one document from elsewhere, wrong inside and around."""
    project = Project(tmp_path, Configs(tmp_path), Options(ignore=ignore))
    checked = check_text('{"aiendpoint": "2.0"}', URL, project.remote_context(), "ai")
    project.add_remote(URL, checked, [Diagnostic("W919", "warning", "the Cache-Control is missing", Location(URL))])
    return project


def test_a_document_from_elsewhere_is_reported_under_its_address(tmp_path: Path) -> None:
    project = remote(tmp_path)
    project.check_together()
    outcome = project.outcome()
    assert outcome.files == (URL,)
    assert {finding.file for finding in outcome.findings} == {URL}
    assert {"D170", "W919"} <= {finding.diagnostic.rule for finding in outcome.findings}
    assert project.text(URL) == '{"aiendpoint": "2.0"}'
    assert outcome.failed


def test_remote_document_has_no_fix_follows_the_settings_and_is_known_by_its_address(tmp_path: Path) -> None:
    project = remote(tmp_path)
    assert all(finding.diagnostic.fix is None for finding in project.outcome().findings)
    assert project.mend(None, unsafe=True) == []
    rules = {finding.diagnostic.rule for finding in remote(tmp_path, ignore=("W", "D170")).outcome().findings}
    assert rules
    assert rules.isdisjoint(("W919", "D170"))
    baseline = remote(tmp_path).new_baseline(Baseline(tmp_path / "b.json", {}))
    assert {entry["file"] for entry in baseline.entries.values()} == {URL}
    outcome = remote(tmp_path).outcome(baseline)
    assert (outcome.findings, outcome.baselined) == ((), len(baseline.entries))


def test_findings_about_a_host_make_no_document_of_it(tmp_path: Path) -> None:
    project = remote(tmp_path)
    host = "https://flights.test"
    project.add_remote(host, None, [Diagnostic("W931", "warning", "wrong", Location(host))], is_document=False)
    outcome = project.outcome()
    assert outcome.files == (URL,)
    assert host in {finding.file for finding in outcome.findings}


RECIPE = """
[[recipe]]
name = "book-again"

[[recipe.steps]]
method = "BOOK"
path = "/room"
capture_as = "made"
parameters.room_id = { kind = "proposal", value = "room_id" }
parameters.guest_id = { kind = "proposal", value = "guest" }
"""


def test_a_composition_is_checked_against_the_endpoints_beside_it(tmp_path: Path) -> None:
    composed = ENDPOINT.format(path="/stay").replace("room_unavailable", "composition_failed")
    composed = composed.replace(
        '"registered_function"\nfunction = "rooms.book"', '"composition"\nrecipe = "book-again"'
    )
    files = {"bespeak.toml": "[server]\n", "agtp-recipes.toml": RECIPE, "endpoints/stay.toml": composed}
    save(tmp_path, files)
    only = Options(select=("H74",))
    # The endpoint of the step may be somewhere else, such as in an app.
    assert run(tmp_path, options=only).findings == ()
    save(tmp_path, {"endpoints/room.toml": ENDPOINT.format(path="/room")})
    [finding] = run(tmp_path, options=only).findings
    assert finding.diagnostic.rule == "H743"
    assert "there is no field 'guest'; there are guest_id, room_id" in finding.diagnostic.message
    assert str(finding.diagnostic.location).startswith("endpoints/stay.toml:3")


def test_files_of_a_folder_that_wait_for_a_review_are_one_finding(tmp_path: Path) -> None:
    save(tmp_path, {f"endpoints/{name}.toml": f"# review (0.4): BOOK\n{ENDPOINT}" for name in ("one", "two")})
    found = run(tmp_path, options=Options(select=("R901",))).findings
    assert [one.diagnostic.message.partition(" files")[0] for one in found] == ["2"]
