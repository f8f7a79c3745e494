"""What a person reads after a mistake: one line that says what to do, and never a traceback."""

import json

import pytest

from postroom.terminal.cli import queues
from tests.terminal.cli.runner import Cli

MISTAKES = [
    # what was typed, the exit code, what is read
    ("publish", 2, "Missing argument 'QUEUE'. See: postroom publish --help"),
    ("publish jobs", 2, "Missing argument 'BODY'. See: postroom publish --help"),
    ("pub jobs x", 2, "No such command 'pub'. Did you mean 'publish'? See: postroom --help"),
    ("publish jobs x --lable a=b", 2, "No such option: --lable"),
    ("publish nosuch x", 4, 'There is no queue "default/nosuch". Create it first, or check the spelling.'),
    ("publish no/where x", 4, 'There is no scope "no". Create it first, or check the spelling.'),
    ("publish jobs x --priority urgent", 2, "'urgent' is not one of 'critical', 'high', 'normal'"),
    ("publish jobs x --score 5000", 2, "--score: is 5000, must be"),
    ("publish jobs x --score many", 2, "Invalid value for '--score'"),
    ("publish jobs x --ttl 0", 2, "--ttl: is 0.0, must be"),
    ("publish jobs x --ttl -5", 2, "'-5' is not a duration; write seconds (30, 0.5) or 500ms, 5m, 2h, 7d."),
    ("publish jobs x --delay soon", 2, "'soon' is not a duration"),
    ("publish jobs x --deadline 2020-01-01", 2, "--deadline: lies in the past."),
    ("publish jobs x --deadline someday", 2, "'someday' is not a time; write 2027-01-31T12:00"),
    ("publish jobs x --label customer", 2, "'customer' is not a label; write name=text"),
    ("publish jobs x --label n:=[1]", 2, "--label n: must be a text, a number, true, false or null."),
    ("publish jobs x --metadata [1]", 2, 'must be a JSON object, like {"name": "value"}.'),
    ("publish jobs x --metadata {", 2, "is not valid JSON (input data was truncated)."),
    ("publish jobs x --lines", 2, "--lines reads from stdin, so give - as the body."),
    ("publish jobs - --lines --key k", 2, "--key names one message, so it cannot go with --lines."),
    ("claim jobs --limit 0", 2, "--limit: is 0, must be"),
    ("claim jobs --lease 0", 2, "--lease: is 0.0, must be"),
    ("claim jobs --subscription web", 2, "--subscription: is not for default/jobs, whose consumers compete."),
    ("claim news", 2, "--subscription: is needed: default/news is a broadcast queue."),
    ("peek news", 2, "--subscription: is needed: news is a broadcast queue."),
    ("claim news --subscription web", 4, 'has no subscription "web". Subscribe first.'),
    ("complete nope 1-2", 4, 'There is no message with the id "nope".'),
    ("fail nope 1-2 why --final --delay 5", 2, "--final means no retry, so it cannot go with --delay."),
    ("snooze nope 1-2 later", 2, "'later' is not a duration"),
    ("show nope", 4, 'There is no message with the id "nope".'),
    ("cancel nope", 4, 'There is no message with the id "nope".'),
    ("list nosuch", 4, 'There is no queue "default/nosuch".'),
    ("list --scope nosuch", 4, 'There is no scope "nosuch".'),
    ("list --state lost", 2, "'lost' is not one of 'pending'"),
    ("list --cursor abc", 2, "--cursor: 'abc' is not one that a listing gave."),
    ("list --cursor 99999999999999999999", 2, "--cursor: "),
    ("list --limit 5000", 2, "--limit: is 5000, must be"),
    ("list --since yesterday", 2, "'yesterday' is not a time"),
    ("queue create jobs", 5, 'The queue "jobs" exists already.'),
    ("queue create Jobs", 2, "'Jobs' is not a name of small letters, digits"),
    ("queue create nosuch/q", 4, 'There is no scope "nosuch".'),
    ("queue create _x", 5, "belongs to the system and cannot be made by hand."),
    ("queue create q --ordering random", 2, "'random' is not one of 'fifo', 'priority', 'deadline'"),
    ("queue create q --lease 90d", 2, "--lease: is 7776000.0, must be"),
    ("queue create q --max-depth lots", 2, "'lots' is neither a whole number nor the word none."),
    (
        "queue create q --schema x@y",
        2,
        "--schema: 'x@y' must be a name, or a name and a version",
    ),
    ("queue set jobs", 2, "Name at least one setting to change, like --lease 5m."),
    ("queue set nosuch --lease 5m", 4, 'There is no queue "default/nosuch".'),
    ("queue delete _dead_letter", 5, "belongs to the system and cannot be deleted."),
    ("queue archive _dead_letter", 5, "belongs to the system and cannot be changed to archived."),
    ("scope create default", 5, 'The scope "default" exists already.'),
    ("scope create Über", 2, "is not a name of small letters"),
    ("scope pause nosuch", 4, 'There is no scope "nosuch".'),
    ("subscribe jobs web", 2, "default/jobs is not a broadcast queue; its consumers compete."),
    ("unsubscribe news web", 4, 'has no subscription "web"'),
    ("schema add order nofile.json", 2, "nofile.json cannot be read: No such file or directory."),
    ("schema list --scope nosuch", 4, 'There is no scope "nosuch".'),
    ("dead replay", 2, "Say which dead letters: their ids, or --scope NAME, or --all."),
    ("dead replay --all --scope default", 2, "Say which dead letters"),
    ("dead replay nope", 4, 'There is no message with the id "nope".'),
    ("dead discard --scope nosuch --yes", 4, 'There is no scope "nosuch".'),
    (
        "housekeepers --run cleaner",
        2,
        'There is no housekeeper "cleaner"; there are visibility_',
    ),
    ("ledger verify --head xyz", 2, "--head is a hash as `postroom ledger head` prints it"),
    ("ledger tail --since -1", 2, "Invalid value for '--since'"),
    ("queue list --store memory://", 2, "--store: memory:// would be gone when this command ends"),
    ("queue list --store redis://x", 2, 'The store address "redis://x" is not known.'),
    (
        "queue list --store none.db",
        4,
        "There is no store at none.db yet. Create a queue first",
    ),
    ("publish jobs x --store none.db", 4, "There is no store at none.db yet."),
    ("queue create q --store .", 2, "--store: . is a folder; name the store's file in it."),
    ("queue list --store .", 2, "--store: . is a folder; name the store's file in it."),
    ("queue list --store text.db", 6, "The store text.db is damaged: file is not a database."),
    ("backup home/postroom.db", 2, "is the store itself; choose another name for the copy."),
    ("backup text.db", 5, "text.db exists already. Choose another name, or replace it with --force."),
]


