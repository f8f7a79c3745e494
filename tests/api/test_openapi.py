"""Made-up requests for every endpoint of the OpenAPI document: no 5xx, no answer it does not tell of."""

import asyncio
import functools
import itertools
import json
import os
import re
from html import escape
from pathlib import Path
from typing import Any

import httpx2
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema import Draft202012Validator
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import status_code_conformance

from postroom.api.examples import FILE
from tests.api.examples import NOT_PLAYED, played
from tests.api.house import TOKEN, House, opened

# These close or change the house under test, run other programs, or never end.
LEFT_OUT = {
    "/api/services/restart",
    "/api/events/stream",
    "/api/agents/{id}/skills/registry",
    "/api/agents/{id}/skills/install",
    "/api/import",
    "/api/pipeline/run",
    "/v1/scopes/{scope_id}/streams/{stream_id}/follow",
}
# More find more: POSTROOM_SCHEMA_TRIES=100 pytest --timeout 3000 -m slow tests/api/test_openapi.py
TRIES = int(os.environ.get("POSTROOM_SCHEMA_TRIES", "6"))


CHECKS = [not_a_server_error, status_code_conformance]


async def document(url: str) -> dict[str, Any]:
    async with httpx2.AsyncClient(
        base_url=url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60
    ) as http:
        return (await http.get("/openapi.json")).json()


def problems_of(
    raw: dict[str, Any], url: str, *, token: str = TOKEN, tries: int = TRIES, every: int = 1
) -> list[str]:
    """What made-up requests find, for every operation of the document, or each so manieth of them."""
    schema = schemathesis.openapi.from_dict(raw)
    schema.config.update(base_url=url)
    problems: list[str] = []
    for found in itertools.islice(schema.get_all_operations(), 0, None, every):
        operation: Any = found.ok()  # type: ignore[union-attr]
        if operation.path in LEFT_OUT:
            continue

        @settings(
            max_examples=tries,
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
            # Its own patience of 10 s is too short for a loaded machine.
            ask = functools.partial(case.call, headers={"authorization": f"Bearer {token}"}, timeout=300)
            try:
                answer = ask()
            except requests.ConnectionError:
                answer = ask()  # the server had closed a connection that was kept for the next one
            case.validate_response(answer, checks=CHECKS if token == TOKEN else CHECKS[:1])

        try:
            one()
        except (Exception, BaseExceptionGroup) as error:
            told = "; ".join(str(each) for each in (error, *getattr(error, "exceptions", ())))
            problems.append(f"{operation.method.upper()} {operation.path}: {told}"[:1500])
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


KEYS: dict[str, dict[str, Any]] = {
    "a key with all rights": {"name": "all", "permissions": ["view", "publish", "consume", "manage"]},
    "a key with some rights": {"name": "some", "permissions": ["view", "publish"]},
    "a key with no rights": {"name": "none", "permissions": []},
}


async def secret_of(house: House, rights: str) -> str:
    if rights == "the owner":
        return TOKEN
    answer = await house.http.post("/v1/api-keys", json=KEYS[rights])
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]["secret"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rights", ["the owner", *KEYS])
async def test_a_sample_of_made_up_requests_finds_no_server_error_whatever_rights_they_have(
    tmp_path: Path, rights: str
) -> None:
    """Each fortieth operation, the same ones each time; all of them are tried by the slow test."""
    async with opened(tmp_path, works=False) as house:
        raw, token = await document(house.url), await secret_of(house, rights)
        problems = await asyncio.to_thread(problems_of, raw, house.url, token=token, tries=2, every=40)
        assert not problems, "\n\n".join(problems)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rights", list(KEYS))
async def test_no_request_of_a_key_finds_a_server_error(tmp_path: Path, rights: str) -> None:
    async with opened(tmp_path, works=False) as house:
        raw, token = await document(house.url), await secret_of(house, rights)
        problems = await asyncio.to_thread(problems_of, raw, house.url, token=token)
        assert not problems, "\n\n".join(problems)


JSON = "application/json"
# Their answers are no JSON.
TEXTS = {"/metrics", "/api/insights/report", "/v1/scopes/{scope_id}/streams/{stream_id}/follow"}


def example_of(content: dict[str, Any]) -> Any:
    """None when there is none."""
    several = [each["value"] for each in content.get("examples", {}).values()]
    return content.get("example", several[0] if several else None)


async def test_the_document_tells_of_every_endpoint_with_examples_of_what_is_said(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house:
        raw = await document(house.url)
    lacking: list[str] = []
    asked = answered = 0
    for path, item in raw["paths"].items():
        for method, operation in item.items():
            name = f"{method.upper()} {path}"
            if not (operation.get("summary") and operation.get("description")):
                lacking.append(f"{name}: what it does")
            if path.startswith("/api/") and not {"401", "403"} <= set(operation["responses"]):
                lacking.append(f"{name}: refusals")
            body = operation.get("requestBody", {}).get("content", {}).get(JSON)
            if body is not None:
                example = example_of(body)
                schema = {**body["schema"], "components": raw["components"]}
                if example is None or list(Draft202012Validator(schema).iter_errors(example)):
                    lacking.append(f"{name}: an example of a request that holds")
                asked += 1
            good = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
            contents = [kind for answer in good for kind in answer.get("content", {}).values()]
            if path not in TEXTS and contents:
                answered += 1
                if all(example_of(content) is None for content in contents):
                    lacking.append(f"{name}: an example of an answer")
            assert good, name
    assert not lacking, "\n".join(lacking)
    assert asked > 60
    assert answered > 180


def shape(value: Any) -> Any:
    """The names and kinds of what is said, without what is said."""
    if isinstance(value, dict):
        return {name: shape(below) for name, below in value.items() if below is not None}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return (
        "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
    )


async def test_the_examples_are_what_a_house_says(tmp_path: Path) -> None:
    kept = json.loads(FILE.read_text("utf-8"))
    found = await played(tmp_path)
    assert found.keys() | NOT_PLAYED == kept.keys()
    for name, said in found.items():
        assert shape(said) == shape(kept[name]), f"{name}: python -m tests.api.examples writes them anew"


async def test_the_document_says_where_the_server_is_and_how_one_is_let_in(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house:
        document = (await house.http.get("/openapi.json")).json()
        page = await house.http.get("/docs")
    assert document["servers"] == [{"url": "/", "description": "This server"}]
    schemes = document["components"]["securitySchemes"]
    assert (schemes["token"]["scheme"], schemes["session"]["name"]) == ("bearer", "postroom_session")
    assert document["security"] == [{"token": []}, {"session": []}]
    assert document["paths"]["/healthz"]["get"]["security"] == []
    assert page.status_code == 200
    for path, item in document["paths"].items():
        for method in item:
            assert f"{method.upper()} {escape(path)}" in page.text
    # All of it is ours: the page asks nobody else for anything.
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page.text)
