"""Every endpoint of the OpenAPI document is tried with what it must refuse; a new one is tried by itself.

What an endpoint answers must be in the document, with a sentence and, where a field is wrong, its name.
"""

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.house import House, opened

JSON = {"content-type": "application/json"}
LIMITS = {"requests_per_minute": 1_000_000, "request_bytes": 20_000}
OPEN = {"/healthz", "/readyz"}
ENDLESS = {"/api/events/stream"}
# What is asked about by an id but answers for any: what is not there was delivered, or says nothing.
FOR_ANY = {
    ("/api/responses/{id}/ack", "id"),
    ("/api/agents/{id}/messages", "id"),
    ("/v1/scopes/{scope_id}/audit/trace/{correlation_id}", "correlation_id"),
}
NOT_STARTED = "/api/services/channel/"
# What exists, so that it is the rest of a request that is wrong.
KNOWN = {
    "scope_id": "default",
    "queue_id": "jobs",
    "message_id": "",
    "team": "dev",
    "topic": "usage",
    "version": "1",
}
UNKNOWN = {"version": "4711"}
TRICKS = ["%2e%2e", "..%2f..%2f..%2fetc%2fpasswd", "a%00b", "%ff%fe", "%F0%9F%93%AE", "a%0d%0ax", "x" * 3000]


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    spec: dict[str, Any]
    document: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_queue_service(self) -> bool:
        return self.path.startswith("/v1")

    def parameters(self, place: str) -> list[dict[str, Any]]:
        return [each for each in self.spec.get("parameters", []) if each["in"] == place]

    def filled(self, **values: str) -> str:
        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name in values:
                return values[name]
            kind = next(each["schema"] for each in self.parameters("path") if each["name"] == name)
            if kind.get("type") == "integer":
                return "1"
            return KNOWN.get(name) or ("coder" if self.path.startswith("/api/agents/") else "some")

        return re.sub(r"\{(\w+)\}", value, self.path)

    def tells(self, status: int) -> bool:
        known = self.spec["responses"]
        return str(status) in known or f"{status // 100}XX" in known

    def fields(self) -> Iterator[str]:
        """Of the body, as far as the document names them."""
        content = self.spec.get("requestBody", {}).get("content", {}).get("application/json", {})
        waiting = [content.get("schema", {})]
        while waiting:
            schema = waiting.pop()
            if "$ref" in schema:
                schema = self.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            waiting += schema.get("anyOf", [])
            yield from schema.get("properties", {})


class Walk:
    def __init__(self, house: House, operations: list[Operation]) -> None:
        self.house = house
        self.operations = operations
        self.problems: list[str] = []

    async def ask(
        self, operation: Operation, path: str, http: httpx2.AsyncClient | None = None, **given: Any
    ) -> httpx2.Response:
        http = http or self.house.http
        answer = await http.request(operation.method, path, **given)
        tried = f"{operation.name} ({path[:80]} {str(given)[:80]}): {answer.status_code} {answer.text[:200]}"
        if answer.status_code >= 500 and answer.status_code not in (501, 503):
            self.problems.append(f"broke: {tried}")
        elif answer.status_code not in (404, 405) and not operation.tells(answer.status_code):
            self.problems.append(f"not in the document: {tried}")
        if answer.status_code >= 400 and not self._is_told(operation, answer):
            self.problems.append(f"says nothing: {tried}")
        return answer

    def _is_told(self, operation: Operation, answer: httpx2.Response) -> bool:
        told: Any = answer.json().get("error")
        if operation.is_queue_service:
            problem: dict[str, Any] = told if isinstance(told, dict) else {}
            # A code of its own says what is wrong, like the address of a webhook.
            named = problem.get("code") != "VALIDATION_ERROR" or answer.status_code != 422
            named = named or any(each.get("field") for each in problem.get("details", [{}]))
            return bool(problem.get("code") and problem.get("message")) and named
        named = answer.status_code != 422 or bool(answer.json().get("field"))
        return isinstance(told, str) and bool(told) and named

    def expect(self, operation: Operation, answer: httpx2.Response, wanted: set[int], what: str) -> None:
        if answer.status_code not in wanted:
            text = f"{answer.status_code} {answer.text[:200]}"
            self.problems.append(f"{operation.name}: {what}: {text} instead of {sorted(wanted)}")

    def done(self) -> None:
        assert not self.problems, f"{len(self.problems)} problems\n" + "\n".join(self.problems)


@pytest.fixture
async def walk(tmp_path: Path) -> AsyncIterator[Walk]:
    async with opened(tmp_path, works=False, limits=LIMITS) as house:
        await house.room.create_queue("jobs")
        KNOWN["message_id"] = (await house.room.publish("jobs", {"n": 1})).id
        document = (await house.http.get("/openapi.json")).json()
        operations = [
            Operation(method.upper(), path, spec, document)
            for path, item in document["paths"].items()
            for method, spec in item.items()
        ]
        assert len(operations) > 150
        yield Walk(house, operations)


