"""The bytes of three streaming protocols: Anthropic Messages, OpenAI Chat Completions and Responses."""

import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

REPLY = ["Hello ", "from ", "the ", "fake — ", "model."]
# In the scenario `shell` the model has the program run what stands behind this in the prompt, then answers
# with what came of it.
TOOL_PROMPT = "USE-TOOL:"


class Flavour(Protocol):
    @staticmethod
    def error(status: int, message: str, scenario: str) -> dict[str, Any]: ...

    @staticmethod
    def events(model: str, parts: list[str], scenario: str) -> Iterator[bytes]: ...

    @staticmethod
    def tool_results(body: dict[str, Any]) -> list[str]: ...

    @staticmethod
    def calls_shell(model: str, command: str, body: dict[str, Any]) -> Iterator[bytes]: ...


def parts_of(scenario: str, body: dict[str, Any]) -> list[str]:
    if scenario == "empty":
        return []
    if scenario == "flood":
        return ["x" * 1000] * 200
    if scenario == "echo":
        return [json.dumps(body, ensure_ascii=False)]
    return REPLY


def command_of(body: dict[str, Any]) -> str | None:
    """The command that the prompt asks for, up to the end of its line."""
    found = re.findall(rf"{TOOL_PROMPT}(.+?)(?:\\n|\"|$)", json.dumps(body, ensure_ascii=False))
    return found[-1].replace("\\\\", "\\").strip() if found else None


def _sse(data: dict[str, Any], event: str | None = None) -> bytes:
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


