"""Valid targets, and the messages about others."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cases import rows
from tests.documents.agis_documents import booking
from tests.process import HOTEL, ROOT, bespeak, refused
from tests.service import Bench

from bespeak.app.server.assembly import assemble
from bespeak.app.server.target import Target, load_target
from bespeak.contract.data_set import data_sets
from bespeak.errors import BespeakError, ConfigError, ContractError
from bespeak.terminal.deployment import store_place
from bespeak.text.diagnostics.diagnostic import Diagnostic

APP = """
from bespeak import App

{name} = App("Test", server_id="test.example", operator="Test", contact="a@test.example")


@{name}.endpoint("QUERY", "/things", impact="informational",
                 intent="List the things.", outcome="The things are returned.")
def things() -> dict[str, int]:
    return {{}}
"""


def test_folders_of_files_and_apps_in_folders_are_services(tmp_path: Path) -> None:
    target = load_target(str(HOTEL))
    assert target.service.identity.server_id == "hotel.example"
    assert ("BOOK", "/room") in {endpoint.key for endpoint in target.service.endpoints}
    assert [resource.name for resource in target.service.resources] == ["house-rules"]
    (tmp_path / "joined_app.py").write_text(APP.format(name="app"))
    (tmp_path / "bespeak.toml").write_text('[server]\napp = "joined_app:app"\n')
    target = load_target(str(tmp_path))
    assert target.service.identity.server_id == "test.example"
    assert [endpoint.key for endpoint in target.service.endpoints] == [("QUERY", "/things")]
    (tmp_path / "bespeak.toml").write_text('[server]\napp = "stays:app"\n')
    (tmp_path / "stays.py").write_text((ROOT / "docs_src" / "compositions" / "stays" / "stays.py").read_text())
    service = load_target(str(tmp_path)).service
    assert [recipe.name for recipe in service.recipes] == ["book-stay"]
    assert assemble(service).findings == []


def test_python_files_and_modules_in_a_folder_are_services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, name in (("a", "app"), ("b", "other")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "main.py").write_text(APP.format(name=name))
    assert load_target(str(tmp_path / "a" / "main.py")).service.endpoints
    assert load_target(f"{tmp_path / 'b' / 'main.py'}:other").service.endpoints
    (tmp_path / "unlikely_module.py").write_text(APP.format(name="app"))
    monkeypatch.chdir(tmp_path)
    assert load_target("unlikely_module:app").service.identity.server_id == "test.example"


SILENT = APP.replace('"Test", server_id="test.example", operator="Test", contact="a@test.example"', '"Test"')


def write_app(folder: Path, text: str, toml: str, name: str = "app") -> None:
    (folder / "rooms.py").write_text(text.format(name=name))
    (folder / "bespeak.toml").write_text(toml)


@rows("target", "rooms.py", "rooms.py:app", "rooms:app")
def test_an_app_is_served_with_the_configuration_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "rooms", raising=False)
    write_app(
        tmp_path,
        SILENT,
        '[server]\nserver_id = "rooms.example"\noperator = "Acme"\ncontact = "a@acme.example"\n'
        '[auth]\nmodes = ["signed"]\n[policies]\nstrict_output = true\n[methods]\nenable = ["CHAIN"]\n'
        '[store]\nplace = "kept.db"\n[agents]\nrequire_known = true\n',
    )
    loaded = load_target(target)
    service = loaded.service
    assert (service.identity.server_id, service.identity.name) == ("rooms.example", "Test")
    assert (service.policies.strict_output, service.methods, service.require_known_agents) == (True, ("CHAIN",), True)
    assert (loaded.document.auth.modes, loaded.findings) == (("signed",), [])
    assert store_place(target) == str(Path("kept.db"))


def test_endpoint_files_are_joined_only_if_the_configuration_names_the_app(tmp_path: Path) -> None:
    write_app(tmp_path, APP, "")
    shutil.copytree(HOTEL / "endpoints", tmp_path / "endpoints")
    assert len(load_target(str(tmp_path / "rooms.py")).service.endpoints) == 1
    (tmp_path / "bespeak.toml").write_text('[server]\napp = "rooms:app"\n')
    sys.modules.pop("rooms", None)
    assert len(load_target(str(tmp_path / "rooms.py")).service.endpoints) > 1


def test_equal_values_of_an_app_and_its_configuration_are_accepted(tmp_path: Path) -> None:
    write_app(tmp_path, APP, '[server]\nserver_id = "test.example"\noperator = "Test"\ncatalog = "1.1.0"\n')
    target = load_target(str(tmp_path / "rooms.py"))
    assert (target.service.identity.contact, target.findings) == ("a@test.example", [])


SAYING = """
from bespeak import App, Policies

