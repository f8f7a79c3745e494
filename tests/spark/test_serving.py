"""What the lake knows is served without Spark: insights, traces, search, the report, the API."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from htpy import div
from starlette.requests import Request

from postroom.app.lake_reader import OF_ALL_TIME, TOPICS, StoreLakeReader
from postroom.clock import SystemClock
from postroom.errors import InvalidField, PostroomError
from postroom.pipeline.errors import LakeMissing, QueryRefused
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import TRACES
from postroom.pipeline.serving.catalog import render_catalog
from postroom.pipeline.serving.engine import QueryEngine, engine
from postroom.pipeline.serving.history import Search, life, search
from postroom.pipeline.serving.insights import overview, period
from postroom.pipeline.serving.report import report
from postroom.pipeline.serving.traces import trace, tree
from postroom.pipeline.sources.sqlite import SqliteSource
from postroom.portal.insights import show_insights
from postroom.portal.visit import PortalVisit
from postroom.services import callers
from postroom.services.insights import InsightService
from postroom.settings.model import Settings
from tests.spark.lake_app import lake_app
from tests.spark.lakes import rows


@pytest.fixture(scope="module")
def light(filled: Lake) -> Iterator[QueryEngine]:
    with engine(filled) as opened:
        yield opened


def test_without_a_lake_it_is_said_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(LakeMissing, match="postroom pipeline run"), engine(Lake(str(tmp_path))):
        pass


def test_a_query_reaches_nothing_but_the_lake(light: QueryEngine, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    for sql in (
        f"SELECT * FROM read_csv('{tmp_path}/secret.csv')",
        f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "SELEC 1",
    ):
        with pytest.raises(QueryRefused):
            light.rows(sql)
    assert not (tmp_path / "out.csv").exists()


def test_the_overview_counts_every_message_once(light: QueryEngine) -> None:
    total = overview(light, period(light, days=4000))
    assert total["messages"] == light.rows("SELECT count(*) AS n FROM message_life")[0]["n"]
    assert total["cost_usd"] == pytest.approx(
        float(light.rows("SELECT sum(cost_usd) AS usd FROM turns_clean")[0]["usd"])
    )


def test_a_trace_is_found_by_any_of_its_messages(
    light: QueryEngine, filled: Lake, month: SqliteSource
) -> None:
    deep = max(rows(filled, TRACES), key=lambda row: row["messages"])
    by_talk = trace(light, month, deep["trace_id"])
    by_message = trace(light, None, by_talk["spans"][-1]["span_id"])
    assert by_message["trace_id"] == by_talk["trace_id"] == deep["trace_id"]
    shown = tree(by_talk["spans"])
    assert len(shown) == deep["messages"]
    assert shown[0][0] == 0
    assert max(depth for depth, _ in shown) == deep["depth"]
    alone = trace(None, month, deep["trace_id"])
    assert {span["span_id"] for span in alone["spans"]} == {span["span_id"] for span in by_talk["spans"]}


def test_search_finds_in_store_and_lake_and_each_message_once(
    light: QueryEngine, month: SqliteSource
) -> None:
    wanted = Search(words=("the", "INVOICE"), limit=500)
    together = search(light, month, wanted)
    ids = [row["id"] for row in together]
    assert ids
    assert len(ids) == len(set(ids))
    assert {row["id"] for row in search(light, None, wanted)} <= set(ids)
    assert all("invoice" in row["text"].lower() for row in together)
    assert search(light, month, Search(words=("50%_off!",))) == []
    narrow = search(light, month, Search(words=("invoice",), agent="coder", limit=500))
    assert all("coder" in (row["agent"], row["from_agent"]) for row in narrow)


def test_a_life_is_told_from_the_lake_alone(light: QueryEngine, filled: Lake) -> None:
    root = rows(filled, TRACES)[0]["root_id"]
    told = life(light, root)
    assert told is not None
    assert told["events"][0]["type"] == "message.published"
    assert told["message"]["id"] == root
    assert life(light, "nobody") is None


def test_the_report_is_one_page_that_asks_for_nothing(light: QueryEngine) -> None:
    page = report(light, period(light), "now")
    assert not re.search(r"""(src|href)=|url\((?!#)|@import|<script""", page)
    charts = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(charts) >= 6
    for chart in charts:
        ET.fromstring(chart)
        assert "NaN" not in chart
        assert "None" not in chart


def test_names_from_outside_cannot_break_out_of_the_report(
    light: QueryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from postroom.pipeline.serving import insights

    evil = "<script>alert(1)</script>"
    monkeypatch.setattr(
        insights, "handoffs", lambda *_: [{"from_agent": evil, "to_agent": "b", "handoffs": 3}]
    )
    page = report(light, period(light), evil)
    assert evil not in page
    assert "&lt;script&gt;" in page


@pytest.fixture
def client(filled: Lake, month: SqliteSource, tmp_path: Path) -> Iterator[TestClient]:
    app = lake_app(filled.location, month.path)

    @app.exception_handler(PostroomError)
    async def told(_: Any, error: PostroomError) -> Any:
        from starlette.responses import JSONResponse

        return JSONResponse({"code": error.code}, error.http_status)

    with TestClient(app) as opened:
        yield opened


def test_every_insight_is_a_json_document(client: TestClient) -> None:
    for topic in (*TOPICS, *OF_ALL_TIME):
        answer = client.get(f"/api/insights/{topic}")
        assert answer.status_code == 200, topic
        json.dumps(answer.json(), allow_nan=False)
    assert client.get("/api/insights/nonsense").json() == {"code": "INSIGHT_NOT_FOUND"}


def test_traces_search_status_and_report_answer(client: TestClient, filled: Lake) -> None:
    newest = client.get("/api/traces", params={"limit": 3}).json()
    assert len(newest) == 3
    one = client.get(f"/api/traces/{newest[0]['trace_id']}").json()
    assert one["spans"]
    assert client.get("/api/history/search", params={"q": "invoice", "limit": 2}).json()
    assert client.get("/api/pipeline/status").json()["behind"] == 0
    assert "<svg" in client.get("/api/insights/report").text
    assert client.get("/api/traces/none").status_code == 404


def test_the_catalog_for_spark_is_sql_that_spark_understands(spark: Any, filled: Lake) -> None:
    text, count = render_catalog(filled, "spark")
    statements = [each for each in text.split(";") if each.strip()]
    parser = spark._jsparkSession.sessionState().sqlParser()
    plans = [parser.parsePlan(each).nodeName() for each in statements]
    assert plans.count("CreateTable") == count > 10


async def test_the_portals_insights_show_the_days_asked_for(filled: Lake, month: SqliteSource) -> None:
    reader = StoreLakeReader(filled.location, month.path, SystemClock())
    nothing: Any = None
    services: Any = SimpleNamespace(insights=InsightService(nothing, reader))

    async def page(query: str) -> str:
        scope = {"type": "http", "method": "GET", "path": "/insights", "headers": []}
        request = Request({**scope, "query_string": query.encode(), "state": {"caller": callers.owner()}})
        visit = PortalVisit(
            request=request, services=services, clock=SystemClock(), settings=Settings(), logins=nothing
        )
        return str(div[(await show_insights(visit)).body])

    whole = reader.insight("overview", None, None)
    last = reader.insight("latency", None, None)[-1]["day"]
    one_day = reader.insight("overview", date.fromisoformat(last), date.fromisoformat(last))
    assert 0 < one_day["messages"] < whole["messages"]
    assert f"<b>{whole['messages']:,}</b>" in await page("")
    shown = await page(f"since={last}&until={last}")
    assert f"<b>{one_day['messages']:,}</b>" in shown
    assert f'value="{last}"' in shown
    assert "99 % within" in shown
    for wrong in ("since=yesterday", f"since={last}&until=2020-01-01"):
        with pytest.raises(InvalidField, match="since"):
            await page(wrong)


def test_latency_of_a_day_is_that_of_its_messages(filled: Lake, month: SqliteSource) -> None:
    reader = StoreLakeReader(filled.location, month.path, SystemClock())
    for row in reader.insight("latency", None, None)[-3:]:
        day = date.fromisoformat(row["day"])
        alone = reader.insight("overview", day, day)
        assert row["messages"] == alone["messages"]
        assert row["total_p95_us"] == alone["total_p95_us"]
        assert row["wait_p50_us"] == alone["wait_p50_us"] <= row["wait_p95_us"] <= row["wait_p99_us"]
