"""The commands of the pipeline say what is missing and what to do."""

from pathlib import Path

import pytest

from postroom.pipeline.jobs.verify import verify_lake
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.tables import BRONZE, GOLD, LEDGER, MEMORY, RECORDS, SILVER
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.pipeline.tiny import put
from tests.terminal.cli.runner import Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    for name in ("POSTROOM_STORE", "POSTROOM_LAKE"):
        monkeypatch.delenv(name, raising=False)
    cli = Cli(tmp_path, monkeypatch, capsys)
    monkeypatch.setenv("POSTROOM_HOME", str(cli.home))
    return cli


def test_a_month_is_made_and_its_status_told(cli: Cli) -> None:
    made = cli.json(
        "pipeline", "generate", "--store", "m.db", "--history", "6h", "--rate", "40", "--seed", "2"
    )
    state = cli.json("pipeline", "status", "--store", "m.db")
    assert (state["position"], state["behind"], state["tables"]) == (0, made["events"], [])
    again = cli("pipeline", "generate", "--store", "m.db")
    assert again.code == 2
    assert "exists already" in again.err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["pipeline", "query", "SELECT 1"], 4, "postroom pipeline run"),
        (["pipeline", "report"], 4, "postroom pipeline run"),
        (["pipeline", "run"], 4, "There is no store"),
        (["pipeline", "backtest"], 2, "either --rule FILE, or a guard"),
        (["why", "nobody"], 4, "no message"),
        (["trace", "nobody"], 4, "no conversation or message"),
    ],
)
def test_what_is_missing_is_told_with_what_to_do(cli: Cli, words: list[str], code: int, told: str) -> None:
    done = cli(*words)
    assert (done.code, told in done.err) == (code, True), done.err
    assert len(done.err.strip().splitlines()) == 1


def test_a_file_is_not_written_over_without_being_told_to(cli: Cli) -> None:
    (cli.folder / "r.html").write_text("mine")
    assert cli("pipeline", "report", "--out", "r.html").code == 5
    assert (cli.folder / "r.html").read_text() == "mine"


def test_the_hot_store_answers_alone_when_there_is_no_lake(cli: Cli, month: SqliteSource) -> None:
    found = cli.json("history", "search", "invoice", "--store", month.path, "--limit", "3")
    assert found
    assert {row["from"] for row in found} == {"store"}
    tree = cli.json("trace", found[0]["id"], "--store", month.path)
    assert found[0]["id"] in {span["span_id"] for span in tree["spans"]}
    told = cli.json("why", found[0]["id"], "--store", month.path)
    assert told["from"] == "store"


def test_retaining_asks_first_counts_when_told_to_and_needs_an_age(cli: Cli) -> None:
    lake = Lake(str(cli.folder / "lake"))
    for table in BRONZE:
        lake.commit(table, [], Positions(1, 1))
    told = cli.json("pipeline", "retain", "--keep", "90d", "--dry-run", "--lake", lake.location)
    assert told["bronze/ledger"] == {"rows": 0, "files": 0, "kept": 0}
    assert cli("pipeline", "retain", "--lake", lake.location).code == 2
    nowhere = cli("pipeline", "retain", "--keep", "1d", "--lake", str(cli.folder / "none"))
    assert (nowhere.code, "postroom pipeline run" in nowhere.err) == (4, True)


def test_compact_and_vacuum_tell_what_they_did(cli: Cli) -> None:
    lake = Lake(str(cli.folder / "lake"))
    for table in BRONZE:
        lake.commit(table, [], Positions(1, 1))
    for verb in ("compact", "vacuum"):
        done = cli.json("pipeline", verb, "--lake", lake.location)
        assert set(done) == {table.name for table in BRONZE}


def written_files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_a_run_that_finds_nothing_new_starts_no_java_and_writes_nothing(
    cli: Cli, month: SqliteSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, snapshot = Lake(str(cli.folder / "lake")), month.snapshot()
    for table in (*BRONZE, *SILVER, *GOLD, *MEMORY):
        lake.commit(table, [], Positions(snapshot.head, snapshot.records))
    before = written_files(cli.folder / "lake")
    monkeypatch.setattr("postroom.pipeline.jobs.session.find_java", forbidden)
    done = cli.json("pipeline", "run", "--store", month.path, "--lake", lake.location)
    assert (done["events"], done["position"], done["steps"]) == (0, snapshot.head, [])
    assert written_files(cli.folder / "lake") == before
    assert "Nothing is new" in cli.ok("pipeline", "run", "--store", month.path, "--lake", lake.location).out


def test_a_run_that_finds_little_new_starts_no_java_unless_a_spark_is_named(
    cli: Cli, month: SqliteSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.pipeline.jobs.session.find_java", forbidden)
    words = ("pipeline", "run", "--store", month.path, "--lake", str(cli.folder / "lake"))
    for more in (("--few", "0"), ("--master", "local[2]")):
        refused = cli(*words, *more)
        assert (refused.code != 0, "Java was asked for" in refused.err) == (True, True)
    assert cli(*words, "--few", "-1").code == 2
    done = cli.json(*words)
    head = month.snapshot().head
    assert (done["events"], done["position"], done["broken"]) == (head, head, [])
    assert {step["step"] for step in done["steps"]} >= {"bronze", "message_life", "conversations", "gold"}
    assert "Nothing is new" in cli.ok(*words).out


def forbidden(*_: object) -> None:
    raise AssertionError("Java was asked for")


def test_damage_is_found_by_looking_and_told_with_what_to_do(cli: Cli) -> None:
    lake = Lake(str(cli.folder / "lake"))
    put(lake, LEDGER, *({"seq": number, "time": number, "type": "x"} for number in range(1, 500)))
    put(lake, RECORDS, {"id": 1, "created_at": 5})
    assert "Nothing is damaged" in cli.ok("pipeline", "verify", "--lake", lake.location).out
    [file] = lake.files(LEDGER)
    data = bytearray(Path(file.uri).read_bytes())
    data[200:216] = b"0123456789abcdef"
    Path(file.uri).write_bytes(data)
    done = cli("pipeline", "verify", "--lake", lake.location)
    assert done.code == 7
    assert "bronze/ledger" in done.out
    assert "pipeline verify --repair" in done.out


def test_a_file_that_is_not_what_the_log_says_of_it_is_damaged(tmp_path: Path) -> None:
    """Whole by its checksums, but another: with other numbers, or with other rows."""
    lake = Lake(str(tmp_path / "lake"))
    put(lake, RECORDS, {"id": 1}, {"id": 2})
    put(lake, RECORDS, {"id": 5}, {"id": 6}, positions=Positions(2, 6))
    put(lake, RECORDS, {"id": 9}, positions=Positions(3, 9))
    assert verify_lake(lake) == []
    one, two, three = sorted(lake.files(RECORDS), key=lambda file: file.low["id"])
    Path(two.uri).write_bytes(Path(one.uri).read_bytes())
    [damage] = verify_lake(lake)
    assert "id goes from 1 to 2, and should go from 5 to 6" in damage.data["problem"]
    Path(two.uri).write_bytes(Path(three.uri).read_bytes())
    [damage] = verify_lake(lake)
    assert "it has 1 rows, and should have 2" in damage.data["problem"]
