"""A home that an earlier version left behind opens, says the same, works on, and goes on in its lake."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.app.house_process import HouseProcess

HOMES = sorted(Path(__file__).parent.glob("*.tar.xz"))


class OldHome:
    """As `make.py` left it, and what that version said of it."""

    def __init__(self, archive: Path, folder: Path) -> None:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        self.facts: dict[str, Any] = json.loads((folder / "home" / "facts.json").read_text())
        self.process = HouseProcess.at(folder / "home")
        # Its agents work in the folder of whoever runs the tests, which is not theirs alone.
        self.process.env["HOME"] = str(folder)

    def json(self, *words: str) -> Any:
        return json.loads(self.process.cli(*words, "--json").stdout)

    def messages(self) -> dict[str, list[Any]]:
        found = self.json("list", "--deliveries", "--limit", "1000")["messages"]
        return {each["id"]: [each["queue"], each["state"], each["attempts"]] for each in found}

    def http(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.process.url, headers=self.process.headers, timeout=60)


@pytest.fixture(params=HOMES, ids=lambda path: path.name.partition(".")[0])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OldHome]:
    found = OldHome(request.param, tmp_path)
    yield found
    found.process.end()


def test_there_are_old_homes() -> None:
    assert HOMES


def test_it_says_of_itself_what_the_earlier_version_said(home: OldHome) -> None:
    assert home.json("ledger", "head") == home.facts["head"]
    assert home.messages() == home.facts["messages"]
    verified = home.process.cli("ledger", "verify").stdout
    assert f"The ledger is whole: {home.facts['head']['seq']} events" in verified


def test_the_office_works_on(home: OldHome) -> None:
    home.process.start()
    with home.http() as http:
        again = {"message": "@coder wait", "sender": "Ann", "channel": "web", "messageId": "m-3"}
        assert http.post("/api/message", json=again).status_code == 409, "it was taken in before"
        assert http.post("/api/guards/resume-all").status_code == 200
        asked = home.process.cli("send", "@dev the login is broken", "--wait").stdout
        assert "I ask both." in asked
        [task] = http.get("/api/tasks").json()
        assert task["title"] == "Write the notes"
        [comment] = http.get(f"/api/tasks/{task['id']}/comments").json()
        assert comment["content"] == "Half done."
        [project] = http.get("/api/projects").json()
        assert (project["name"], task["projectId"]) == ("Release", project["id"])
        [schedule] = http.get("/api/schedules").json()
        assert (schedule["label"], schedule["cron"]) == ("news", "0 9 * * 1-5")
        [dead] = http.get("/api/queue/dead").json()
        assert http.post(f"/api/queue/dead/{dead['id']}/retry").status_code == 200
        assert "We ship on Friday." in http.get("/api/chatroom/dev").text
    home.process.cli("stop")
    now = home.messages()
    [held] = [key for key, (_, state, _) in home.facts["messages"].items() if _is_held(key, state, home)]
    assert now[held][1] == "completed", "what was held was answered"
    assert "The ledger is whole" in home.process.cli("ledger", "verify").stdout


def _is_held(key: str, state: str, home: OldHome) -> bool:
    queue, _, _ = home.facts["messages"][key]
    return state == "delayed" and queue.startswith("office/inbox/")


def test_the_work_queue_works_on(home: OldHome) -> None:
    home.process.start()
    with home.http() as http:

        def ask(method: str, path: str, body: Any = None) -> Any:
            answer = http.request(method, path, json=body)
            assert answer.status_code < 300, f"{method} {path}: {answer.text}"
            return answer.json()["data"]

        [scope] = [each for each in ask("GET", "/v1/scopes") if each["slug"] == "shop"]
        shop = f"/v1/scopes/{scope['id']}"
        orders = f"{shop}/queues/orders"

        def publish(body: dict[str, Any]) -> Any:
            return ask("POST", orders + "/messages", body)

        kept = {key for key, (queue, *_) in home.facts["messages"].items() if queue == "shop/orders"}
        same = {"body": {"order": 10}, "idempotency_key": "order-10", "correlation_id": "o-10"}
        assert publish(same)["id"] in kept
        moved = {"body": {"order": 11}, "labels": {"tier": "premium"}, "idempotency_key": "order-11"}
        assert publish(moved)["id"] in home.facts["messages"], "its key is known where it came from"
        rich = publish({"body": {"order": 13}, "labels": {"tier": "premium"}})
        urgent = ask("GET", shop + "/queues/urgent")["id"]
        assert ask("GET", f"{shop}/messages/{rich['id']}")["queue_id"] == urgent, "the rule acts"
        [held] = ask("POST", orders + "/claim", {})
        done = {"claim_token": held["claim_token"], "result": {"paid": True}}
        ask("POST", f"{shop}/messages/{held['id']}/complete", done)
        [review] = ask("GET", shop + "/reviews")
        ask("POST", f"{shop}/messages/{review['id']}/review", {"answer": {"decision": "reject"}})
        [stream] = ask("GET", shop + "/streams")
        chunks = ask("GET", f"{shop}/streams/{stream['id']}/chunks")
        assert "".join(each["data"] for each in chunks) == "Dear Ann"
        for noun, count in (
            ("/v1/tenants", 1),
            ("/v1/api-keys", 2),
            ("/v1/webhooks", 1),
            ("/v1/iam/custom-roles", 1),
            (shop + "/schemas", 1),
            (shop + "/subscriptions", 1),
            (shop + "/routing-rules", 1),
            (shop + "/api-keys", 1),
            (shop + "/grants", 1),
            (shop + "/trusts", 1),
            (shop + "/gdpr-jobs", 1),
            (orders + "/acl", 1),
        ):
            assert len(ask("GET", noun)) == count, noun
        kinds = {entry["event_type"] for entry in ask("GET", shop + "/audit?limit=100")}
        assert len(kinds) > 10
    home.process.cli("stop")
    assert "The ledger is whole" in home.process.cli("ledger", "verify").stdout


@pytest.mark.xdist_group("spark")
def test_the_lake_goes_on_where_it_was(home: OldHome) -> None:
    before = home.json("pipeline", "status")
    assert before["position"] == home.facts["in_lake"]
    ran = home.json("pipeline", "run")
    assert ran["events"] == before["head"] - before["position"], "only what is new"
    after = home.json("pipeline", "status")
    assert (after["position"], after["behind"], after["quarantined"]) == (after["head"], 0, 0)
    found = home.process.cli("history", "search", "hello").stdout
    assert "done: hello" in found
    found = home.process.cli("history", "search", "lake yet").stdout
    assert "what is not in the lake yet?" in found