app = App("Test", server_id="test.example", operator="Test", contact="a@test.example", catalog="1.0.0",
          description="Rooms.", methods=["CHAIN"], policies=Policies(synthesis_enabled=True))
"""


@rows(
    "toml, line, message",
    ('[server]\nserver_id = "b"\n', 2, "`server_id` is 'b' here, but 'test.example' in the App at {app}"),
    ('[server]\n\nname = "B"\n', 3, "`name` is 'B' here, but 'Test' in the App at {app}"),
    ('[server]\ncatalog = "1.1.0"\n', 2, "`catalog` is '1.1.0' here, but '1.0.0' in the App at {app}"),
    ('[server]\ndescription = "b"\n', 2, "`description` is 'b' here, but 'Rooms.' in the App at {app}"),
    ("[policies]\nsynthesis_enabled = false\n", 2, "`synthesis_enabled` is False here, but True in the App at {app}"),
    ('[methods]\nenable = ["BATCH"]\n', 2, "`enable` is ('BATCH',) here, but ('CHAIN',) in the App at {app}"),
)
def test_values_that_disagree_are_an_error_that_names_both_places(
    tmp_path: Path, toml: str, line: int, message: str
) -> None:
    write_app(tmp_path, SAYING, toml)
    with pytest.raises(ContractError, match="the app and its configuration say different things") as caught:
        load_target(str(tmp_path / "rooms.py"))
    [finding] = caught.value.findings
    assert isinstance(finding, Diagnostic)
    assert (finding.rule, finding.message) == ("Y822", message.format(app=f"{tmp_path / 'rooms.py'}:4"))
    assert finding.location is not None
    assert (finding.location.file, finding.location.line) == (str(tmp_path / "bespeak.toml"), line)


@rows("named, message", ('app = "other:app"', "Y821"), ('document = "menu.agis"', "Y821"))
def test_the_configuration_of_something_else_is_not_used_and_what_it_guards_is_reported(
    tmp_path: Path, named: str, message: str
) -> None:
    write_app(tmp_path, APP, f'[server]\n{named}\n[auth]\nmodes = ["signed"]\n')
    target = load_target(str(tmp_path / "rooms.py"))
    assert target.document.auth.is_open
    assert [finding.rule for finding in target.findings] == [message]


def test_the_command_of_an_mcp_server_is_refused_with_the_import_of_it() -> None:
    with pytest.raises(BespeakError, match=r"bespeak import mcp 'python notes\.py' -o tools"):
        load_target("python notes.py")


@pytest.mark.parametrize("text", ["no/such/folder", "nothing.toml", "nothing.py", "agtp://host", "", "a b:c"])
def test_an_invalid_target_is_refused_with_advice(text: str) -> None:
    with pytest.raises(BespeakError, match=r"nothing to serve|failed"):
        load_target(text)


SERVER = '[server]\nserver_id = "a"\noperator = "b"\ncontact = "c"\n'


@rows(
    "name, text, said",
    ("broken.py", "1 / 0", r"broken\.py failed at .*broken\.py:1 with ZeroDivisionError"),
    ("main.py", APP.format(name="service"), r"name the one to use: .*main.py:service"),
    ("bespeak.toml", f'{SERVER}wildcard_handler = "no_such.module"\n', "wildcard_handler"),
)
def test_what_cannot_be_imported_is_named_with_the_reason(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=said):
        load_target(str(tmp_path / name))


@rows(
    "line",
    "[server",
    '[policies.methods]\nlegacy = ["GETT"]',
    '[policies]\nanonymous_discovery = "no"',
    '[policies.methods]\ndisallow = "X"',
    "[auht]\nmodes = []",
    "[policies]\nconfirm_ireversible = true",
    "[sessions]\nEntropy = true",
)
def test_a_configuration_that_cannot_be_understood_is_not_served(tmp_path: Path, line: str) -> None:
    (tmp_path / "bespeak.toml").write_text(line + "\n")
    with pytest.raises(ContractError, match="configuration cannot be used"):
        load_target(str(tmp_path))


def test_a_second_configuration_is_reported(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text("[server]\nserver_id = 'test.example'\n")
    (tmp_path / "agtp-server.toml").write_text('[auth]\nmodes = ["signed"]\n')
    findings = [finding for finding in load_target(str(tmp_path)).findings if finding.rule == "Y821"]
    assert [one.message for one in findings] == ["agtp-server.toml is not read here, so its [auth] has no effect"]


BOOK = '[handlers."BOOK /room"]\ntype = "registered_function"\nfunction = "{function}"\n'
PYTHON = """
from bespeak import App

