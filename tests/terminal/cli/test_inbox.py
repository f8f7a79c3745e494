"""What was sent without waiting is answered later, and read once."""

from typing import Any

import pytest

from tests.terminal.cli.runner import Cli


@pytest.fixture
def staffed(cli: Cli) -> Cli:
    for agent in ("coder", "other"):
        cli.ok("agent", "add", agent, "--name", agent.capitalize(), "--provider", "script")
    return cli


def let_work(cli: Cli) -> list[dict[str, Any]]:
    """Agents work while somebody waits for one of them; what then waits in the inbox."""
    for _ in range(50):
        cli.ok("send", "@other ping", "--wait")
        if found := cli.json("inbox", "--keep"):
            return found
    raise AssertionError("no answer came")


def test_an_answer_waits_until_it_is_read(staffed: Cli) -> None:
    assert staffed.ok("inbox").out.strip() == "Nothing waits for you."
    sent = staffed.json("send", "@coder hello there")["messageId"]
    assert [reply["messageId"] for reply in let_work(staffed)] == [sent]
    shown = staffed.ok("inbox").out
    assert "@coder" in shown
    assert "hello there" in shown
    assert staffed.json("inbox") == []


def test_the_same_words_under_the_same_id_are_one_message(staffed: Cli) -> None:
    first = staffed.json("send", "@coder hello", "--id", "once")
    again = staffed.json("send", "@coder hello", "--id", "once")
    assert first["messageId"] == again["messageId"] == "once"
    other = staffed("send", "@coder something else", "--id", "once")
    assert other.code != 0
    assert "came before" in other.err
    assert len(let_work(staffed)) == 1
