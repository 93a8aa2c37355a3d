"""Files of tables: what a sheet shows is read, and a file that would take all memory is refused before that."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from bespeak.documents.data_formats import FormatError
from bespeak.documents.table_files import read_xlsx_batches

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"/>',
    "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
    f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets><sheet name="Orders" sheetId="1" '
    'r:id="r1"/><sheet name="More" sheetId="2" r:id="r2"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
    f'<Relationship Id="r1" Type="{OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="r2" Type="{OFFICE}/worksheet" Target="worksheets/sheet2.xml"/>'
    f'<Relationship Id="r3" Type="{OFFICE}/styles" Target="styles.xml"/></Relationships>',
    "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><cellXfs count="4"><xf numFmtId="0"/><xf numFmtId="14"/>'
    '<xf numFmtId="22"/><xf numFmtId="46"/></cellXfs></styleSheet>',
}


def write_xlsx(path: Path, *sheets: str, **parts: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {**PARTS, **parts}.items():
            archive.writestr(name, text)
        for number, sheet in enumerate(sheets, 1):
            text = f'<worksheet xmlns="{MAIN}"><sheetData>{sheet}</sheetData></worksheet>'
            archive.writestr(f"xl/worksheets/sheet{number}.xml", text)
    return path


def row(*cells: str, place: str = "") -> str:
    return f"<row{place}>{''.join(cells)}</row>"


def text(value: str) -> str:
    return f'<c t="inlineStr"><is><t>{value}</t></is></c>'


def number(value: float | str, style: int = 0) -> str:
    return f'<c s="{style}"><v>{value}</v></c>'


def read(path: Path, sheet: str | None = None) -> list[dict[str, Any]]:
    return [one for batch in read_xlsx_batches(path, sheet) for one in batch]


def test_a_sheet_gives_values_dates_as_iso_and_the_stored_value_of_a_formula(tmp_path: Path) -> None:
    titles = row(*map(text, ("id", "placed", "at", "took", "total", "open", "note")))
    sheet = (
        row(place=' r="2"')
        + titles
        + row(
            number(1),
            number(46000, 1),
            number(46000.5, 2),
            number(1.5, 3),
            "<c><f>6*7</f><v>42.5</v></c>",
            '<c t="b"><v>1</v></c>',
            '<c t="e"><v>#N/A</v></c>',
        )
        + row("<c/>", place=' r="9"')
        + row(number("1e400"), number(2), place=' r="11"')
    )
    path = write_xlsx(tmp_path / "orders.xlsx", sheet, row(text("a")) + row(number(7)))
    first, last = read(path)
    assert first == {
        "id": 1,
        "placed": "2025-12-09",
        "at": "2025-12-09T12:00:00",
        "took": "P1DT43200S",
        "total": 42.5,
        "open": True,
        "note": None,
    }
    assert (last["id"], last["placed"], last["note"]) == (None, 2, None)
    assert read(path, "More") == [{"a": 7}]
    with pytest.raises(FormatError, match="no sheet 'Less'; it has: Orders, More"):
        read(path, "Less")


def test_rows_come_in_batches(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "long.xlsx", row(text("n")) + "".join(row(number(one)) for one in range(2500)))
    sizes = [len(batch) for batch in read_xlsx_batches(path)]
    assert (sum(sizes), max(sizes)) == (2500, 1000)


@pytest.mark.parametrize(
    ("sheet", "fault"),
    [
        (row(text("a"), text("a")) + row(number(1)), "twice"),
        (row(text("a"), "<c/>", text("b")) + row(number(1)), "has no name"),
        (row(text("a")) + row(number(1), number(2)), "a column without a name"),
        (row('<c r="A1"><v>1</v></c>') + row('<c r="XFD1048576"><v>1</v></c>'), "too far apart"),
        (row('<c r="A1" x=">"><v>1</v></c>') + row('<c x=">" r="XFD1048576"><v>1</v></c>'), "too far apart"),
        (row(number(1), place=' r="1048576"') + row(*["<c/>"] * 8), "too far apart"),
        (row(number(1)) + '</row><row r="2"><c r="XFD1048576"><v>1</v></c>', "is not XML"),
    ],
)
def test_a_sheet_without_a_table_or_with_cells_far_apart_is_refused(tmp_path: Path, sheet: str, fault: str) -> None:
    with pytest.raises(FormatError, match=fault):
        read(write_xlsx(tmp_path / "bad.xlsx", sheet))


def test_a_workbook_that_grows_or_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "bomb.xlsx", row(text("a")), **{"xl/media/a.txt": "0" * 1_000_000})
    packed = path.read_bytes()
    at = packed.rindex(b"PK\x01\x02", 0, packed.rindex(b"xl/media/a.txt")) + 24
    assert packed[at : at + 4] == (1_000_000).to_bytes(4, "little")
    path.write_bytes(packed[:at] + (100).to_bytes(4, "little") + packed[at + 4 :])
    with pytest.raises(FormatError, match=r"a\.txt is larger than the workbook says"):
        read(path)
    path.write_bytes(packed[:at] + (1 << 31).to_bytes(4, "little") + packed[at + 4 :])
    with pytest.raises(FormatError, match="more than 256 MiB when it is unpacked"):
        read(path)


def test_other_and_broken_files_are_refused(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "orders.xlsx", row(text("a")) + row(number(1)))
    whole, other = path.read_bytes(), tmp_path / "other.xlsx"
    for content in (b"", b"PK", b"id,total\n1,2\n", whole[: len(whole) // 2], whole[:60] + bytes(200) + whole[260:]):
        other.write_bytes(content)
        with pytest.raises(FormatError, match=r"not an xlsx workbook|not XML"):
            read(other)
    with pytest.raises(FormatError, match="not an xlsx workbook"):
        read(write_xlsx(other, row(text("a")), **{"content.xml": "<x/>"}))
