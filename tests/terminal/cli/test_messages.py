"""Publishing, looking at and ending messages on the command line."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.terminal.cli.runner import Cli


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ('{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}),
        ("5", 5),
        ("true", True),
        ("hello world", "hello world"),
        ('"quoted"', "quoted"),
        ("ünïcode ✉", "ünïcode ✉"),
        ("", ""),
    ],
)
def test_a_body_is_json_if_it_can_be_and_text_if_not(jobs: Cli, typed: str, stored: object) -> None:
    assert jobs.json("show", jobs.publish("jobs", typed))["body"] == stored


def test_text_can_be_meant_as_text(jobs: Cli) -> None:
    assert jobs.json("show", jobs.publish("jobs", "5", "--text"))["body"] == "5"


def test_broken_json_goes_as_text_but_not_silently(jobs: Cli) -> None:
    done = jobs("publish", "jobs", '{"a": 1')
    assert done.code == 0
    assert done.err == "note: the body is not valid JSON (input data was truncated), so it goes as text\n"


def test_a_body_comes_from_stdin(jobs: Cli) -> None:
    for given, stored in ((b'{"a": 1}\n', {"a": 1}), (b"hello\nyou\n", "hello\nyou")):
        message = jobs.json("publish", "jobs", "-", stdin=given)["id"]
        assert jobs.json("show", message)["body"] == stored
    assert "is not UTF-8 text (at byte 1)" in jobs("publish", "jobs", "-", stdin=b"a\xff").err


def test_bytes_of_another_type_stay_as_they_are(jobs: Cli) -> None:
    done = jobs.ok("publish", "jobs", "-", "--content-type", "image/png", "--json", stdin=b"\x89PNG\n\n")
    found = jobs.json("show", done.json["id"])
    assert (found["body"], found["body_encoding"]) == ("iVBORwoK", "base64")
    assert "(6 bytes of image/png; see them with --json)" in jobs.ok("show", done.json["id"]).out


def test_lines_become_messages_all_or_none(jobs: Cli) -> None:
    done = jobs.ok("publish", "jobs", "-", "--lines", stdin=b'one\n\n{"two": 2}\r\nthree')
    assert done.out == "Published to default/jobs: 3 messages.\n"
    bodies = [message["body"] for message in jobs.json("peek", "jobs")]
    assert bodies == ["one", {"two": 2}, "three"]
    jobs.ok("queue", "set", "jobs", "--max-depth", "4")
    assert jobs("publish", "jobs", "-", "--lines", stdin=b"four\nfive\n").code == 5
    assert len(jobs.json("peek", "jobs")) == 3


def test_everything_about_a_message_can_be_said(jobs: Cli) -> None:
    later = (datetime.now(UTC) + timedelta(hours=3)).isoformat()
    message = jobs.publish(
        *("jobs", "x", "--type", "greeting", "--priority", "high", "--score", "900", "--ttl", "2h"),
        *("--label", "customer=ada", "--label", "n:=5", "--deadline", later, "--delay", "10m", "--key", "k"),
        *("--correlation-id", "c", "--causation-id", "d", "--parent-id", "p", "--hop", "2"),
        *("--source-type", "agent", "--source-id", "s", "--channel", "web", "--sender", "Ada"),
        *("--sender-id", "7", "--agent", "coder", "--from-agent", "lead", "--file", "a.txt"),
        *("--file", "b.txt", "--metadata", '{"m": 1}', "--hitl-spec", '{"ask": "?"}'),
    )
    found = jobs.json("show", message)
    expected = {
        "state": "delayed",
        "message_type": "greeting",
        "priority_tier": "high",
        "priority_score": 900,
        "ttl_s": 7200.0,
        "labels": {"customer": "ada", "n": 5},
        "idempotency_key": "k",
        "correlation_id": "c",
        "causation_id": "d",
        "parent_id": "p",
        "hop": 2,
        "source_type": "agent",
        "source_id": "s",
        "channel": "web",
        "sender": "Ada",
        "sender_id": "7",
        "agent": "coder",
        "from_agent": "lead",
        "files": ["a.txt", "b.txt"],
        "metadata": {"m": 1},
        "hitl_spec": {"ask": "?"},
    }
    assert {name: found[name] for name in expected} == expected
    assert found["deadline"][:16] == later[:16]


def test_the_same_key_makes_no_second_message(jobs: Cli) -> None:
    first = jobs.json("publish", "jobs", "x", "--key", "k")
    assert first["created"]
    assert jobs.json("publish", "jobs", "x", "--key", "k") == {**first, "created": False}
    assert "was there already with this key" in jobs.ok("publish", "jobs", "x", "--key", "k").out
    assert "was used for another body" in jobs("publish", "jobs", "y", "--key", "k").err


def test_a_peek_shows_what_would_be_claimed_and_claims_nothing(jobs: Cli) -> None:
    assert jobs.ok("peek", "jobs").out == "Nothing waits to be claimed.\n"
    jobs.ok("publish", "jobs", "-", "--lines", stdin=b"a\nb\nc\n")
    assert "… and 1 more." in jobs.ok("peek", "jobs", "--limit", "2").out
    jobs.publish("jobs", "later", "--delay", "1h")
    assert len(jobs.json("peek", "jobs")) == 3


def test_a_listing_goes_on_where_it_ended(jobs: Cli) -> None:
    jobs.ok("publish", "jobs", "-", "--lines", stdin=b"1\n2\n3\n4\n5\n")
    seen, cursor = [], None
    while True:
        page = jobs.json("list", "--limit", "2", *(("--cursor", cursor) if cursor else ()))
        seen += [message["body"] for message in page["messages"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [1, 2, 3, 4, 5]
    assert "There are more: add --cursor " in jobs.ok("list", "--limit", "2").out
    assert [m["body"] for m in jobs.json("list", "--newest")["messages"]] == [5, 4, 3, 2, 1]


def test_a_listing_can_be_narrowed(jobs: Cli) -> None:
    jobs.publish("jobs", "1", "--label", "who=ada", "--label", "n:=5", "--type", "a", "--agent", "x")
    jobs.publish("jobs", "2", "--label", "n=5", "--delay", "1h", "--correlation-id", "talk")
    for words, bodies in (
        (("--label", "who=ada"), [1]),
        (("--label", "n:=5"), [1]),
        (("--label", "n=5"), [2]),
        (("--state", "delayed"), [2]),
        (("--state", "delayed", "--state", "pending"), [1, 2]),
        (("--type", "a"), [1]),
        (("--agent", "x"), [1]),
        (("--correlation-id", "talk"), [2]),
        (("--since", "1h"), [1, 2]),
        (("--until", "1h"), []),
        (("--until", "2031-01-01T00:00Z"), [1, 2]),
        (("jobs", "--scope", "default"), [1, 2]),
    ):
        assert [m["body"] for m in jobs.json("list", *words)["messages"]] == bodies, words
    assert jobs.ok("list", "--until", "1h").out == "No messages.\n"


def test_ids_in_a_listing_can_be_copied(jobs: Cli) -> None:
    message = jobs.publish("jobs", json.dumps({"long": "x" * 500}))
    [_, line] = jobs.ok("list").out.splitlines()
    assert line.startswith(f"{message}  default/jobs")
    assert line.endswith("…")


def test_several_messages_are_cancelled_all_or_none(jobs: Cli) -> None:
    first, second = jobs.publish("jobs", "1"), jobs.publish("jobs", "2")
    assert jobs("cancel", first, "nope").code == 4
    assert jobs.json("show", first)["state"] == "pending"
    assert [m["state"] for m in jobs.json("cancel", first, second, "--reason", "twice")] == ["cancelled"] * 2
    assert "It was cancelled" in jobs.ok("show", first).out
    assert ": twice." in jobs.ok("show", first).out
    assert "so it cannot be cancelled" in jobs("cancel", first).err


def test_nothing_is_said_about_time_in_a_room_that_is_up_to_date(jobs: Cli) -> None:
    jobs.publish("jobs", "x", "--delay", "1h")
    assert jobs("list").err == ""


def test_what_came_due_while_nobody_was_there_takes_effect_with_the_next_change(jobs: Cli) -> None:
    message = jobs.publish("jobs", "x", "--delay", "1ms")
    assert jobs.json("show", message)["state"] == "delayed"
    jobs.ok("queue", "create", "other")
    assert jobs.json("show", message)["state"] == "pending"


def test_a_message_that_waits_for_others_says_so(jobs: Cli) -> None:
    first = jobs.publish("jobs", "a")
    said = jobs.ok("publish", "jobs", "b", "--after", first).out
    assert "waits in default/jobs for 1 message" in said
    jobs.ok("cancel", first)
    said = jobs.ok("publish", "jobs", "c", "--after", first).out
    assert f"is a dead letter: message {first}, which it waited for, is cancelled" in said
    assert jobs.json("publish", "jobs", "d", "--after", first, "--after-failed", "run")["state"] == "pending"
    refused = jobs("publish", "jobs", "e", "--after", "nobody")
    assert refused.code == 4
