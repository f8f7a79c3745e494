"""What is wrong is told in words that help, with the right exit code, and changes nothing."""

import asyncio
import json
import stat

import pytest

import postroom
from postroom.services import callers
from postroom.services.container import Services
from tests.terminal.cli.runner import Cli

RULE = {
    "name": "premium",
    "source_queue_id": "jobs",
    "expression": 'labels.tier == "premium"',
    "action": {"type": "route", "target_queue_id": "vip"},
}
QUESTION = {"sections": [{"type": "decision", "field": "decision", "options": ["yes", "no"]}]}
STAMP = "20"


def test_an_erasure_that_nobody_confirms_erases_nothing(jobs: Cli) -> None:
    message = jobs.publish("jobs", "secret", "--label", "who=ann")
    done = jobs("erase", "labels.who", "ann")
    assert done.code == 1
    assert "Nothing was changed" in done.err
    assert jobs.json("show", message)["body"] == "secret"
    told = jobs.json("erase", "labels.who", "ann", "-y")
    assert told["erased"] == 1
    assert told["created_at"].startswith(STAMP)
    assert told["completed_at"].endswith("Z")


@pytest.mark.parametrize("words", [(), ("--check",), ("--yes",)])
def test_what_is_no_backup_is_not_restored(jobs: Cli, words: tuple[str, ...]) -> None:
    before = jobs.store.read_bytes()
    missing = jobs("restore", "nowhere.db", *words)
    assert missing.code == 4
    assert "no backup at" in missing.err
    jobs.ok("backup", "monday.db")
    whole = (jobs.folder / "monday.db").read_bytes()
    (jobs.folder / "monday.db").write_bytes(whole[: len(whole) // 2])
    torn = jobs("restore", "monday.db", *words)
    assert torn.code == 6
    assert "Take another one" in torn.err
    assert jobs.store.read_bytes() == before


def test_the_store_is_no_backup_of_itself(jobs: Cli) -> None:
    itself = jobs("restore", str(jobs.store), "--yes")
    assert itself.code == 2
    assert "is the store itself" in itself.err
    assert [path.name for path in jobs.home.glob("*.before-*")] == []


def test_rules_keys_and_messages_that_are_not_there_end_with_4(jobs: Cli) -> None:
    for words in (
        "rule show nope",
        "rule enable nope",
        "rule remove nope",
        "rule test --message nope",
        "key rotate nope",
        "key revoke nope",
        "key create x --permission view --scope nowhere",
    ):
        done = jobs(*words.split())
        assert done.code == 4, words
        assert "There is no " in done.err, words


def test_counts_that_make_no_sense_are_refused(jobs: Cli) -> None:
    for words in ("audit list --limit 0", "history search x --limit 0", "logs -n -1"):
        done = jobs(*words.split())
        assert done.code == 2, words
        assert "must be a whole number" in done.err, words
    assert jobs("key", "create", " ", "--permission", "view").code == 2
    assert jobs.json("key", "list") == []


def test_times_are_iso_for_rules_and_reviews_too(jobs: Cli) -> None:
    jobs.ok("queue", "create", "vip")
    (jobs.folder / "rule.json").write_text(json.dumps(RULE))
    made = jobs.json("rule", "add", "rule.json")
    assert made["created_at"].startswith(STAMP)
    assert made["tripped_until"] is None
    review = jobs.publish("jobs", "1", "--hitl-spec", json.dumps(QUESTION))
    jobs.ok("review", "answer", review, "decision=yes")
    assert jobs.json("review", "show", review)["decided"]["at"].endswith("Z")
    assert "decision: yes" in jobs.ok("review", "show", review).out


def test_publish_tells_where_a_rule_put_the_message(jobs: Cli) -> None:
    jobs.ok("queue", "create", "vip")
    (jobs.folder / "rule.json").write_text(json.dumps(RULE))
    jobs.ok("rule", "add", "rule.json")
    assert "in default/vip" in jobs.ok("publish", "jobs", "1", "--label", "tier=premium").out
    assert "pending in default/jobs" in jobs.ok("publish", "jobs", "1").out
    archive = {**RULE, "name": "old", "expression": "true", "action": {"type": "archive"}}
    (jobs.folder / "rule.json").write_text(json.dumps(archive))
    jobs.ok("rule", "add", "rule.json")
    assert "a rule of default/jobs ended it" in jobs.ok("publish", "jobs", "1").out


def test_a_store_is_made_for_its_owner_alone(cli: Cli) -> None:
    cli.ok("--store", str(cli.folder / "other.db"), "queue", "create", "jobs")
    cli.ok("queue", "create", "jobs")
    for path in (cli.folder / "other.db", cli.store):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_doctor_looks_at_the_store_and_the_script(jobs: Cli) -> None:
    assert "store" in jobs.ok("doctor").out
    message = jobs.publish("jobs", "1")
    _, token = jobs.claim("jobs")
    jobs.ok("fail", message, token, "no paper", "--final")
    assert "1; see: postroom dead list" in jobs.ok("doctor").out
    jobs.ok("agent", "list")
    (jobs.home / "script.json").write_text('{"rules": 7}')
    assert "script.json cannot be used" in jobs.ok("doctor").out
    jobs.store.write_bytes(b"no store at all" * 100)
    assert jobs("doctor").code == 1


def test_names_that_are_no_ids_are_refused_before_anything_is_asked(cli: Cli) -> None:
    for words in ("agent add ../x", "team add a/b assistant", "provider add x/y --url http://127.0.0.1:9"):
        done = cli(*words.split())
        assert done.code == 2, words
        assert "is no id" in done.err, words


def test_only_providers_that_exist_can_be_chosen(cli: Cli) -> None:
    for words in ("provider set nosuch", "provider set custom:nope", "provider set script --api-key x"):
        assert cli(*words.split()).code == 2, words
    wrong = cli("provider", "add", "lab", "--url", "http://127.0.0.1:9/v1", "--harness", "foo")
    assert "--harness" in wrong.err
    cli.ok("provider", "add", "lab", "--url", "http://127.0.0.1:9/v1", "--harness", "api", "--model", "m")
    cli.ok("agent", "add", "coder", "--provider", "custom:lab")
    used = cli("provider", "remove", "lab", "--yes")
    assert used.code == 5
    assert "@coder" in used.err
    cli.ok("agent", "provider", "coder", "script")
    cli.ok("provider", "remove", "lab", "--yes")


def test_a_key_for_a_plain_api_is_kept_where_the_api_looks_for_it(cli: Cli) -> None:
    cli.ok("provider", "set", "anthropic_api", "--model", "opus", "--api-key", "env:SOME_KEY")
    models = json.loads((cli.home / "settings.json").read_text())["models"]
    assert models["provider"] == "anthropic_api"
    assert models["anthropic"] == {"model": "opus", "api_key": "env:SOME_KEY"}


def test_a_plugin_that_is_not_there_is_told_of(cli: Cli) -> None:
    cli.ok("agent", "list")
    (cli.home / "plugins").mkdir(exist_ok=True)
    (cli.home / "plugins" / "loud.py").write_text("")
    assert "not there yet" not in cli.ok("plugins", "allow", "loud", "--yes").err
    assert "not there yet" in cli.ok("plugins", "allow", "loudest", "--yes").err


def test_a_trace_tells_how_long_each_step_waited_and_was_worked_on(jobs: Cli) -> None:
    message = jobs.publish("jobs", "1", "--correlation-id", "order-1")
    _, token = jobs.claim("jobs")
    jobs.ok("complete", message, token)
    jobs.publish("jobs", "2", "--correlation-id", "order-1", "--causation-id", message)
    found = jobs.json("trace", "order-1")
    done, waiting = found["spans"]
    events = {each["type"]: each["time"] for each in jobs.json("show", message)["events"]}
    assert events["message.published"] <= events["message.claimed"] <= events["message.completed"]
    assert done["wait_us"] > 0
    assert done["work_us"] > 0
    assert (waiting["wait_us"], waiting["work_us"]) == (None, None)
    assert found["summary"]["duration_us"] >= done["wait_us"] + done["work_us"]


def test_send_says_what_nobody_could_answer_with_code_9(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(cli.folder))
    cli.ok("agent", "list")
    settings = cli.home / "settings.json"
    document = json.loads(settings.read_text())
    document["workspace"]["path"] = str(cli.folder / "work")
    document["agents"] = {name: {"provider": "script"} for name in ("ann", "bob")}
    document["teams"] = {"two": {"agents": ["ann", "bob"], "leader_agent": "ann"}}
    document["guards"] = {"hops": 2}
    settings.write_text(json.dumps(document))
    rules = [
        {"match": "fail", "fail": "auth"},
        {"match": "ball", "agent": "ann", "reply": "[@bob: the ball $turn]"},
        {"match": "ball", "agent": "bob", "reply": "[@ann: the ball $turn]"},
    ]
    (cli.home / "script.json").write_text(json.dumps({"rules": rules}))
    failed = cli("send", "@ann fail", "--wait")
    assert failed.code == 9
    assert "postroom dead replay" in failed.err
    paused = cli("send", "@ann play ball", "--id", "a/b", "--wait")
    assert paused.code == 5
    assert "I have paused this conversation" in paused.out
    assert "postroom guards continue cli:a/b" in paused.err
    stopped = cli.ok("send", "/stop", "--wait")
    assert stopped.out.startswith("Stopped.")


def test_a_key_can_have_a_role_of_the_tenant(jobs: Cli) -> None:
    async def make_role() -> None:
        async with postroom.open(f"sqlite:///{jobs.store}") as room:
            await Services(room).roles.create(callers.owner(), "publishers", ["publish"])

    assert jobs("key", "create", "shop", "--role", "publishers").code == 2
    asyncio.run(make_role())
    assert jobs.json("key", "create", "shop", "--role", "publishers")["role"] == "publishers"


def test_bytes_that_are_no_text_are_refused_and_nothing_is_sent(cli: Cli) -> None:
    cli.ok("queue", "create", "jobs")
    for words in (["send", "--agent", "assistant"], ["publish", "jobs", "-"]):
        done = cli(*words, stdin=b"caf\xe9")
        assert done.code == 2
        assert "is not UTF-8 text (at byte 3)" in done.err
    assert cli.json("list", "jobs")["messages"] == []


def test_strict_takes_json_alone(cli: Cli) -> None:
    cli.ok("queue", "create", "jobs")
    done = cli("publish", "jobs", "{broken", "--strict")
    assert (done.code, "nothing was published" in done.err) == (2, True)
    assert cli("publish", "jobs", "x", "--strict", "--text").code == 2
    assert cli.json("list", "jobs")["messages"] == []
    cli.ok("publish", "jobs", "{}", "--strict")


def test_the_short_help_is_the_help(cli: Cli) -> None:
    for words in ([], ["queue"], ["queue", "create"]):
        assert cli.ok(*words, "-h").out == cli.ok(*words, "--help").out
