"""Made-up requests for every endpoint of the OpenAPI document: no 5xx, no answer it does not tell of."""

import asyncio
import os
from pathlib import Path
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import status_code_conformance

from tests.api.house import TOKEN, opened

# These close or change the house under test, run other programs, or never end.
LEFT_OUT = {
    "/api/services/restart",
    "/api/events/stream",
    "/api/agents/{id}/skills/registry",
    "/api/import",
    "/api/pipeline/run",
    "/v1/scopes/{scope_id}/streams/{stream_id}/follow",
}
# More find more: POSTROOM_SCHEMA_TRIES=100 pytest --timeout 3000 -m slow tests/api/test_schema.py
TRIES = int(os.environ.get("POSTROOM_SCHEMA_TRIES", "6"))


async def document(url: str) -> dict[str, Any]:
    async with httpx2.AsyncClient(
        base_url=url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60
    ) as http:
        return (await http.get("/openapi.json")).json()


def problems_of(raw: dict[str, Any], url: str) -> list[str]:
    """What made-up requests find, for every operation of the document."""
    schema = schemathesis.openapi.from_dict(raw)
    schema.config.update(base_url=url)
    problems: list[str] = []
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        if operation.path in LEFT_OUT:
            continue

        @settings(
            max_examples=TRIES,
            deadline=None,
            phases=[Phase.generate],
            derandomize=True,
            database=None,
            suppress_health_check=[
                HealthCheck.too_slow,
                HealthCheck.filter_too_much,
                HealthCheck.data_too_large,
            ],
        )
        @given(case=operation.as_strategy())
        def one(case: Any) -> None:
            answer = case.call(headers={"authorization": f"Bearer {TOKEN}"})
            case.validate_response(answer, checks=[not_a_server_error, status_code_conformance])

        try:
            one()
        except (Exception, BaseExceptionGroup) as error:
            problems.append(f"{operation.method.upper()} {operation.path}: {error}"[:1500])
    return problems


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", ["/api/", "/v1/"])
async def test_whatever_is_asked_the_answer_is_one_the_document_tells_of(tmp_path: Path, part: str) -> None:
    async with opened(tmp_path, works=False) as house:
        raw = await document(house.url)
        known = raw["paths"]["/api/queue/status"]["get"]
        raw["paths"] = {path: item for path, item in raw["paths"].items() if path.startswith(part)}
        assert len(raw["paths"]) > 30
        problems = await asyncio.to_thread(problems_of, raw, house.url)
        assert not problems, "\n\n".join(problems)
        # It would be found if the document kept something to itself.
        only = {"get": {**known, "responses": {"404": {"description": "no"}}}}
        told = await asyncio.to_thread(problems_of, {**raw, "paths": {"/api/queue/status": only}}, house.url)
        assert "/api/queue/status" in told[0]


async def test_the_document_tells_of_every_endpoint_with_answers(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house:
        raw = await document(house.url)
    ours = {path: item for path, item in raw["paths"].items() if path.startswith("/api/")}
    assert len(ours) >= 50
    for path, item in ours.items():
        for method, operation in item.items():
            assert operation.get("description") or operation.get("summary"), f"{method} {path}"
            assert {"401", "403"} <= set(operation["responses"]), f"{method} {path}"
            assert {"200", "202"} & set(operation["responses"]), f"{method} {path}"
    assert raw["paths"]["/api/message"]["post"]["requestBody"]["content"]["application/json"]["examples"]
