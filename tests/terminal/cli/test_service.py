"""Keys, rules, reviews, the audit and erasure on the command line."""

import json
from pathlib import Path

import pytest

from tests.terminal.cli.runner import Cli

RULE = {
    "name": "premium",
    "source_queue_id": "orders",
    "expression": 'labels.tier == "premium"',
    "action": {"type": "route", "target_queue_id": "premium"},
}
SPEC = {
    "sections": [
        {"type": "context", "title": "Post", "content": "{{text}}"},
        {"type": "decision", "field": "decision", "options": ["yes", "no"]},
        {"type": "input", "field": "score", "kind": "number"},
    ]
}


def write(folder: Path, document: object) -> str:
    path = folder / "document.json"
    path.write_text(json.dumps(document))
    return str(path)


@pytest.fixture
def shop(cli: Cli) -> Cli:
    for command in ("scope create shop", "queue create shop/orders", "queue create shop/premium"):
        cli.ok(*command.split())
    return cli


def test_a_key_is_made_listed_rotated_and_revoked(shop: Cli) -> None:
    made = shop.json("key", "create", "worker", "--permission", "view", "--scope", "shop", "--expires", "90d")
    assert made["secret"].startswith("prk_")
    [listed] = shop.json("key", "list")
    assert "secret" not in listed
    assert (listed["id"], listed["permissions"], listed["scope"]) == (made["id"], ["view"], "shop")
    rotated = shop.json("key", "rotate", made["id"][:8])
    assert rotated["secret"] != made["secret"]
    assert shop.json("key", "revoke", made["id"])["revoked_at"]
    assert "revoked" in shop.ok("key", "list").out
    assert shop("key", "rotate", made["id"]).code == 2


def test_a_key_that_may_nothing_is_refused(shop: Cli) -> None:
    assert "needs a --permission" in shop("key", "create", "x").err
    assert "is none of" in shop("key", "create", "x", "--permission", "fly").err
    assert "no scope" in shop("key", "create", "x", "--permission", "view", "--scope", "nowhere").err


def test_a_rule_is_tried_added_acts_rests_and_is_removed(shop: Cli, tmp_path: Path) -> None:
    file = write(tmp_path, RULE)
    shop.publish("shop/orders", "1", "--label", "tier=premium")
    [tried] = shop.json("rule", "test", file, "--scope", "shop")
    assert (tried["rule"], tried["queue"]) == ("premium", "orders")
    made = shop.json("rule", "add", file, "--scope", "shop")
    assert made["action"]["target_queue"] == "shop/premium"
    shop.publish("shop/orders", "2", "--label", "tier=premium")
    assert shop.json("claim", "shop/premium")[0]["body"] == 2
    shop.ok("rule", "disable", made["id"], "--scope", "shop")
    shop.publish("shop/orders", "3", "--label", "tier=premium")
    assert shop.json("claim", "shop/premium") == []
    shop.ok("rule", "enable", made["id"][:6], "--scope", "shop")
    assert "premium" in shop.ok("rule", "list", "--scope", "shop").out
    assert '"route"' in shop.ok("rule", "show", made["id"], "--scope", "shop").out
    shop.ok("rule", "remove", made["id"], "--scope", "shop")
    assert shop.json("rule", "list", "--scope", "shop") == []


def test_a_rule_that_makes_no_sense_is_refused_with_the_field(shop: Cli, tmp_path: Path) -> None:
    for change, told in (
        ({"expression": "labels.tier =="}, "expression"),
        ({"action": {"type": "route", "target_queue_id": "nowhere"}}, "target_queue_id"),
        ({"colour": "red"}, "colour"),
    ):
        done = shop("rule", "add", write(tmp_path, {**RULE, **change}), "--scope", "shop")
        assert (done.code, told in done.err) == (2, True), done.err


def test_a_review_is_listed_shown_and_answered_once(shop: Cli, tmp_path: Path) -> None:
    file = write(tmp_path, SPEC)
    shop.ok("review", "pattern", "add", "ask", "1.0", file, "--scope", "shop")
    assert shop("review", "pattern", "add", "ask", "1.0", file, "--scope", "shop").code == 5
    [pattern] = shop.json("review", "pattern", "list", "--scope", "shop")
    assert pattern["version"] == "1.0"
    seen = shop.json(
        "review", "pattern", "preview", "ask", "--parameters", '{"text": "hi"}', "--scope", "shop"
    )
    assert seen["sections"][0]["content"] == "hi"
    spec = json.dumps({"pattern": "ask", "parameters": {"text": "hello"}})
    message = shop.publish("shop/orders", "1", "--hitl-spec", spec)
    [waiting] = shop.json("review", "list", "--scope", "shop")
    assert waiting["id"] == message
    assert "hello" in shop.ok("review", "show", message).out
    assert shop("review", "answer", message, "decision=maybe").code == 2
    shop.ok("review", "answer", message, "decision=yes", "score=7")
    again = shop("review", "answer", message, "decision=no")
    assert (again.code, "answered already" in again.err) == (5, True)
    shown = shop.json("review", "show", message)
    assert shown["decided"]["answer"] == {"decision": "yes", "score": 7}
    assert "Nothing waits" in shop.ok("review", "list", "--scope", "shop").out


def test_completing_a_review_at_the_shell_is_answering_it(shop: Cli) -> None:
    spec = json.dumps({"sections": [{"type": "decision", "options": ["yes", "no"]}]})
    message = shop.publish("shop/orders", "1", "--hitl-spec", spec)
    _, token = shop.claim("shop/orders")
    refused = shop("complete", message, token, "--result", '{"foo": 1}')
    assert (refused.code, "nobody asked for" in refused.err) == (2, True)
    assert shop.json("show", message)["state"] == "claimed"
    shop.ok("complete", message, token, "--result", '{"decision": "no"}')
    assert shop.json("review", "show", message)["decided"]["answer"] == {"decision": "no"}


def test_erasure_counts_asks_and_erases(shop: Cli) -> None:
    message = shop.publish("shop/orders", '{"mail": "ann@example.org"}')
    what = ("erase", "body.mail", "ann@example.org", "--scope", "shop")
    assert shop.json(*what, "--dry-run")["found"] == 1
    assert shop(*what, stdin=b"n\n").code != 0
    assert shop.json("show", message)["body"] == {"mail": "ann@example.org"}
    done = shop.json(*what, "--yes")
    assert (done["status"], done["erased"]) == ("completed", 1)
    assert shop.json("show", message)["body"] == {"erased": True}
    for file in shop.home.glob("postroom.db*"):
        assert b"ann@example.org" not in file.read_bytes(), f"it is still in {file.name}"


def test_the_audit_of_a_new_room_is_empty(shop: Cli) -> None:
    assert shop.json("audit", "list", "--scope", "shop") == []
    assert "no calls" in shop.ok("audit", "list").out