async def test_nothing_is_open_to_strangers_other_hosts_or_other_pages(walk: Walk) -> None:
    async with walk.house.stranger() as stranger:
        for operation in walk.operations:
            path = operation.filled()
            if operation.path not in OPEN:
                answer = await walk.ask(operation, path, stranger)
                walk.expect(operation, answer, {401}, "without a token")
            for header in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
                answer = await walk.house.http.request(operation.method, path, headers=header)
                walk.expect(operation, answer, {403}, str(header))
    walk.done()


async def test_a_body_that_is_malformed_of_another_kind_or_too_large_is_told(walk: Walk) -> None:
    async def chunks():
        for _ in range(30):
            yield b" " * 1000

    tried = 0
    for operation in walk.operations:
        path = operation.filled()
        if operation.path in ENDLESS | OPEN:
            continue
        large = await walk.ask(operation, path, content=b" " * 30_000, headers=JSON)
        walk.expect(operation, large, {413}, "30 kB")
        if "requestBody" not in operation.spec:
            continue
        tried += 1
        streamed = await walk.ask(operation, path, content=chunks(), headers=JSON)
        walk.expect(operation, streamed, {413}, "30 kB in pieces")
        for text in ("{", '{"a": 1}}', "\\ud800", '{"a": "\\ud800"', "{'a': 1}"):
            malformed = await walk.ask(operation, path, content=text, headers=JSON)
            walk.expect(operation, malformed, {400}, repr(text))
        for text in ("", '{"a": NaN}', '{"a": 1e999}'):
            await walk.ask(operation, path, content=text, headers=JSON)
        for value in ("[]", "5", '"x"', "[" * 3000):
            other = await walk.ask(operation, path, content=value, headers=JSON)
            walk.expect(operation, other, {400, 422}, value[:9])
    assert tried > 50
    walk.done()


@pytest.mark.parametrize("value", [{"odd": [1]}, [[]], "\0", -(10**30), "😀" * 500])
async def test_a_field_of_another_kind_never_breaks_anything(walk: Walk, value: Any) -> None:
    for operation in walk.operations:
        for field in operation.fields():
            await walk.ask(operation, operation.filled(), json={field: value})
    walk.done()


async def test_what_is_not_there_is_not_found(walk: Walk) -> None:
    tried = 0
    for operation in walk.operations:
        if operation.method in ("PUT", "PATCH") or "requestBody" in operation.spec:
            continue
        for parameter in operation.parameters("path"):
            if parameter["name"] in ("channel", "topic"):
                continue
            kind = parameter["schema"].get("type")
            value = UNKNOWN.get(parameter["name"], "nobody-knows-this")
            value = "4503599627370496" if kind == "integer" else value
            wanted = {200} if (operation.path, parameter["name"]) in FOR_ANY else {404}
            wanted = {400} if operation.path.startswith(NOT_STARTED) else wanted
            answer = await walk.ask(operation, operation.filled(**{parameter["name"]: value}))
            walk.expect(operation, answer, wanted, parameter["name"])
            tried += 1
    assert tried > 60
    walk.done()


async def test_ids_that_play_tricks_reach_nothing(walk: Walk) -> None:
    before = sorted(str(file) for file in walk.house.home.parent.rglob("*"))
    for operation in walk.operations:
        for parameter in operation.parameters("path"):
            if (operation.path, parameter["name"]) in FOR_ANY:
                continue
            for trick in TRICKS:
                path = operation.filled(**{parameter["name"]: trick})
                given: dict[str, Any] = {"json": {}} if "requestBody" in operation.spec else {}
                answer = await walk.ask(operation, path, **given)
                walk.expect(operation, answer, {400, 404, 405, 422}, trick[:20])
    after = sorted(str(file) for file in walk.house.home.parent.rglob("*"))
    own = ("postroom.db", "sessions.json")
    assert [file for file in after if file not in before and not any(name in file for name in own)] == []
    walk.done()


async def test_a_figure_in_the_query_that_is_none_is_told_by_name(walk: Walk) -> None:
    tried = 0
    for operation in walk.operations:
        for parameter in operation.parameters("query"):
            kinds = [parameter["schema"], *parameter["schema"].get("anyOf", [])]
            if not any(kind.get("type") in ("integer", "number") for kind in kinds):
                continue
            for value in ("x", "1e400", "", "9" * 40, "-1"):
                answer = await walk.ask(operation, operation.filled(), params={parameter["name"]: value})
                wanted = {404, 422} if operation.path not in ENDLESS else {422}
                walk.expect(operation, answer, wanted, f"{parameter['name']}={value[:9]}")
                tried += 1
    assert tried > 50
    walk.done()


async def test_another_method_is_not_allowed(walk: Walk) -> None:
    methods: dict[str, set[str]] = {}
    for operation in walk.operations:
        methods.setdefault(operation.path, set()).add(operation.method)
    for operation in walk.operations:
        if operation.path.endswith("/routing-rules/test"):
            continue  # could also be the name of a rule
        for method in {"POST", "DELETE", "PATCH"} - methods[operation.path]:
            answer = await walk.house.http.request(method, operation.filled())
            walk.expect(operation, answer, {405, 404}, method)
            assert answer.json()["error"]
    walk.done()
