"""`/docs`: the HTTP API as a page, made from the OpenAPI document; nothing is fetched from elsewhere."""

import json
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from htpy import Node, Renderable, a, code, details, div, p, pre, summary, td

from postroom.portal.parts import show_row, show_section, show_table
from postroom.portal.visit import PageView, PortalPart, PortalVisit

METHODS = ("get", "post", "put", "patch", "delete")
JSON = "application/json"


async def show_docs(visit: PortalVisit) -> PageView:
    app = visit.request.app
    assert isinstance(app, FastAPI)
    document, wanted = app.openapi(), visit.query("q").lower()
    return PageView(
        title="API",
        way="/system",
        crumb=("System", "/system"),
        lead=[
            "Every call with what it takes and an answer a server gave. For programs: ",
            a(href="/openapi.json")[code["/openapi.json"]],
            ".",
        ],
        body=div(".stack-l", id="docs")[
            show_section("How to be let in", _show_security(document)),
            [
                show_section(tag, [_show_call(path, method, call) for path, method, call in calls])
                for tag, calls in group_calls(document, wanted).items()
            ],
        ],
    )


def group_calls(
    document: dict[str, Any], wanted: str = ""
) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    """Path, method and what the document says, by their first tags."""
    found: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, method, call in _list_calls(document):
        if wanted in f"{method} {path} {call.get('summary', '')}".lower():
            found.setdefault((call.get("tags") or ["other"])[0], []).append((path, method, call))
    return found


def _list_calls(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def _show_security(document: dict[str, Any]) -> Node:
    schemes = document.get("components", {}).get("securitySchemes", {})
    return [p[each.get("description", "")] for each in schemes.values()]


def _show_call(path: str, method: str, call: dict[str, Any]) -> Renderable:
    body = call.get("requestBody", {}).get("content", {}).get(JSON, {})
    answers = call.get("responses", {})
    return details[
        summary[code[f"{method.upper()} {path}"], f" {call.get('summary', '')}"],
        p[call.get("description", "")],
        call.get("x-permission") and p["Needs ", code[str(call["x-permission"])], "."],
        _show_parameters(call.get("parameters", ())),
        _show_example("Send", body.get("example")),
        [
            _show_example(f"Answer {status}", answer.get("content", {}).get(JSON, {}).get("example"))
            for status, answer in answers.items()
        ],
    ]


def _show_parameters(parameters: Any) -> Node:
    if not parameters:
        return None
    return show_table(
        ["parameter", "in", "", "meaning"],
        [
            show_row(
                td[code[each["name"]]],
                td[each["in"]],
                td["needed" if each.get("required") else ""],
                td[each.get("description", "")],
            )
            for each in parameters
        ],
    )


def _show_example(title: str, example: Any) -> Node:
    if example is None:
        return None
    return [p[title], pre[json.dumps(example, indent=2, ensure_ascii=False)]]


PART = PortalPart({"/docs": show_docs})
