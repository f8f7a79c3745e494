"""Scopes, queues, schemas and subscriptions on the command line."""

import os
import stat

from tests.terminal.cli.runner import Cli


def test_the_home_is_made_for_its_owner_only(jobs: Cli) -> None:
    assert stat.S_IMODE(jobs.home.stat().st_mode) == 0o700


def test_the_environment_names_the_store(jobs: Cli) -> None:
    jobs._monkeypatch.setenv("POSTROOM_STORE", f"sqlite:///{jobs.folder}/named.db")
    jobs.ok("queue", "create", "named")
    assert [queue["queue"] for queue in jobs.json("queue", "list")] == ["default/named"]
    jobs._monkeypatch.setenv("POSTROOM_STORE", "")
    assert [queue["queue"] for queue in jobs.json("queue", "list")] == ["default/jobs"]


def test_every_setting_of_a_queue_can_be_chosen_shown_and_taken_away(cli: Cli) -> None:
    (cli.folder / "order.json").write_text('{"type": "object"}')
    for _ in range(2):
        cli.ok("schema", "add", "order", "order.json")
    made = cli.json(
        *("queue", "create", "jobs", "--ordering", "deadline", "--mode", "competing", "--lease", "2m"),
        *("--max-retries", "7", "--backoff-base", "500ms", "--backoff-cap", "1h", "--concurrency", "3"),
        *("--rate", "5", "--rate-period", "1m", "--rate-key", "customer"),
        *("--max-depth", "9", "--overflow", "drop_oldest", "--ttl", "7d", "--schema", "order@2"),
        *("--retention", "30d", "--description", "work", "--display-name", "Jobs"),
    )
    chosen = {
        "ordering": "deadline",
        "consumer_mode": "competing",
        "visibility_timeout_s": 120.0,
        "max_retries": 7,
        "backoff_base_s": 0.5,
        "backoff_cap_s": 3600.0,
        "concurrency": 3,
        "rate_limit": 5,
        "rate_period_s": 60.0,
        "rate_key": "customer",
        "max_depth": 9,
        "overflow_policy": "drop_oldest",
        "default_ttl_s": 604800.0,
        "schema": "order@2",
        "retention_s": 2592000.0,
        "description": "work",
        "display_name": "Jobs",
    }
    assert {name: made[name] for name in chosen} == chosen
    shown = cli.ok("queue", "show", "jobs").out
    for words in ("deadline", "2 min", "3 claims at once", "9, then drop_oldest", "order@2", "30 days"):
        assert words in shown
    names = ("concurrency", "max-depth", "ttl", "schema", "retention")
    changed = cli.json("queue", "set", "jobs", *(word for name in names for word in (f"--{name}", "none")))
    for name in ("concurrency", "max_depth", "default_ttl_s", "schema", "retention_s"):
        assert changed[name] is None
    assert changed["max_retries"] == 7


def test_a_queue_goes_through_its_states(jobs: Cli) -> None:
    jobs.publish("jobs", "x")
    for verb, state in (
        ("pause", "paused"),
        ("resume", "active"),
        ("drain", "draining"),
        ("archive", "archived"),
        ("unarchive", "active"),
    ):
        assert jobs.json("queue", verb, "jobs")["state"] == state
    assert "paused; 1 wait, 0 are claimed" in jobs.ok("queue", "pause", "jobs").out
    assert "takes no new messages" in jobs("publish", "jobs", "y").err
    assert "still holds 1 open messages" in jobs("queue", "delete", "jobs").err
    jobs.ok("cancel", jobs.json("list")["messages"][0]["id"])
    assert jobs.json("queue", "delete", "jobs") == {"deleted": "default/jobs"}


def test_a_scope_goes_through_its_states(jobs: Cli) -> None:
    jobs.ok("scope", "create", "billing", "--description", "Invoices")
    assert jobs("scope", "create", "billing").code == 5
    assert jobs("scope", "create", "billing", "--exist-ok").code == 0
    jobs.ok("queue", "create", "billing/out")
    for verb, state in (
        ("pause", "paused"),
        ("resume", "active"),
        ("archive", "archived"),
        ("unarchive", "active"),
    ):
        assert jobs.json("scope", verb, "billing")["state"] == state
    listed = {scope["slug"]: scope for scope in jobs.json("scope", "list")}
    assert listed["billing"]["queues"] == 1
    assert "Invoices" in jobs.ok("scope", "list").out
    jobs.ok("scope", "delete", "billing")
    assert [scope["slug"] for scope in jobs.json("scope", "list")] == ["default"]


