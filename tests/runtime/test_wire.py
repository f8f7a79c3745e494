"""Commands and answers come over the wire as they were sent, and nothing else can be made from bytes."""

from typing import Any

import msgspec
import pytest

from postroom.errors import ClaimLost, InvalidField, PostroomError, QueueFull, SchemaViolation
from postroom.kernel import commands as c
from postroom.kernel.model import LifecycleState, NewMessage, Receipt
from postroom.kernel.states import State
from postroom.runtime import wire

VALUES: list[Any] = [
    c.Publish(queue="jobs", messages=[NewMessage(body={"a": [1, None, "é", b"\x00"]}, labels={"x": "y"})]),
    c.Unit(commands=(c.Complete(message_id="m", token="t", result={"1": 2}), c.CreateQueue(queue="q"))),
    c.SetQueueState(queue="q", state=LifecycleState.PAUSED),
    [Receipt("id", True, State.PENDING)],
    {"a": (1, 2), "b": {}},
    None,
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_what_was_sent_arrives(value: Any) -> None:
    assert wire.decode(wire.encode(value)) == value


@pytest.mark.parametrize(
    "error",
    [
        ClaimLost(message_id="m", state="dead"),
        InvalidField("limit", "is odd"),
        QueueFull(queue="q", depth=1, limit=1),
        SchemaViolation(schema="order@1", problems="x", details=[{"path": "a.b", "problem": "is missing"}]),
    ],
)
def test_errors_arrive_as_what_they_are(error: PostroomError) -> None:
    back = wire.decode_error(wire.encode_error(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert back.data == error.data


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "subprocess:Popen",
        "postroom.kernel.commands:msgspec",
        "postroom.settings.secrets:Secret",
        "x",
        ":",
        "postroom.kernel.commands:__builtins__",
        "postroom.kernel.nothing:Publish",
        "builtins:eval",
    ],
)
def test_nothing_but_the_kernels_own_is_made(name: str) -> None:
    data = msgspec.msgpack.encode({"$": name, "v": {"x": 1}})
    with pytest.raises(wire.WireNotAllowed):
        wire.decode(data)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x81\xa1a\x01", msgspec.msgpack.encode({"$": "", "v": 5})])
def test_bytes_that_mean_nothing_are_refused(data: bytes) -> None:
    with pytest.raises(wire.WireNotAllowed):
        wire.decode(data)