class Anthropic:
    KINDS: ClassVar = {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        500: "api_error",
        529: "overloaded_error",
    }

    @staticmethod
    def error(status: int, message: str, scenario: str) -> dict[str, Any]:
        kind = Anthropic.KINDS.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_test"}

    @staticmethod
    def events(model: str, parts: list[str], scenario: str) -> Iterator[bytes]:
        usage = {
            "input_tokens": 20,
            "cache_creation_input_tokens": 300,
            "cache_read_input_tokens": 900,
            "output_tokens": 1,
        }
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        yield _sse({"type": "message_start", "message": message}, "message_start")
        block = {"type": "text", "text": ""}
        yield _sse({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start")
        yield _sse({"type": "ping"}, "ping")
        for part in parts:
            delta = {"type": "text_delta", "text": part}
            yield _sse({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
            if scenario == "midstream":
                error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
                yield _sse(error, "error")
                return
        yield _sse({"type": "content_block_stop", "index": 0}, "content_block_stop")
        reason = {"refusal": "refusal", "length": "max_tokens", "window": "model_context_window_exceeded"}
        stop = {"stop_reason": reason.get(scenario, "end_turn"), "stop_sequence": None}
        yield _sse({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 25}}, "message_delta")
        yield _sse({"type": "message_stop"}, "message_stop")

    @staticmethod
    def tool_results(body: dict[str, Any]) -> list[str]:
        blocks = [
            block
            for message in body["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        return [json.dumps(block["content"]) for block in blocks if block["type"] == "tool_result"]

    @staticmethod
    def calls_shell(model: str, command: str, body: dict[str, Any]) -> Iterator[bytes]:
        usage = {"input_tokens": 10, "output_tokens": 1}
        message = {"id": "msg_t", "type": "message", "role": "assistant", "model": model, "content": []}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
        yield _sse({"type": "message_start", "message": message}, "message_start")
        block = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
        yield _sse({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start")
        given = json.dumps({"command": command, "description": "as asked"})
        delta = {"type": "input_json_delta", "partial_json": given}
        yield _sse({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
        yield _sse({"type": "content_block_stop", "index": 0}, "content_block_stop")
        stop = {"stop_reason": "tool_use", "stop_sequence": None}
        yield _sse({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}}, "message_delta")
        yield _sse({"type": "message_stop"}, "message_stop")


class ChatCompletions:
    CODES: ClassVar = {
        "context": "context_length_exceeded",
        "quota": "insufficient_quota",
        "e401": "invalid_api_key",
    }

    @staticmethod
    def error(status: int, message: str, scenario: str) -> dict[str, Any]:
        code = ChatCompletions.CODES.get(scenario)
        kind = "insufficient_quota" if scenario == "quota" else "invalid_request_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    @staticmethod
    def events(model: str, parts: list[str], scenario: str) -> Iterator[bytes]:
        def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return _sse({**head, "choices": [choice], "usage": None})

        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
        yield chunk({"role": "assistant", "content": ""})
        for part in parts:
            yield chunk({"refusal" if scenario == "refusal" else "content": part})
            if scenario == "midstream":
                yield _sse(
                    {"error": {"message": "The server is overloaded", "type": "server_error", "code": None}}
                )
                return
        finish = {"length": "length", "filtered": "content_filter"}
        yield chunk({}, finish.get(scenario, "stop"))
        if scenario != "nousage":
            usage = {
                "prompt_tokens": 1220,
                "completion_tokens": 25,
                "total_tokens": 1245,
                "prompt_tokens_details": {"cached_tokens": 900},
            }
            yield _sse({**head, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    @staticmethod
    def tool_results(body: dict[str, Any]) -> list[str]:
        return [json.dumps(message["content"]) for message in body["messages"] if message["role"] == "tool"]

    @staticmethod
    def calls_shell(model: str, command: str, body: dict[str, Any]) -> Iterator[bytes]:
        head = {"id": "chatcmpl-t", "object": "chat.completion.chunk", "created": 1, "model": model}
        given = json.dumps({"command": command, "description": "as asked"})
        call = {"index": 0, "id": "call_1", "type": "function"}
        call["function"] = {"name": "bash", "arguments": given}
        delta = {"role": "assistant", "content": None, "tool_calls": [call]}
        yield _sse({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        yield _sse({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        yield _sse({**head, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"


class Responses:
    """As much as the real codex needs."""

    error = ChatCompletions.error

    @staticmethod
    def events(model: str, parts: list[str], scenario: str) -> Iterator[bytes]:
        def event(kind: str, **data: Any) -> bytes:
            return _sse({"type": kind, **data}, kind)

        response = {
            "id": "resp_1",
            "object": "response",
            "model": model,
            "output": [],
            "status": "in_progress",
        }
        yield event("response.created", response=response)
        text = "".join(parts)
        item = {"type": "message", "role": "assistant", "id": "m1", "content": []}
        yield event("response.output_item.added", output_index=0, item=item)
        for part in parts:
            yield event(
                "response.output_text.delta", output_index=0, content_index=0, item_id="m1", delta=part
            )
        done = {**item, "content": [{"type": "output_text", "text": text, "annotations": []}]}
        yield event("response.output_item.done", output_index=0, item=done)
        usage = {
            "input_tokens": 1220,
            "input_tokens_details": {"cached_tokens": 900},
            "output_tokens": 25,
            "output_tokens_details": {"reasoning_tokens": 5},
            "total_tokens": 1245,
        }
        finished = {**response, "status": "completed", "usage": usage, "output": [done]}
        yield event("response.completed", response=finished)

    @staticmethod
    def tool_results(body: dict[str, Any]) -> list[str]:
        kinds = ("function_call_output", "local_shell_call_output", "custom_tool_call_output")
        return [json.dumps(item["output"]) for item in body["input"] if item["type"] in kinds]

    @staticmethod
    def calls_shell(model: str, command: str, body: dict[str, Any]) -> Iterator[bytes]:
        names = {tool.get("name") for tool in body["tools"]}
        name, given = "shell", {"command": ["bash", "-lc", command]}
        if "exec_command" in names:
            name, given = "exec_command", {"cmd": command}
        elif "shell_command" in names:
            name, given = "shell_command", {"command": command}
        response = {"id": "resp_t", "object": "response", "status": "in_progress", "output": []}
        yield _sse({"type": "response.created", "response": response}, "response.created")
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name}
        item["arguments"] = json.dumps(given)
        for kind in ("added", "done"):
            event = f"response.output_item.{kind}"
            yield _sse({"type": event, "output_index": 0, "item": item}, event)
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        finished = {**response, "status": "completed", "usage": usage, "output": [item]}
        yield _sse({"type": "response.completed", "response": finished}, "response.completed")


def flavour_of(path: str) -> type[Flavour] | None:
    path = path.partition("?")[0]
    if path.endswith("/messages"):
        return Anthropic
    if path.endswith("/chat/completions"):
        return ChatCompletions
    if path.endswith("/responses"):
        return Responses
    return None
