"""What a run tells of its lineage is what it did: the tables, their rows, and how the expectations stand."""

from pathlib import Path
from typing import Any

from postroom.pipeline.jobs.lineage import STEPS, locate
from postroom.pipeline.lake.descriptions import describe_column
from postroom.pipeline.lake.expectations import CHECKED
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import ALL, QUARANTINE, RUNS
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.pipeline.lineage_server import lineage_server
from tests.spark.lakes import fill


def test_every_table_is_told_with_its_rows_its_columns_and_what_it_came_from(
    spark: Any, month: SqliteSource, tmp_path: Path
) -> None:
    lake = Lake(str(tmp_path / "lake"))
    with lineage_server() as server:
        done = fill(spark, lake, month, lineage=server.url, upkeep=False)
    assert done.notices == server.refused == []
    first, *_, last = server.events
    assert (first["eventType"], last["eventType"]) == ("START", "COMPLETE")
    assert first["run"]["runId"] == last["run"]["runId"]
    ended = {
        event["job"]["name"].removeprefix("pipeline.run."): event
        for event in server.events[1:-1]
        if event["eventType"] == "COMPLETE"
    }
    assert set(ended) == {step.step for step in done.steps} == set(STEPS)
    told = {place["name"]: place for event in ended.values() for place in event["outputs"]}
    by_place = {locate(lake.uri(table))[1]: table for table in ALL if lake.exists(table)}
    # The log of runs and the expectations are about the run itself.
    made = {place for place, table in by_place.items() if table not in (RUNS, QUARANTINE)}
    assert set(told) == {place for place in made if by_place[place].name != "runs/expectations"}
    for place, output in told.items():
        table = by_place[place]
        assert output["outputFacets"]["outputStatistics"]["rowCount"] == sum(
            file.rows for file in lake.files(table)
        ), place
        fields = output["facets"]["schema"]["fields"]
        assert [field["name"] for field in fields] == table.schema.names
        assert fields[0]["description"] == describe_column(table, fields[0]["name"])
    store = {place["name"] for place in ended["bronze"]["inputs"]}
    assert store == {f"{month.path}#{name}" for name in ("ledger", "messages", "records")}
    kept = {
        place["name"]: place["inputFacets"]["dataQualityAssertions"]["assertions"]
        for place in ended["expectations"]["inputs"]
    }
    assert set(kept) == {locate(lake.uri(table))[1] for table in CHECKED}
    assert all(each["success"] for assertions in kept.values() for each in assertions)
