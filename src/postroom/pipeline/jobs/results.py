"""What tasks tell their step: files they wrote, files these replace, and rows to be set aside."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import pyarrow as pa

from postroom.pipeline.jobs.quarantine import QuarantineFinding
from postroom.pipeline.jobs.workers import Parcel
from postroom.pipeline.lake.files import WrittenFile, told
from postroom.pipeline.lake.lake import LakeFile

REPLACED = "replaced "
FOUND = "found"
COUNTED = "counted"
_FOUND = pa.schema([("count", pa.int64()), ("findings", pa.string())])


class StepResults(msgspec.Struct):
    written: dict[str, list[WrittenFile]] = {}
    replaced: dict[str, set[str]] = {}
    findings: list[QuarantineFinding] = []
    odd: int = 0
    """How many rows were found that are to be set aside; of a great many only some are told."""
    rows_in: int = 0

    def rows(self, table: str) -> int:
        return sum(file.rows for file in self.written.get(table, ()))


def tell_files(table: str, written: list[WrittenFile], replaced: Sequence[LakeFile] = ()) -> Iterator[Parcel]:
    if written:
        yield table, told(written)
    if replaced:
        yield f"{REPLACED}{table}", pa.table({"path": [file.path for file in replaced]})


def tell_found(findings: list[QuarantineFinding], count: int) -> Iterator[Parcel]:
    if findings:
        text = msgspec.json.encode(findings).decode()
        yield FOUND, pa.table({"count": [count], "findings": [text]}, _FOUND)


def tell_counted(rows: int) -> Parcel:
    return COUNTED, pa.table({"rows": [rows]})


def is_told(key: str) -> bool:
    """Whether a parcel is for the step and passes through an exchange as it is."""
    return key in (FOUND, COUNTED)


def read_results(parcels: Iterable[Parcel]) -> StepResults:
    found = StepResults()
    for key, table in parcels:
        if key == COUNTED:
            found.rows_in += sum(table["rows"].to_pylist())
        elif key == FOUND:
            for row in table.to_pylist():
                found.odd += row["count"]
                found.findings += msgspec.json.decode(row["findings"], type=list[QuarantineFinding])
        elif key.startswith(REPLACED):
            found.replaced.setdefault(key.removeprefix(REPLACED), set()).update(table["path"].to_pylist())
        else:
            files = [WrittenFile(**row) for row in table.to_pylist()]
            found.written.setdefault(key, []).extend(files)
    return found
