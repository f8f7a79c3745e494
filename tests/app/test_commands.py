"""The command line speaks to the house that runs, and needs none to do the same without it."""

import json

from tests.app.house_process import HouseProcess


def test_queue_commands_reach_the_store_of_the_house_that_runs(house: HouseProcess) -> None:
    house.start()
    house.cli("queue", "create", "jobs")
    first = json.loads(house.cli("publish", "jobs", '{"n": 1}', "--json").stdout)
    [taken] = json.loads(house.cli("claim", "jobs", "--lease", "1h", "--json").stdout)
    assert taken["id"] == first["id"]
    assert taken["body"] == {"n": 1}
    lost = house.cli("complete", taken["id"], "wrong", check=False)
    assert lost.returncode == 5
    assert "no longer yours" in lost.stderr
    house.cli("complete", taken["id"], taken["claim_token"])
    missing = house.cli("publish", "nowhere", "1", check=False)
    assert missing.returncode == 4
    assert "nowhere" in missing.stderr


def test_send_waits_for_the_answer_with_and_without_a_house(house: HouseProcess) -> None:
    alone = house.cli("send", "@coder hello", "--wait", "--timeout", "60")
    assert "I have read your message" in alone.stdout
    house.start()
    served = json.loads(house.cli("send", "@coder hello again", "--wait", "--json").stdout)
    assert [reply["agent"] for reply in served["replies"]] == ["coder"]
    same = house.cli("send", "@coder x", "--id", served["messageId"], check=False)
    assert same.returncode == 5
    assert "duplicate" in same.stderr
    waiting = json.loads(house.cli("status", "--json").stdout)
    assert waiting["queue"]["outgoing"] == 0


def test_agents_teams_settings_and_schedules_by_hand(house: HouseProcess) -> None:
    house.cli("agent", "add", "lead", "--name", "Lead", "--provider", "script")
    house.start()
    house.cli("agent", "add", "tester", "--provider", "script")
    house.cli("team", "add", "dev", "lead", "coder", "--leader", "lead")
    house.cli("team", "add-agent", "dev", "tester")
    refused = house.cli("team", "remove-agent", "dev", "lead", check=False)
    assert refused.returncode == 2
    assert "--leader" in refused.stderr
    shown = json.loads(house.cli("team", "show", "dev", "--json").stdout)
    assert shown["agents"] == ["lead", "coder", "tester"]
    house.cli("settings", "set", "models.anthropic.api_key", "sk-secret-000000")
    assert "sk-secret" not in house.cli("settings", "show").stdout
    house.cli("settings", "set", "models.anthropic.model", "opus")
    assert house.home.settings.document()["models"]["anthropic"]["api_key"] == "sk-secret-000000"
    wrong = house.cli("settings", "set", "api.port", "x", check=False)
    assert wrong.returncode == 2
    assert "api.port" in wrong.stderr
    house.cli("schedule", "add", "coder", "report", "--cron", "0 9 * * *", "--label", "daily")
    [schedule] = json.loads(house.cli("schedule", "list", "--json").stdout)
    assert schedule["label"] == "daily"
    gone = house.cli("agent", "show", "ghost", check=False)
    assert gone.returncode == 4
