"""The programs change weekly: whatever a line holds, reading it goes on."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.clock import ManualClock
from postroom.providers import TurnRequest
from postroom.providers.claude_events import ClaudeReader
from postroom.providers.cli import EventReader
from postroom.providers.codex_events import CodexReader, Totals
from postroom.providers.failures import Product
from postroom.providers.opencode_events import OpenCodeReader
from postroom.providers.process import Exit

PRODUCT = Product(label="Thing", install="i", login="l")
REQUEST = TurnRequest(agent_id="a", prompt="p", workspace=Path("/"))
TYPES = [
    "system",
    "assistant",
    "user",
    "result",
    "stream_event",
    "rate_limit_event",
    "thread.started",
    "item.started",
    "item.completed",
    "error",
    "turn.completed",
    "turn.failed",
    "step_start",
    "text",
    "tool_use",
    "step_finish",
    "agent_message",
    "command_execution",
    "file_change",
    "mcp_tool_call",
    "reasoning",
    "content_block_delta",
    "text_delta",
    "tool_result",
    "success",
    "init",
    "api_retry",
]
KEYS = [
    "type",
    "subtype",
    "message",
    "content",
    "session_id",
    "model",
    "mcp_servers",
    "error",
    "error_status",
    "retry_delay_ms",
    "event",
    "delta",
    "text",
    "content_block",
    "rate_limit_info",
    "resetsAt",
    "status",
    "result",
    "is_error",
    "errors",
    "modelUsage",
    "usage",
    "costUSD",
    "inputTokens",
    "thread_id",
    "item",
    "id",
    "changes",
    "arguments",
    "input_tokens",
    "part",
    "sessionID",
    "tokens",
    "cache",
    "cost",
    "state",
    "reason",
    "name",
    "data",
    "statusCode",
    "responseHeaders",
    "responseBody",
    "tool",
    "callID",
    "input",
    "stop_reason",
    "api_error_status",
]

_leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(TYPES)
)
_values = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
)
_parts = st.builds(
    lambda kind, rest: {**rest, "type": kind},
    st.sampled_from(TYPES),
    st.dictionaries(st.sampled_from(KEYS), _values, max_size=6),
)
_events: Any = st.builds(
    lambda event, key, part: {**event, key: part},
    _parts,
    st.sampled_from(["item", "part", "message", "event", "error", "usage"]),
    _parts | _values,
)


def _reader(program: str) -> EventReader:
    clock = ManualClock()
    if program == "claude":
        return ClaudeReader("n", PRODUCT, REQUEST, clock, "anthropic")
    if program == "codex":
        return CodexReader("n", PRODUCT, REQUEST, clock, vendor="openai", totals=Totals(), network_patience=1)
    return OpenCodeReader("n", PRODUCT, REQUEST, clock)


@pytest.mark.parametrize("program", ["claude", "codex", "opencode"])
@given(events=st.lists(_events, max_size=4), code=st.sampled_from([None, 0, 1, 2, -9]))
def test_no_event_stops_the_reading(program: str, events: list[dict[str, Any]], code: int | None) -> None:
    reader = _reader(program)
    for event in events:
        list(reader.read(json.dumps(event)))
    assert reader.verdict or reader.at_exit(Exit(code=code), "some words")


@pytest.mark.parametrize("program", ["claude", "codex", "opencode"])
@given(line=st.text())
def test_no_line_stops_the_reading(program: str, line: str) -> None:
    assert list(_reader(program).read(line)) == []
