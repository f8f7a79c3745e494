"""Claims and what their holders do with them, one command at a time."""

import time

from tests.terminal.cli.runner import Cli


def test_a_claim_shows_the_line_that_completes_it(jobs: Cli) -> None:
    message = jobs.publish("jobs", "write to Ada", "--label", "who=ada")
    shown = jobs.ok("claim", "jobs").out
    assert "write to Ada" in shown
    [line] = [line for line in shown.splitlines() if "postroom complete" in line]
    words = line.split("postroom ")[1].split()
    assert words[1] == message
    assert jobs.ok(*words).out == f"{message} is done; it is completed.\n"
    assert jobs.ok(*words).out == f"{message} is done; it is completed.\n", "saying it twice is no error"


def test_nothing_to_claim_is_no_error(jobs: Cli) -> None:
    assert jobs.ok("claim", "jobs").out == "Nothing to claim.\n"
    assert jobs.json("claim", "jobs") == []


def test_a_claim_can_wait_for_a_message_that_is_delayed(jobs: Cli) -> None:
    message = jobs.publish("jobs", "x", "--delay", "300ms")
    assert jobs.claim("jobs", "--wait", "20")[0] == message


def test_several_are_claimed_at_once_from_several_queues(jobs: Cli) -> None:
    jobs.ok("queue", "create", "more")
    jobs.ok("publish", "jobs", "-", "--lines", stdin=b"1\n2\n")
    jobs.publish("more", "3")
    taken = jobs.json("claim", "jobs", "more", "--limit", "5", "--lease", "2h", "--worker", "ralf")
    assert [message["body"] for message in taken] == [1, 2, 3]
    assert {message["claimed_by"] for message in taken} == {"ralf"}
    assert "the lease ends in 2 h" in jobs.ok("show", taken[0]["id"]).out


def test_a_failure_is_retried_then_buried(jobs: Cli) -> None:
    jobs.ok("queue", "set", "jobs", "--max-retries", "2")
    message = jobs.publish("jobs", "x")
    done = jobs.ok("fail", *jobs.claim("jobs"), "out of paper", "--delay", "1h", "--kind", "printer")
    assert done.out == f"{message} failed; it is delayed, back in 60 min.\n"
    assert "Attempt 1 failed: out of paper. It can be claimed in 60 min." in jobs.ok("show", message).out
    other = jobs.publish("jobs", "y")
    jobs.ok("fail", *jobs.claim("jobs"), "again", "--delay", "0")
    done = jobs.ok("fail", *jobs.claim("jobs"), "no use")
    assert done.out == f"{other} failed; it is dead.\n"
    assert f"Send it back: postroom dead replay {other}" in jobs.ok("show", other).out


def test_a_release_and_a_snooze_do_not_count(jobs: Cli) -> None:
    message = jobs.publish("jobs", "x")
    assert jobs.json("release", *jobs.claim("jobs"))["attempts"] == 0
    done = jobs.json("snooze", *jobs.claim("jobs"), "1h", "--reason", "rate limit")
    assert (done["state"], done["attempts"]) == ("delayed", 0)
    assert "It was snoozed: rate limit." in jobs.ok("show", message).out


def test_a_claim_is_extended(jobs: Cli) -> None:
    jobs.publish("jobs", "x")
    message, token = jobs.claim("jobs", "--lease", "1m")
    done = jobs.ok("extend", message, token, "--lease", "10m")
    assert done.out == f"{message} stays yours; it is claimed, the lease ends in 10 min.\n"


def test_a_lost_claim_is_told_to_whoever_comes_late(jobs: Cli) -> None:
    jobs.publish("jobs", "x")
    message, token = jobs.claim("jobs", "--lease", "1ms")
    time.sleep(0.01)
    assert "so the next claim gives it back" in jobs.ok("show", message).out
    assert jobs.claim("jobs")[0] == message, "somebody else has it now"
    late = jobs("complete", message, token)
    assert late.code == 5
    assert "is no longer yours: the message is claimed" in late.err
    assert "Drop this work." in late.err


