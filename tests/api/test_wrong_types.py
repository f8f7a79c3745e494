"""What has the wrong type is refused, and the document and the headers tell what is true."""

import json
import re
from typing import Any

import pytest

from postroom.settings.errors import InvalidSettings
from postroom.settings.model import parse
from tests.api.house import House

MESSAGES = "/v1/scopes/default/queues/jobs/messages"


@pytest.mark.parametrize(
    "document",
    [
        {"guards": {"grace_s": False}},
        {"guards": {"hops": True}},
        {"limits": {"lease_s": True}},
        {"budgets": {"daily_usd": True}},
        {"agents": {"coder": {"turn_timeout_s": True}}},
    ],
)
def test_yes_and_no_are_no_numbers_of_the_settings(document: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings, match="must be a number"):
        parse(document)


@pytest.mark.parametrize(
    "fields",
    [
        {"priority_score": True},
        {"priority_score": "5"},
        {"delay_seconds": True},
        {"ttl_seconds": "60"},
        {"deadline": 0.5},
        {"deadline": "12"},
    ],
)
async def test_a_message_with_a_wrong_type_is_refused(still: House, fields: dict[str, Any]) -> None:
    await still.room.create_queue("jobs")
    answer = await still.http.post(MESSAGES, json={"body": 1, **fields})
    assert answer.status_code == 422, answer.text
    assert (await still.room.counts("jobs")).pending == 0


async def test_the_grace_of_a_rotated_key_is_a_number(still: House) -> None:
    made = await still.http.post("/v1/api-keys", json={"name": "x", "permissions": ["view"]})
    path = f"/v1/api-keys/{made.json()['data']['id']}/rotate"
    assert (await still.http.post(path, json={"grace_s": False})).status_code == 422


@pytest.mark.parametrize("since", ["0.5", "-1", "0", "true"])
async def test_a_time_is_no_bare_number(still: House, since: str) -> None:
    answer = await still.http.get("/v1/scopes/default/audit", params={"since": since})
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize("limit", ["0", "-1", "0.5", "true", ""])
@pytest.mark.parametrize("path", ["/v1/scopes/default/audit", MESSAGES, "/api/responses"])
async def test_a_limit_is_at_least_one(still: House, path: str, limit: str) -> None:
    await still.room.create_queue("jobs")
    answer = await still.http.get(path, params={"limit": limit})
    assert answer.status_code in (400, 422), answer.text


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/v1/scopes", {"GET", "POST"}),
        ("DELETE", "/api/settings", {"GET", "PUT"}),
        ("PUT", "/api/message", {"POST"}),
        ("POST", "/api/agents/lead", {"DELETE", "PUT"}),
    ],
)
async def test_the_header_allow_names_every_method_that_there_is(
    still: House, method: str, path: str, allowed: set[str]
) -> None:
    answer = await still.http.request(method, path)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == allowed


async def test_the_document_says_what_is_checked(still: House) -> None:
    document = (await still.http.get("/openapi.json")).json()
    queue = document["components"]["schemas"]["NewQueue"]["properties"]
    assert queue["max_retries"]["anyOf"][0] == {"type": "integer", "minimum": 0, "maximum": 100}
    assert queue["ordering"]["anyOf"][0]["enum"] == ["fifo", "priority", "deadline"]
    assert queue["slug"]["pattern"].startswith("^[a-z0-9]")
    message = document["components"]["schemas"]["NewMessageBody"]["properties"]
    assert (message["priority_score"]["minimum"], message["priority_score"]["maximum"]) == (0, 1000)
    assert "normal" in message["priority_tier"]["enum"]
    condition = document["components"]["schemas"]["ConditionBody"]["properties"]
    assert "starts_with" in condition["op"]["enum"]


# What may be any number: a value that is looked for, and versions and places that clients make.
BOUNDLESS = {"SubjectBody.value", "NewSchema.version", "TaskChange.sortOrder", "AgentFields.turn_timeout_s"}


async def test_the_document_bounds_every_number_that_is_taken(still: House) -> None:
    document = (await still.http.get("/openapi.json")).json()
    schemas = document["components"]["schemas"]
    taken: dict[str, Any] = {}
    bodies: list[str] = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for each in operation.get("parameters", ()):
                taken[f"{method} {path} {each['name']}"] = each["schema"]
            bodies += re.findall(r"#/components/schemas/(\w+)", json.dumps(operation.get("requestBody", {})))
    for name in bodies:  # which grows by what is named inside
        bodies += [
            one for one in re.findall(r"schemas/(\w+)", json.dumps(schemas[name])) if one not in bodies
        ]
        for field, schema in schemas[name].get("properties", {}).items():
            taken[f"{name}.{field}"] = schema
    assert len(taken) > 200
    without = {
        name
        for name, schema in taken.items()
        for each in (schema, *schema.get("anyOf", ()))
        if each.get("type") in ("integer", "number")
        and not ({"minimum", "exclusiveMinimum"} & each.keys() and "maximum" in each)
    }
    assert without == BOUNDLESS