app = App.from_agis("rooms.agis", operator="Acme", contact="a@acme.example")


@app.handler("BOOK", "/room")
def book(room_id: str) -> dict[str, str]:
    return {"reservation_id": room_id}
"""
ADMIT = {
    "method": "ADMIT",
    "path": "/guest",
    "semantic": {
        "intent": "Admits a guest to the house.",
        "actor": "agent",
        "outcome": "The guest is in.",
        "capability": "transaction",
    },
    "input": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    "output": {"type": "object", "properties": {"name": {"type": "string"}}},
    "errors": [],
}


@pytest.fixture
def rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder with a document, and a module with a unique name."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    write(tmp_path)
    (tmp_path / f"{module_in(tmp_path)}.py").write_text(
        "def book(room_id) -> dict[str, str]: return {'reservation_id': room_id}\n"
    )
    return tmp_path


def module_in(folder: Path) -> str:
    return "handlers_" + hashlib.sha256(str(folder).encode()).hexdigest()[:12]


def write(folder: Path, *more: dict[str, Any], **fields: Any) -> None:
    document = booking() | {"operator": "Acme", "contact": "a@acme.example"} | fields
    document["endpoints"] = [*document["endpoints"], *more]
    document["vocabulary"]["declared_verbs"] = list(dict.fromkeys(entry["method"] for entry in document["endpoints"]))
    (folder / "rooms.agis").write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=2))


def configure(folder: Path, text: str, *, top: str = 'document = "rooms.agis"\n') -> None:
    (folder / "bespeak.toml").write_text(top + text.replace("{function}", f"{module_in(folder)}.book"))


def keys(target: Target) -> list[tuple[str, str]]:
    return [endpoint.key for endpoint in target.service.endpoints]


@pytest.mark.parametrize("name", ["", "rooms.agis", "bespeak.toml"])
def test_a_document_is_served_with_the_handlers_of_its_configuration(rooms: Path, name: str) -> None:
    configure(rooms, BOOK + "[policies]\nstrict_output = true\n")
    target = load_target(str(rooms / name))
    assert (keys(target), target.findings) == ([("BOOK", "/room")], [])
    service = target.service
    assert (service.identity.server_id, service.identity.operator) == ("rooms.acme.example", "Acme")
    assert (service.policies.strict_output, service.document_version) == (True, "1.0.0")
    assert service.vocabulary.domain == "hospitality"


def test_data_sets_of_documents_apps_and_folders_are_joined(rooms: Path) -> None:
    name = module_in(rooms) + "_data"
    app = 'from bespeak import App\napp = App("A", server_id="a", operator="o", contact="c")\n'
    (rooms / f"{name}.py").write_text(app + 'app.data("rooms", file="rooms.csv")\n')
    top = f'[server]\napp = "{name}:app"\n[[data]]\nclass = "guests"\nfile = "guests.csv"\n'
    configure(rooms, "", top=top)
    assert [data.name for data in data_sets(load_target(str(rooms)).service.data_manifest)] == ["guests", "rooms"]
    write(rooms, data_manifest={"available_data": [{"class": "rooms", "description": "Rooms of the house"}]})
    configure(rooms, BOOK + '[[data]]\nclass = "rooms"\nfile = "rooms.csv"\n')
    [data] = data_sets(load_target(str(rooms)).service.data_manifest)
    assert (data.description, data.file) == ("Rooms of the house", "rooms.csv")
    configure(rooms, BOOK + '[[data]]\nclass = "guests"\nfile = "guests.csv"\n')
    target = load_target(str(rooms))
    assert list(data_sets(target.service.data_manifest)) == []
    assert "the class 'guests' is not in the data_manifest of the document" in [one.message for one in target.findings]


@pytest.mark.parametrize("name", ["rooms.agis", "rooms.py"])
def test_a_document_is_served_with_the_module_of_its_name(rooms: Path, name: str) -> None:
    (rooms / "rooms.py").write_text(PYTHON)
    configure(rooms, "", top='[server]\ndomain = "other.example"\n')
    target = load_target(str(rooms / name))
    assert (keys(target), target.service.identity.domain) == ([("BOOK", "/room")], "other.example")
    assert target.findings == []


@pytest.mark.parametrize("beside", ["nothing", "a module of another app", "a configuration of something else"])
def test_a_document_without_handlers_is_refused_with_advice(rooms: Path, beside: str) -> None:
    if beside == "a module of another app":
        (rooms / "rooms.py").write_text(APP.format(name="app"))
    elif beside == "a configuration of something else":
        configure(rooms, "", top='document = "other.agis"\n')
    with pytest.raises(ConfigError, match=r'(?s)rooms\.agis declares an endpoint.*document = "rooms\.agis"') as caught:
        load_target(str(rooms / "rooms.agis"))
    assert '@app.handler("BOOK", "/room")' in str(caught.value)
    assert "def book_room(room_id: str)" in str(caught.value)
    configure(rooms, "")
    with pytest.raises(ConfigError, match="without handlers"):
        load_target(str(rooms))


def test_endpoints_without_handlers_are_errors_also_of_apps_of_the_document(rooms: Path) -> None:
    write(rooms, ADMIT)
    configure(rooms, BOOK)
    target = load_target(str(rooms))
    assert keys(target) == [("BOOK", "/room")]
    [finding] = target.findings
    assert (finding.rule, finding.severity) == ("H705", "error")
    assert '[handlers."ADMIT /guest"]' in finding.help
    assert finding.location.file.endswith("rooms.agis")
    name = module_in(rooms) + "_app"
    (rooms / f"{name}.py").write_text(PYTHON)
    configure(rooms, f'[server]\napp = "{name}:app"\n[policies]\nstrict_output = true\n', top="")
    target = load_target(str(rooms))
    assert keys(target) == [("BOOK", "/room")]
    assert [finding.rule for finding in target.findings] == ["H705"]
    assert target.service.policies.strict_output
    assert target.service.description == "Rooms for a night."


@rows(
    "text, rule, said",
    (BOOK.replace("/room", "/rooms"), "H706", "Did you mean BOOK /room?"),
    (BOOK.replace("{function}", "no_such_module.book"), "H702", "No module named"),
    (BOOK.replace("{function}", "os.path.samefile"), "H703", "samefile()"),
)
def test_an_unusable_handler_is_shown_in_the_configuration(rooms: Path, text: str, rule: str, said: str) -> None:
    configure(rooms, text)
    with pytest.raises(ContractError, match="has a handler that can be used") as caught:
        load_target(str(rooms))
    [finding] = caught.value.findings
    assert isinstance(finding, Diagnostic)
    assert finding.rule == rule
    assert said in str(finding)
    assert (Path(finding.location.file).name, finding.location.line > 0) == ("bespeak.toml", True)
    # Beside one that can, it is a finding.
    write(rooms, ADMIT)
    upstream = '[handlers."ADMIT /guest"]\ntype = "external_service"\nurl = "https://a.example"\nmethod = "POST"\n'
    configure(rooms, text + upstream)
    target = load_target(str(rooms))
    assert keys(target) == [("ADMIT", "/guest")]
    assert rule in {finding.rule for finding in target.findings}


@pytest.mark.requirement("AGIS-1.3-1", "AGIS-2-1")
def test_a_verb_beyond_the_catalog_is_served_with_and_without_the_grammar_header(rooms: Path) -> None:
    write(rooms, ADMIT)
    (rooms / f"{module_in(rooms)}.py").write_text(
        "def book(room_id) -> dict[str, str]: ...\nasync def admit(name) -> dict[str, str]: return {'name': name}\n"
    )
    admit = BOOK.replace("BOOK /room", "ADMIT /guest").replace("{function}", f"{module_in(rooms)}.admit")
    configure(rooms, BOOK + admit)
    target = load_target(str(rooms / "rooms.agis"))
    assert target.service.policies.methods.custom == ("ADMIT",)
    bench = Bench(assemble(target.service, base=target.base))
    assert (bench.findings, bench.send("ADMIT", "/guest", {"name": "Ann"}).json) == ([], {"name": "Ann"})
    assert bench.send("ADMIT", "/guest", {"name": "Ann"}, method_grammar="AGIS/1.0").json == {"name": "Ann"}
    assert "ADMIT" in bench.send("DISCOVER", "/").json["policies"]["methods"]["custom"]
    found = bench.send("DISCOVER", "/", accept="application/agis").json
    assert "ADMIT" in found["vocabulary"]["declared_verbs"]


def test_a_document_that_becomes_invalid_is_no_longer_served(rooms: Path) -> None:
    configure(rooms, BOOK)
    assert load_target(str(rooms)).service.endpoints
    write(rooms, version=7)
    with pytest.raises(ContractError, match=r"rooms\.agis is not valid") as caught:
        load_target(str(rooms))
    [finding] = caught.value.findings
    assert isinstance(finding, Diagnostic)
    assert finding.pointer == "/version"
    assert finding.location.line > 1


@pytest.mark.parametrize("name", ["", "rooms.agis"])
def test_a_broken_configuration_beside_a_document_is_shown(rooms: Path, name: str) -> None:
    configure(rooms, "[handlers", top="")
    with pytest.raises(ContractError, match=r"configuration .*cannot be used"):
        load_target(str(rooms / name))


def test_a_document_without_an_operator_is_warned_of_and_uses_the_configured_catalog(rooms: Path) -> None:
    document = msgspec.json.decode((rooms / "rooms.agis").read_bytes())
    del document["contact"]
    (rooms / "rooms.agis").write_bytes(msgspec.json.encode(document))
    configure(rooms, BOOK)
    [finding] = load_target(str(rooms)).findings
    assert (finding.rule, finding.severity) == ("Y820", "warning")
    configure(rooms, '[server]\ncontact = "b@acme.example"\n' + BOOK)
    assert load_target(str(rooms)).findings == []
    configure(rooms, '[server]\ncatalog = "9.9.9"\n' + BOOK)
    with pytest.raises(ContractError, match="catalog cannot be used"):
        load_target(str(rooms))
    configure(rooms, '[server]\ncatalog = "1.0.0"\n' + BOOK)
    assert load_target(str(rooms)).service.catalog == "1.0.0"


@pytest.mark.process
def test_a_document_that_is_broken_is_refused_with_a_frame_and_exit_code_2(rooms: Path) -> None:
    (rooms / "rooms.agis").write_text("agis: '1.0'\nservice: [oops\n")
    for command, *rest in (("serve",), ("discover",), ("call", "BOOK", "/room")):
        told = refused(command, str(rooms / "rooms.agis"), *rest)
        assert "rooms.agis:" in told
        assert "error[D102]" in told
        assert " | " in told


@pytest.mark.process
def test_documents_answer_without_a_server_but_not_strictly_with_an_endpoint_left_out(rooms: Path) -> None:
    configure(rooms, BOOK)
    done = bespeak("call", str(rooms / "rooms.agis"), "BOOK", "/room", "room_id=12")
    assert (done.returncode, done.stderr) == (0, "")
    assert '"reservation_id": "12"' in done.stdout
    assert "BOOK" in bespeak("discover", str(rooms / "rooms.agis")).stdout
    write(rooms, ADMIT)
    configure(rooms, BOOK)
    told = refused("serve", str(rooms / "rooms.agis"), "--strict", "--agtp", "127.0.0.1:0")
    assert "H705" in told
    assert "not started" in told


def test_an_openapi_file_is_the_facade_of_its_import_and_other_json_is_refused(tmp_path: Path) -> None:
    operation = {"summary": "List all pets", "responses": {"200": {"description": "The pets."}}}
    described = {"openapi": "3.1.0", "info": {"title": "Pets", "version": "1"}}
    described["servers"] = [{"url": "https://p.example"}]
    for name, paths in (("pets.json", {"/pets": {"get": operation}}), ("none.yaml", {})):
        (tmp_path / name).write_bytes(msgspec.json.encode({**described, "paths": paths}))
    target = load_target(str(tmp_path / "pets.json"))
    assert [str(endpoint) for endpoint in target.service.endpoints] == ["LIST /pets"]
    assert (target.service.identity.name, target.base) == ("Pets", tmp_path)
    with pytest.raises(ConfigError, match=r"none\.yaml has no operations that can be called"):
        load_target(str(tmp_path / "none.yaml"))
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(ContractError, match=r"other\.json is not an OpenAPI description") as caught:
        load_target(str(tmp_path / "other.json"))
    assert caught.value.findings


@rows(
    "app, message",
    (
        "clinik_missing:app",
        "importing clinik_missing failed with ModuleNotFoundError: No module named 'clinik_missing'",
    ),
    ("json:application", "json has no App named 'application'; make one with application = bespeak.App(...)"),
    ("clinic.py", "; write app = 'clinic:app'"),
)
def test_an_app_that_the_configuration_names_wrongly_is_reported_with_the_setting(
    tmp_path: Path, app: str, message: str
) -> None:
    (tmp_path / "bespeak.toml").write_text(f'[server]\napp = "{app}"\n')
    with pytest.raises(ConfigError) as caught:
        load_target(str(tmp_path))
    assert str(caught.value).startswith(f"`app` in [server] of {tmp_path}: ")
    assert str(caught.value).endswith(message)


def test_a_missing_file_is_called_missing_and_a_file_without_an_app_by_its_own_name(tmp_path: Path) -> None:
    missing, empty = tmp_path / "missing.py", tmp_path / "empty.py"
    with pytest.raises(ConfigError, match=r"there is no file or folder '.*missing\.py'"):
        load_target(str(missing))
    empty.write_text("x = 1")
    with pytest.raises(ConfigError) as caught:
        load_target(str(empty))
    assert str(caught.value) == f"{empty} has no App named 'app'; make one with app = bespeak.App(...)"
    with pytest.raises(ConfigError) as caught:
        load_target("no_such_module_here:app")
    assert str(caught.value).startswith("importing no_such_module_here failed with ModuleNotFoundError")
