"""What the lake answers is written whole, lists and bytes as text in CSV, and over no file that is there."""

import csv
from pathlib import Path

import pytest

from postroom.errors import InvalidField
from postroom.terminal.cli.errors import FileTaken, Unclear
from postroom.terminal.cli.exports import Format, chosen, write

pa = pytest.importorskip("pyarrow")


def found() -> object:
    return pa.table(
        {"agents": [["a", "b"], None], "hash": [b"\x00\xff", None], "n": [1, 2], "who": ["x,y", ""]}
    )


def test_lists_and_bytes_are_text_in_csv(tmp_path: Path) -> None:
    write(found(), Format.CSV, tmp_path / "f.csv")
    with (tmp_path / "f.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert first == {"agents": '["a","b"]', "hash": "00ff", "n": "1", "who": "x,y"}
    assert second == {"agents": "", "hash": "", "n": "2", "who": ""}


def test_parquet_keeps_them_as_they_are(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    write(found(), Format.PARQUET, tmp_path / "f.parquet")
    assert pq.read_table(tmp_path / "f.parquet").to_pylist()[0]["agents"] == ["a", "b"]


def test_csv_without_a_file_goes_to_stdout(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write(found(), Format.CSV, None)
    assert capfdbinary.readouterr().out.startswith(b'"agents","hash","n","who"\n')


def test_the_name_of_the_file_says_how(tmp_path: Path) -> None:
    assert chosen(None, tmp_path / "a.CSV", force=False) is Format.CSV
    assert chosen(None, tmp_path / "a.parquet", force=False) is Format.PARQUET
    assert chosen(Format.CSV, tmp_path / "a.txt", force=False) is Format.CSV
    assert chosen(None, None, force=False) is Format.TABLE


@pytest.mark.parametrize(
    ("as_", "name", "error"),
    [
        (None, "a.txt", Unclear),
        (Format.TABLE, "a.csv", Unclear),
        (Format.PARQUET, None, InvalidField),
        (Format.CSV, "there.csv", FileTaken),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_asked(
    as_: Format | None, name: str | None, error: type[Exception], tmp_path: Path
) -> None:
    (tmp_path / "there.csv").write_text("mine")
    with pytest.raises(error):
        chosen(as_, tmp_path / name if name else None, force=False)
    assert chosen(Format.CSV, tmp_path / "there.csv", force=True) is Format.CSV
