"""What the guards stopped is seen and decided from a shell, also where no house runs."""

from tests.terminal.cli.runner import Cli


def test_everybody_pauses_and_goes_on(cli: Cli) -> None:
    assert cli.json("guards", "pause-all") == {"ok": True, "changed": True}
    assert cli.json("guards", "list")["paused"] is True
    assert "Everybody pauses" in cli("guards", "list").out
    cli.ok("guards", "resume-all")
    assert cli.json("guards", "list")["paused"] is False


def test_a_budget_is_raised_and_takes_nothing_but_money(cli: Cli) -> None:
    account = cli.json("guards", "list")["budgets"][0]["account"]
    refused = cli("guards", "raise", account, "500", "--hops", "3")
    assert refused.code != 0
    assert "money only" in refused.err
    cli.ok("guards", "raise", account, "500")
    assert cli.json("guards", "list")["budgets"][0]["limit"] == 500_000_000


def test_a_conversation_that_never_was_is_refused_by_name(cli: Cli) -> None:
    refused = cli("guards", "continue", "web:17")
    assert refused.code != 0
    assert "web:17" in refused.err