@pytest.mark.parametrize(("typed", "code", "read"), MISTAKES, ids=[typed for typed, _, _ in MISTAKES])
def test_a_mistake_is_answered_with_one_line(jobs: Cli, typed: str, code: int, read: str) -> None:
    jobs.ok("queue", "create", "news", "--mode", "broadcast")
    (jobs.folder / "text.db").write_text("this is no database, but it is long enough to be read as one" * 9)
    done = jobs(*typed.split())
    assert read in done.err
    assert done.code == code
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert done.out == ""
    told = jobs(*typed.split(), "--json")
    assert told.code == code
    error = json.loads(told.err)["error"]
    assert error["code"].isupper()
    assert read in error["message"]


def test_the_store_is_only_made_by_what_makes_places(cli: Cli) -> None:
    for words in (("queue", "list"), ("publish", "jobs", "x"), ("claim", "jobs"), ("ledger", "verify")):
        done = cli(*words)
        assert done.code == 4
        assert "There is no store at" in done.err
    assert not cli.home.exists()


def test_something_unforeseen_is_one_line_too(jobs: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise RuntimeError("boom\nand more")

    monkeypatch.setattr(queues, "table", broken)
    done = jobs("queue", "list")
    assert done.code == 1
    assert "error: Postroom met something unexpected (RuntimeError: boom and more)." in done.err
    assert "Traceback" not in done.err
    monkeypatch.setenv("POSTROOM_DEBUG", "1")
    assert "Traceback" in jobs("queue", "list").err


def test_what_came_from_outside_cannot_steer_the_terminal(jobs: Cli) -> None:
    evil = "\x1b[2Jgone\x9b31m\u202eright"
    message = jobs.publish("jobs", evil, "--type", "t\x1b", "--label", f"a={evil}", "--sender", evil)
    told = [jobs.ok("list").out, jobs.ok("peek", "jobs").out, jobs.ok("show", message).out]
    told += [jobs.ok("show", message, "--json").out, jobs("publish", f"q{evil}", "x").err]
    token = jobs.claim("jobs", "--worker", evil)[1]
    jobs.ok("fail", message, token, evil, "--final")
    told += [jobs.ok("dead", "list").out, jobs.ok("ledger", "tail").out, jobs.ok("show", message).out]
    for text in told:
        assert not set(text) & {"\x1b", "\x9b", "\u202e"}
    assert jobs.json("show", message)["body"] == evil


def test_ctrl_c_is_code_130(jobs: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(queues, "table", interrupted)
    done = jobs("queue", "list")
    assert (done.code, done.err) == (130, "")