def test_who_comes_late_and_was_not_replaced_completes(jobs: Cli) -> None:
    jobs.publish("jobs", "x")
    message, token = jobs.claim("jobs", "--lease", "1ms")
    time.sleep(0.01)
    assert "it is completed" in jobs.ok("complete", message, token).out


def test_dead_letters_are_listed_replayed_and_discarded(jobs: Cli) -> None:
    ids = [jobs.publish("jobs", str(n)) for n in range(4)]
    for _ in ids:
        jobs.ok("fail", *jobs.claim("jobs"), "no use", "--final")
    shown = jobs.ok("dead", "list").out
    assert "default/jobs" in shown
    assert "no use" in shown
    assert jobs.json("dead", "replay", ids[0]) == {"replayed": [ids[0]]}
    assert jobs("dead", "replay", ids[1], ids[0]).code == 5
    assert jobs.json("dead", "replay", "--scope", "default") == {"replayed": ids[1:]}
    assert jobs.ok("dead", "replay", "--all").out == "There are no dead letters.\n"
    assert jobs.ok("dead", "list").out == "No dead letters.\n"


def test_discarding_asks_first(jobs: Cli) -> None:
    for _ in range(2):
        jobs.publish("jobs", "x")
        jobs.ok("fail", *jobs.claim("jobs"), "no use", "--final")
    message = jobs.json("dead", "list")["messages"][0]["id"]
    refused = jobs("dead", "discard", message, stdin=b"n\n")
    assert refused.code == 1
    assert "Discard 1 dead letter for good? [y/N]" in refused.err
    assert "Nothing was changed. Answer y to the question, or use --yes." in refused.err
    silent = jobs("dead", "discard", "--all")
    assert silent.code == 1
    assert "Discard all dead letters of all scopes for good?" in silent.err
    assert "\nerror: Nothing was changed." in silent.err
    assert len(jobs.json("dead", "list")["messages"]) == 2
    assert jobs("dead", "discard", message, stdin=b"y\n").out == f"{message} is discarded.\n"
    assert len(jobs.json("dead", "discard", "--all", "--yes")["discarded"]) == 1


def test_housekeepers_are_listed_and_run(jobs: Cli) -> None:
    assert "never" in jobs.ok("housekeepers").out
    assert jobs.ok("housekeepers", "--run", "message_archiver").out == "message_archiver: 0 items\n"
    assert {done["error"] for done in jobs.json("housekeepers", "--run", "all")} == {None}
    assert {keeper["last_status"] for keeper in jobs.json("housekeepers")} == {"ok"}


def test_an_open_message_says_what_it_waits_for(jobs: Cli) -> None:
    message = jobs.publish("jobs", "x")
    assert "It waits to be claimed, for " in jobs.ok("show", message).out
    jobs.ok("queue", "pause", "jobs")
    assert "Open it: postroom queue resume default/jobs" in jobs.ok("show", message).out
    jobs.ok("scope", "archive", "default")
    assert "Open it: postroom scope unarchive default" in jobs.ok("show", message).out
    jobs.ok("scope", "unarchive", "default")
    jobs.ok("queue", "resume", "jobs")
    jobs.ok("queue", "set", "jobs", "--concurrency", "1")
    second = jobs.publish("jobs", "y")
    jobs.claim("jobs")
    assert "The queue allows 1 claims at once, and all are taken." in jobs.ok("show", second).out


def test_a_messages_life_is_told_in_order(jobs: Cli) -> None:
    jobs.publish("jobs", "other")
    message = jobs.publish("jobs", "x", "--priority", "low")
    jobs.ok("complete", *jobs.claim("jobs"))
    jobs.ok("fail", *jobs.claim("jobs"), "out of paper", "--delay", "0")
    jobs.ok("complete", *jobs.claim("jobs"))
    told = jobs.json("show", message)
    assert [event["type"].removeprefix("message.") for event in told["events"]] == (
        ["published", "claimed", "failed", "claimed", "completed"]
    )
    shown = jobs.ok("show", message).out
    assert "It was completed on attempt 2" in shown
    assert "attempt 1 failed: out of paper; again at once" in shown
