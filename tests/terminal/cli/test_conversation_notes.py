"""Who waits for an answer is told of their own conversation, why it is tried again, and nothing twice."""

import json
from typing import Any

from postroom.kernel.states import State
from postroom.services.conversations import ConversationStatus, ConversationStep
from postroom.terminal.cli.conversation_notes import ConversationNotes
from tests.terminal.cli.runner import Cli


def step(message_id: str = "m1", **fields: Any) -> ConversationStep:
    known = {"agent": "coder", "from_agent": None, "state": State.CLAIMED, "attempts": 1, "problem": None}
    return ConversationStep(message_id=message_id, **(known | fields))


def status(*steps: ConversationStep) -> ConversationStatus:
    return ConversationStatus("m1", ("coder",), None, (), (), steps)


def test_each_step_is_told_once() -> None:
    told: list[str] = []
    notes = ConversationNotes(told.append)
    notes.follow(status(step(state=State.PENDING, attempts=0)))
    assert told == []
    for _ in range(3):
        notes.follow(status(step(), step("m2", agent="writer", from_agent="coder")))
    assert told == ["@coder begins", "@coder asks @writer", "@writer begins"]


def test_why_it_is_tried_again_is_told_at_each_attempt() -> None:
    told: list[str] = []
    notes = ConversationNotes(told.append)
    for attempt in (1, 1, 2):
        notes.follow(status(step(state=State.DELAYED, attempts=attempt, problem="the server is\noverloaded")))
    assert told == ["@coder begins", *["@coder waits: the server is overloaded"] * 2]


def test_words_of_another_conversation_are_not_told_and_the_answer_is_left_to_the_end() -> None:
    told: list[str] = []
    notes = ConversationNotes(told.append)
    notes.follow(status(step()))
    told.clear()
    for words in ("I look at it", "now I build", "the answer"):
        notes.hear("m1", "coder", words)
        notes.hear("other", "writer", "nobody here asked this")
    assert told == ["@coder: I look at it", "@coder: now I build"]


def test_a_turn_that_fails_first_is_told_with_its_reason_and_the_answer_comes_once(cli: Cli) -> None:
    cli.home.mkdir(mode=0o700)
    settings = {
        "workspace": {"path": str(cli.folder / "work")},
        "agents": {"coder": {"name": "Coder", "provider": "script", "model": ""}},
        "monitoring": {"heartbeat_interval": 0},
    }
    rule = {"match": "flaky", "fail": "overloaded", "times": 1, "reply": "Third time lucky."}
    (cli.home / "settings.json").write_text(json.dumps(settings))
    (cli.home / "script.json").write_text(json.dumps({"pace": 0.001, "rules": [rule]}))
    answered = cli("send", "@coder flaky", "--wait", "--timeout", "120")
    assert answered.code == 0, answered.err
    assert (answered.out + answered.err).count("Third time lucky.") == 1
    assert "@coder begins" in answered.err
    assert "@coder waits: " in answered.err
