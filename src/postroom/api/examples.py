"""Examples of requests and answers for the OpenAPI document.

A real server gave them, but for a few that would need other programs or close it: those are kept by hand.
"""

import json
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from postroom.api.openapi import describe_access

FILE = Path(__file__).with_name("examples.json")
JSON = "application/json"


def show(app: FastAPI) -> None:
    """The document is made when somebody asks for it, and has its examples then."""
    plain = app.openapi

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = plain()
            _fill(made, json.loads(FILE.read_text("utf-8")))
            describe_access(made)
        return plain()

    app.openapi = document


def _fill(document: dict[str, Any], examples: dict[str, dict[str, Any]]) -> None:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            example = examples.get(f"{method.upper()} {path}")
            if example is None:
                continue
            if "request" in example and "requestBody" in operation:
                _put(operation["requestBody"]["content"].get(JSON), example["request"])
            if "answer" in example:
                answer = operation["responses"].setdefault(str(example["status"]), {"description": "Done"})
                _put(answer.setdefault("content", {}).setdefault(JSON, {}), example["answer"])


def _put(content: dict[str, Any] | None, example: Any) -> None:
    if content is not None and "examples" not in content:
        content.setdefault("example", example)