def test_a_listing_of_queues_hides_the_systems_own_and_points_at_dead_letters(jobs: Cli) -> None:
    assert jobs.ok("queue", "list").out.count("default/") == 1
    assert "default/_dead_letter" in jobs.ok("queue", "list", "--system").out
    assert "Dead letters" not in jobs.ok("queue", "list").out
    jobs.publish("jobs", "x")
    jobs.ok("fail", *jobs.claim("jobs"), "no use", "--final")
    assert "Dead letters: 1. See them: postroom dead list" in jobs.ok("queue", "list").out


def test_a_first_look_says_how_to_begin(cli: Cli) -> None:
    cli.ok("scope", "create", "other")
    assert "No queues yet. Make one: postroom queue create jobs" in cli.ok("queue", "list").out


def test_a_schema_guards_a_queue(jobs: Cli) -> None:
    schema = b'{"title": "An order", "type": "object", "required": ["n"]}'
    (jobs.folder / "order.json").write_bytes(schema)
    assert "as version 1" in jobs.ok("schema", "add", "order", "order.json").out
    assert jobs.json("schema", "add", "order", "-", stdin=schema)["version"] == 2
    assert jobs("schema", "add", "order", "order.json", "--version", "2").code == 5
    assert "The standard input is not valid JSON" in jobs("schema", "add", "x", "-", stdin=b"{").err
    assert "is not a JSON Schema" in jobs("schema", "add", "x", "-", stdin=b'{"type": 5}').err
    assert "An order" in jobs.ok("schema", "list").out
    jobs.ok("queue", "set", "jobs", "--schema", "order")
    assert "'n' is a required property" in jobs("publish", "jobs", "{}").err
    jobs.ok("publish", "jobs", '{"n": 1}')


def test_each_subscriber_gets_its_own_delivery(cli: Cli) -> None:
    cli.ok("queue", "create", "news", "--mode", "broadcast")
    assert "at once, since nobody subscribes to it" in cli.ok("publish", "news", "early").out
    assert "waiting for it: 0 messages" in cli.ok("subscribe", "news", "web").out
    assert "waiting for it: 1 message." in cli.ok("subscribe", "news", "mail", "--earliest").out
    message = cli.publish("news", "late")
    cli.ok("complete", *cli.claim("news", "--subscription", "web"))
    shown = cli.ok("show", message).out
    assert "It is a broadcast; 1 of its 2 deliveries have not ended yet." in shown
    assert [line.split()[1] for line in cli.ok("queue", "show", "news").out.splitlines()[-2:]] == ["0", "2"]
    assert "default/news → mail" in cli.ok("list", "news", "--deliveries").out
    cli.ok("unsubscribe", "news", "mail")
    assert cli.json("show", message)["state"] == "completed"


def test_the_ledger_names_who_is_at_the_keyboard(jobs: Cli) -> None:
    jobs._monkeypatch.setenv("LOGNAME", "ada")
    jobs.publish("jobs", "x")
    assert f"(ada@{os.uname().nodename})" in jobs.ok("ledger", "tail", "-n", "1").out


def test_a_queue_can_be_published_to_by_itself(jobs: Cli) -> None:
    said = jobs.ok("queue", "schedule", "poll", "jobs", '{"n": 1}', "--every", "5m").out
    assert "default/poll publishes to default/jobs and comes next at" in said
    [found] = jobs.json("queue", "schedules")
    assert (found["body"], found["every_s"], found["missed"]) == ({"n": 1}, 300.0, "once")
    assert found["next_at"].endswith("Z")
    assert "every 5 min" in jobs.ok("queue", "schedules").out
    assert jobs.json("queue", "run-schedule", "poll")["state"] == "pending"
    assert "switched off" in jobs.ok("queue", "schedule", "poll", "jobs", "--cron", "0 3 * * *", "--off").out
    assert jobs("queue", "schedule", "poll", "jobs").code == 2
    assert jobs("queue", "schedule", "poll", "other/jobs", "--every", "5m").code == 2
    jobs.ok("queue", "unschedule", "poll")
    assert jobs("queue", "unschedule", "poll").code == 4
    assert jobs.json("queue", "schedules") == []
