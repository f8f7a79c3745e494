"""Events can be stored and read back."""

import msgspec
import pytest

from postroom.providers import (
    Cause,
    ErrorKind,
    Failed,
    Finished,
    Progress,
    SessionStarted,
    SessionTotal,
    TextChunk,
    ToolUse,
    TurnEvent,
    Usage,
)


@pytest.mark.parametrize(
    "event",
    [
        SessionStarted(session_id="s", provider="p"),
        TextChunk(text="hi", part=2),
        ToolUse(name="Bash", state="started", call_id="1", summary="ls"),
        Progress(kind="retry", text="again"),
        Usage(provider="p", model="m", session_total=SessionTotal(input_tokens=3)),
        Finished(text="done"),
        Failed(kind=ErrorKind.AUTH, message="no", retry_at=5, cause=Cause.QUOTA),
    ],
    ids=lambda event: type(event).__name__,
)
def test_an_event_survives_json(event: TurnEvent) -> None:
    assert msgspec.json.decode(msgspec.json.encode(event), type=TurnEvent) == event
