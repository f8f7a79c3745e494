"""A model on loopback that asks its program to call tools: what it says is written down before.

It speaks to Claude Code, Codex and OpenCode, each in its own protocol, and keeps what the tools answered.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

SERVER = "postroom"
DONE = "All tools were tried."
Call = tuple[str, dict[str, Any]]


def _sse(data: dict[str, Any], event: str = "") -> str:
    return (f"event: {event}\n" if event else "") + f"data: {json.dumps(data)}\n\n"


@dataclass
class ToolModel:
    """For each agent, known by a word in its prompt, the calls it makes one after another."""

    scripts: dict[str, list[Call]]
    results: dict[str, list[str]] = field(default_factory=dict)
    tools: dict[str, set[str]] = field(default_factory=dict)
    url: str = ""

    def next(self, body: dict[str, Any], results: list[str]) -> Call | None:
        """By how many results the conversation holds; None when all is said."""
        said = json.dumps(body)
        for word, calls in self.scripts.items():
            if word in said:
                self.results[word] = results
                self.tools.setdefault(word, set()).update(_names(body.get("tools", [])))
                return calls[len(results)] if len(results) < len(calls) else None
        return None

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.post("/anthropic/v1/messages")
        async def messages(request: Request) -> Response:
            body = await request.json()
            blocks = [
                block
                for message in body["messages"]
                if isinstance(message["content"], list)
                for block in message["content"]
                if block["type"] == "tool_result"
            ]
            call = self.next(body, [json.dumps(block["content"]) for block in blocks])
            return StreamingResponse(_anthropic(call, len(blocks)), media_type="text/event-stream")

        @app.post("/v1/responses")
        async def responses(request: Request) -> Response:
            body = await request.json()
            results = [
                json.dumps(item["output"]) for item in body["input"] if item["type"] == "function_call_output"
            ]
            call = self.next(body, results)
            return StreamingResponse(_responses(call, len(results)), media_type="text/event-stream")

        @app.post("/v1/chat/completions")
        async def chat(request: Request) -> Response:
            body = await request.json()
            results = [
                json.dumps(message["content"]) for message in body["messages"] if message["role"] == "tool"
            ]
            call = self.next(body, results)
            return StreamingResponse(_chat(call, len(results)), media_type="text/event-stream")

        @app.api_route("/{rest:path}", methods=["GET", "HEAD", "POST"])
        async def other(rest: str) -> Response:
            return JSONResponse({})

        return app


def _names(tools: list[dict[str, Any]]) -> Iterator[str]:
    """Of our tools, however the program calls them."""
    for tool in tools:
        name = tool.get("name") or tool.get("function", {}).get("name", "")
        if SERVER in name:
            yield name.removeprefix("mcp__").removeprefix(SERVER).lstrip("_")
        for inner in tool.get("tools", []):
            yield inner.get("name", "")


def _anthropic(call: Call | None, number: int) -> Iterator[str]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "fake",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    yield _sse({"type": "message_start", "message": message}, "message_start")
    if call is None:
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta: dict[str, Any] = {"type": "text_delta", "text": DONE}
    else:
        name = f"mcp__{SERVER}__{call[0]}"
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
    yield _sse({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start")
    yield _sse({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
    yield _sse({"type": "content_block_stop", "index": 0}, "content_block_stop")
    stop = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    yield _sse({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}}, "message_delta")
    yield _sse({"type": "message_stop"}, "message_stop")


def _responses(call: Call | None, number: int) -> Iterator[str]:
    response = {"id": f"resp_{number}", "object": "response", "status": "in_progress", "output": []}
    yield _sse({"type": "response.created", "response": response}, "response.created")
    if call is None:
        text = {"type": "output_text", "text": DONE, "annotations": []}
        item: dict[str, Any] = {"type": "message", "role": "assistant", "id": "m1", "content": [text]}
    else:
        item = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "namespace": f"mcp__{SERVER}",
            "name": call[0],
            "arguments": json.dumps(call[1]),
        }
    added = {**item, "content": []} if call is None else {**item, "arguments": ""}
    for kind, each in (("added", added), ("done", item)):
        name = f"response.output_item.{kind}"
        yield _sse({"type": name, "output_index": 0, "item": each}, name)
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    finished = {**response, "status": "completed", "usage": usage, "output": [item]}
    yield _sse({"type": "response.completed", "response": finished}, "response.completed")


def _chat(call: Call | None, number: int) -> Iterator[str]:
    head = {"id": f"chat-{number}", "object": "chat.completion.chunk", "created": 1, "model": "m1"}
    if call is None:
        delta: dict[str, Any] = {"role": "assistant", "content": DONE}
    else:
        function = {"name": f"{SERVER}_{call[0]}", "arguments": json.dumps(call[1])}
        calling = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
        delta = {"role": "assistant", "content": None, "tool_calls": [calling]}
    yield _sse({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    reason = "tool_calls" if call else "stop"
    yield _sse({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    yield _sse({**head, "choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


@asynccontextmanager
async def tool_model(scripts: dict[str, list[Call]]) -> AsyncIterator[ToolModel]:
    model = ToolModel(scripts)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(model.app(), log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    model.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        yield model
    finally:
        server.should_exit = True
        await serving
