"""An office of TinyAGI or TinyClaw is taken over whole, twice without a second copy, and stays as it was."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.api.house import House, opened
from tests.office.imports import installations
from tests.office.imports.installations import NOW, fingerprint, insert, mail


@pytest.fixture
async def still(tmp_path: Path) -> AsyncIterator[House]:
    """A house whose agents do not work, with what its owner uses."""
    async with opened(tmp_path, works=False) as house:
        yield house


async def move(house: House, home: Path, *, dry_run: bool = False, kind: str = "tinyagi") -> dict[str, Any]:
    body = {"kind": kind, "folder": str(home), "dryRun": dry_run}
    answer = await house.http.post("/api/import", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _text(path: str) -> str:
    return Path(path).read_text()


async def get(house: House, path: str) -> Any:
    answer = await house.http.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_dry_run_tells_what_would_come_and_changes_nothing(still: House, tmp_path: Path) -> None:
    home = installations.head(tmp_path)
    source = fingerprint(home, tmp_path / "their-work")
    ours = fingerprint(tmp_path / "work") if (tmp_path / "work").exists() else None
    settings = still.settings.path.read_bytes()
    before = (await still.room.head()).seq
    plan = await move(still, home, dry_run=True)
    assert (plan["agents"], plan["teams"], plan["moved"]) == (["writer", "editor"], ["press"], {})
    assert plan["found"] == {
        "agents": 2,
        "teams": 1,
        "workspaces": 2,
        "open messages": 6,
        "dead messages": 1,
        "answers not delivered": 1,
        "history": 2,
        "posts in team rooms": 3,
        "pairings": 1,
        "schedules": 4,
        "projects": 1,
        "tasks": 3,
        "comments": 1,
    }
    assert any("6 open messages" in note for note in plan["notes"])
    assert any("files" in note and "copied" in note for note in plan["notes"])
    assert (await still.room.head()).seq == before
    assert still.settings.path.read_bytes() == settings
    assert (fingerprint(tmp_path / "work") if (tmp_path / "work").exists() else None) == ours
    assert fingerprint(home, tmp_path / "their-work") == source


async def test_everything_is_taken_over_once_and_the_source_stays(still: House, tmp_path: Path) -> None:
    home = installations.head(tmp_path)
    before = fingerprint(home, tmp_path / "their-work")
    done = await move(still, home)
    assert done["moved"] == {
        "agents": 2,
        "teams": 1,
        "workspaces": 2,
        "open messages": 6,
        "dead messages": 1,
        "answers not delivered": 1,
        "history": 1,
        "posts in team rooms": 3,
        "conversations as files": 0,
        "pairings": 1,
        "schedules": 1,
        "projects": 1,
        "tasks": 3,
        "comments": 1,
    }
    again = await move(still, home)
    assert not any(again["moved"].values()), again["moved"]
    assert fingerprint(home, tmp_path / "their-work") == before
    assert [name for name in os.listdir(home) if name.endswith(("-wal", "-shm"))] == []


async def test_agents_come_with_their_folders_and_settings(still: House, tmp_path: Path) -> None:
    home = installations.head(tmp_path)
    await move(still, home)
    agents = await get(still, "/api/agents")
    assert agents["writer"]["working_directory"] == str(tmp_path / "work" / "writer")
    assert agents["writer"]["heartbeat"] == {"enabled": True, "interval": 900}
    folder = tmp_path / "work" / "writer"
    assert (folder / "memory" / "facts.md").read_text() == "The moon is far.\n"
    assert (folder / ".tinyagi" / "SOUL.md").read_text() == "Kind.\n"
    assert "# My own rules" in (folder / "AGENTS.md").read_text()
    assert (folder / ".claude" / "skills").is_symlink()
    assert not (folder / "reset_flag").exists()
    stored = still.settings.document()
    assert stored["channels"]["telegram"]["bot_token"] == "1234567:secret"
    assert stored["channels"]["enabled"] == ["telegram"]
    assert "discord" not in stored["channels"], "a placeholder is no token"
    assert stored["channels"]["defaults"] == {"42": "writer"}
    assert stored["models"]["anthropic"] == {"model": "opus", "api_key": "sk-theirs"}
    assert "sk-theirs" not in (await still.http.get("/api/settings")).text
    assert stored["custom_providers"]["local"]["base_url"] == "http://127.0.0.1:1"
    assert stored["default_agent"] == "writer", "theirs answers, not the one that only echoes"


async def test_mail_keeps_its_addressee_its_sender_and_its_end(still: House, tmp_path: Path) -> None:
    home = installations.head(tmp_path)
    done = await move(still, home)
    counted = await get(still, "/api/queue/status")
    assert (counted["incoming"], counted["dead"]) == (6, 1)
    [dead] = await get(still, "/api/queue/dead")
    assert (dead["data"]["message"], dead["failedReason"]) == ("@writer hopeless", "boom") or (
        dead["data"]["message"],
        dead["failedReason"],
    ) == ("hopeless", "boom")
    page = await still.room.messages(scope="office", message_type="office.mail", limit=100)
    found = {m.correlation_id: (m.agent, m.body["text"], m.body["team"]) for m in page.messages}
    assert found["telegram:telegram_00000001"] == ("writer", "waiting", None)
    assert found["telegram:telegram_00000007"] == ("writer", "@ghost hello", None)
    assert found["telegram:telegram_00000008"] == ("writer", "plan", "press")
    assert any("ghost" in note for note in done["notes"])
    notes = await still.room.messages(scope="office", message_type="office.note", limit=10)
    assert [(m.agent, m.from_agent) for m in notes.messages] == [("editor", "writer")]
    sent_again = {"message": "@writer waiting", "channel": "telegram", "messageId": "telegram_00000001"}
    assert (await still.http.post("/api/message", json=sent_again)).status_code == 409


async def test_a_dead_letter_can_be_sent_back_and_stays_so(still: House, tmp_path: Path) -> None:
    home = installations.head(tmp_path)
    await move(still, home)
    [dead] = await get(still, "/api/queue/dead")
    assert (await still.http.post(f"/api/queue/dead/{dead['id']}/retry")).status_code == 200
    assert (await get(still, "/api/queue/status"))["incoming"] == 7
    await move(still, home)
    assert (await get(still, "/api/queue/status"))["dead"] == 0


async def test_answers_not_delivered_wait_for_their_channel_with_their_files(
    still: House, tmp_path: Path
) -> None:
    home = installations.head(tmp_path)
    done = await move(still, home)
    [answer] = await get(still, "/api/responses/pending?channel=telegram")
    assert (answer["message"], answer["senderId"], answer["messageId"]) == (
        "an answer",
        "42",
        "telegram_00000005",
    )
    [file] = answer["files"]
    assert os.path.dirname(file) == str(still.home / "files")
    assert _text(file) == "the plan"
    assert any("not to be had" in note for note in done["notes"]), "files from elsewhere stay where they are"
    assert await get(still, "/api/responses/pending?channel=web") == []


async def test_what_was_said_is_shown_with_its_times(still: House, tmp_path: Path) -> None:
    home = installations.head(tmp_path)
    await move(still, home)
    history = await get(still, "/api/agents/writer/messages")
    told = sorted((row["created_at"], row["role"], row["content"]) for row in history)
    assert told[0] == (NOW + 1, "user", "@writer done")
    assert (NOW + 5, "assistant", "an answer") in told, "as the answer that is still to be delivered"


async def test_what_is_still_open_is_once_in_the_history_with_its_time_id_and_attempts(
    still: House, tmp_path: Path
) -> None:
    home = installations.head(tmp_path)
    db = apsw.Connection(str(home / "tinyagi.db"))
    db.execute("UPDATE messages SET retry_count = 3 WHERE id IN (1, 4)")
    for number, text in ((1, "@writer waiting"), (4, "@writer hopeless")):
        line = {"agent_id": "writer", "role": "user", "channel": "telegram", "sender": "Bob"}
        told = {"message_id": f"telegram_{number:08}", "content": text, "created_at": NOW + number}
        installations.insert(db, "agent_messages", **line, **told)
    db.close()
    await move(still, home)
    history = await get(still, "/api/agents/writer/messages")
    said = [(row["message_id"], row["created_at"]) for row in history if row["role"] == "user"]
    assert len(said) == len(set(said))
    for number in (1, 4):
        assert said.count((f"telegram_{number:08}", NOW + number)) == 1
    page = await still.room.messages(scope="office", message_type="office.mail", limit=100)
    [waiting] = [each for each in page.messages if each.correlation_id == "telegram:telegram_00000001"]
    origin = {"id": 1, "created_at": NOW + 1, "status": "pending", "attempts": 3}
    assert (waiting.metadata or {})["import"] == origin
    [dead] = await get(still, "/api/queue/dead")
    assert (dead["attemptsMade"], dead["timestamp"]) == (3, NOW + 4)


async def test_unknown_settings_are_kept_and_what_is_not_taken_over_is_listed(
    still: House, tmp_path: Path
) -> None:
    monitoring = {"heartbeat_interval": 3600, "pager": "+49 30 1"}
    home = installations.head(tmp_path, sounds={"bell": True}, monitoring=monitoring, limits={"x": 1})
    db = apsw.Connection(str(home / "tinyagi.db"))
    db.execute("CREATE TABLE moods (agent TEXT, mood TEXT)")
    db.execute("INSERT INTO moods VALUES ('writer', 'fine')")
    db.close()
    (home / "logs").mkdir()
    (home / "whatsapp-session").mkdir()
    planned = (await move(still, home, dry_run=True))["notes"]
    done = await move(still, home)
    document = json.loads(still.settings.path.read_text())
    assert document["sounds"] == {"bell": True}
    assert document["monitoring"]["pager"] == "+49 30 1"
    listed = [note for note in done["notes"] if note.startswith("not taken over: ")]
    for missing in ("the table moods (1 rows)", str(home / "whatsapp-session"), str(home / "logs"), "limits"):
        assert any(missing in note for note in listed), (missing, listed)
        assert any(missing in note for note in planned), "and before anything is done"
    assert any("1 messages that are done" in note for note in listed)
    assert not any(name in note for note in listed for name in ("settings.json", "tinyagi.db", "tasks.db"))


async def test_posts_of_team_rooms_are_shown_before_those_made_here(still: House, tmp_path: Path) -> None:
    home = installations.head(tmp_path)
    await move(still, home)
    assert (await still.http.post("/api/chatroom/press", json={"message": "new"})).status_code == 200
    rows = await get(still, "/api/chatroom/press")
    assert [(row["from_agent"], row["message"]) for row in rows] == [
        ("user", "new"),
        ("editor", "fine"),
        ("user", "hello back"),
        ("writer", "hello all"),
    ]
    assert rows[1]["created_at"] == NOW + 3
    assert [row["message"] for row in await get(still, "/api/chatroom/press?limit=2")] == ["new", "fine"]
    since = min(row["id"] for row in rows)
    after = await get(still, f"/api/chatroom/press?since={since}")
    assert [row["message"] for row in after] == ["hello back", "fine", "new"]
    assert await get(still, f"/api/chatroom/press?since={max(row['id'] for row in rows)}") == []
    assert (await get(still, "/api/queue/status"))["incoming"] == 6, "posts of the past wait for nobody"


async def test_tasks_keep_ids_numbers_and_columns(still: House, tmp_path: Path) -> None:
    home = installations.head(tmp_path)
    mine = (await still.http.post("/api/tasks", json={"title": "mine"})).json()["task"]
    assert mine["identifier"] == "T-1"
    await move(still, home)
    tasks = {task["id"]: task for task in await get(still, "/api/tasks")}
    assert tasks["task_a"]["identifier"] == "ALP-7"
    assert (tasks["task_a"]["status"], tasks["task_a"]["assignee"]) == ("todo", "writer")
    assert tasks["task_b"]["assignee"] == ""
    assert tasks["task_c"]["identifier"] == "T-2", "T-1 is taken here"
    [comment] = await get(still, "/api/tasks/task_a/comments")
    assert (comment["id"], comment["author"], comment["content"]) == ("cmt_a", "Ann", "nice")
    made = (await still.http.post("/api/tasks", json={"title": "next", "projectId": "proj_a"})).json()
    assert made["task"]["identifier"] == "ALP-10"


async def test_what_was_removed_here_does_not_come_back(still: House, tmp_path: Path) -> None:
    home = installations.head(tmp_path)
    await move(still, home)
    for path in ("/api/tasks/task_c", "/api/pairing/telegram/42", "/api/schedules/daily"):
        assert (await still.http.delete(path)).status_code == 200
    again = await move(still, home)
    assert not any(again["moved"].values()), again["moved"]
    assert (await get(still, "/api/pairing"))["approved"] == []


async def test_what_is_here_already_stays_as_it_is(still: House, tmp_path: Path) -> None:
    agents = {
        "coder": {"name": "Other", "provider": "openai", "model": "x"},
        "dev": {"name": "Dev", "provider": "openai", "model": "x"},
    }
    teams = {"dev": {"name": "D", "agents": ["coder"], "leader_agent": "coder"}}
    home = installations.head(tmp_path, agents=agents, teams=teams)
    done = await move(still, home)
    found = await get(still, "/api/agents")
    assert found["coder"]["name"] == "Coder"
    assert "dev" not in found, "a team here is called so"
    assert (await get(still, "/api/teams"))["dev"]["name"] == "Dev"
    told = " ".join(done["notes"])
    assert "@coder is here already" in told
    assert "the agent dev is left out" in told


@pytest.mark.parametrize("kind", ["tinyagi", "tinyclaw"])
async def test_a_tinyclaw_with_a_database_is_taken_over(still: House, tmp_path: Path, kind: str) -> None:
    home = installations.g1(tmp_path)
    before = fingerprint(home)
    done = await move(still, home, kind=kind)
    moved = done["moved"]
    assert {name: moved[name] for name in ("open messages", "dead messages", "history", "tasks")} == {
        "open messages": 2,
        "dead messages": 1,
        "history": 2,
        "tasks": 2,
    }
    assert moved["conversations as files"] == 1
    [chat] = await get(still, "/api/chats")
    assert chat["teamId"] == "press"
    page = await still.room.messages(scope="office", message_type="office.mail", limit=100)
    waiting = next(m for m in page.messages if m.correlation_id == "telegram:telegram_00000001")
    assert waiting.body["text"] == "[telegram/Bob]: waiting\n\n[file: /tmp/a.png]"
    tasks = {task["title"]: task for task in await get(still, "/api/tasks")}
    assert (tasks["old task"]["assignee"], tasks["old task"]["assigneeType"]) == ("press", "team")
    assert tasks["odd task"]["status"] == "backlog"
    again = await move(still, home, kind=kind)
    assert not any(again["moved"].values()), again["moved"]
    assert fingerprint(home) == before


async def test_a_tinyclaw_of_files_is_taken_over(still: House, tmp_path: Path) -> None:
    home = installations.g0(tmp_path)
    before = fingerprint(home, tmp_path / "their-work")
    # Whoever names the folder it was run from means the one inside.
    done = await move(still, tmp_path, kind="tinyclaw")
    assert done["source"] == str(home)
    assert done["agents"] == ["default"]
    assert done["moved"]["open messages"] == 4
    assert done["moved"]["answers not delivered"] == 1
    told = " ".join(done["notes"])
    assert "queue/incoming/half.json" in told or "files of the queue" in told
    assert "empty.json" in told
    page = await still.room.messages(scope="office", queue="office/inbox/default", limit=100)
    assert [m.body["text"].splitlines()[0] for m in page.messages] == [
        "repaired",
        "in hand",
        "first",
        "second",
    ]
    assert (tmp_path / "work" / "default" / "memory" / "facts.md").exists()
    stored = still.settings.document()
    assert stored["channels"]["discord"]["bot_token"] == "d-token"
    assert (await get(still, "/api/agents"))["default"]["model"] == "opus"
    again = await move(still, home, kind="tinyclaw")
    assert not any(again["moved"].values()), again["moved"]
    assert fingerprint(home, tmp_path / "their-work") == before


async def test_the_settings_of_the_very_first_one_are_understood(still: House, tmp_path: Path) -> None:
    home = tmp_path / ".tinyclaw"
    home.mkdir()
    found = {"channel": "both", "model": "opus", "discord_bot_token": "d", "heartbeat_interval": 500}
    (home / "settings.json").write_text(json.dumps(found))
    done = await move(still, home, kind="tinyclaw")
    stored = still.settings.document()
    assert stored["channels"]["enabled"] == ["discord", "whatsapp"]
    assert stored["channels"]["discord"]["bot_token"] == "d"
    assert any("500" in note for note in done["notes"]), "heartbeats cost money, so they stay off"


async def test_an_installation_that_moved_is_known_again(still: House, tmp_path: Path) -> None:
    home = installations.head(tmp_path)
    await move(still, home)
    moved = home.rename(tmp_path / "elsewhere")
    again = await move(still, moved)
    assert not any(again["moved"].values()), again["moved"]


async def test_what_came_since_is_added(still: House, tmp_path: Path) -> None:
    home = installations.head(tmp_path)
    await move(still, home)
    db = apsw.Connection(str(home / "tinyagi.db"))
    insert(db, "messages", **mail(50, "@writer later", agent="writer"))
    insert(db, "chat_messages", team_id="press", from_agent="user", message="later", created_at=NOW + 50)
    db.close()
    again = await move(still, home)
    assert {name: count for name, count in again["moved"].items() if count} == {
        "open messages": 1,
        "posts in team rooms": 1,
    }


async def test_a_source_at_work_is_read_and_not_touched(still: House, tmp_path: Path) -> None:
    home = installations.head(tmp_path)
    writer = apsw.Connection(str(home / "tinyagi.db"))
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    insert(writer, "messages", **mail(60, "@writer only in the log", agent="writer"))
    (home / "tinyagi.pid").write_text(f"{os.getpid()}\n")
    try:
        assert (home / "tinyagi.db-wal").stat().st_size > 0
        before = fingerprint(home)
        done = await move(still, home)
        assert fingerprint(home) == before
        assert done["moved"]["open messages"] == 7, "what is committed only in the log comes too"
        told = " ".join(done["notes"])
        assert f"process {os.getpid()}" in told
        assert still.settings.document()["channels"].get("enabled") in (None, []), "both would answer"
        insert(writer, "messages", **mail(61, "@writer it still can write", agent="writer"))
    finally:
        writer.close()


async def test_a_long_history_comes_in_parts_and_once(still: House, tmp_path: Path) -> None:
    home = installations.head(tmp_path)
    db = apsw.Connection(str(home / "tinyagi.db"))
    db.execute(
        """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
        INSERT INTO agent_messages (agent_id, role, channel, sender, message_id, content, created_at)
        SELECT 'writer', iif(i % 2, 'user', 'assistant'), 'web', 'W', 'm' || i, 'line ' || i, ? + i FROM n""",
        (NOW + 1000,),
    )
    db.close()
    done = await move(still, home)
    assert done["moved"]["history"] == 5001
    assert not any((await move(still, home))["moved"].values())
    rows = await get(still, "/api/agents/writer/messages?limit=1000")
    assert [row["content"] for row in rows if row["channel"] == "web"][:2] == ["line 5000", "line 4999"]


async def test_a_folder_without_an_installation_is_told(still: House, tmp_path: Path) -> None:
    for kind in ("tinyagi", "tinyclaw"):
        body = {"kind": kind, "folder": str(tmp_path / "nothing"), "dryRun": True}
        answer = await still.http.post("/api/import", json=body)
        assert answer.status_code == 404
        assert "nothing" in answer.json()["error"]


async def test_a_damaged_database_stops_nothing_else(still: House, tmp_path: Path) -> None:
    home = installations.head(tmp_path)
    (home / "tinyagi.db").write_bytes(b"not a database" * 100)
    (home / "pairing.json").write_text('{"approved": [')
    done = await move(still, home)
    assert done["moved"]["agents"] == 2
    assert done["moved"]["tasks"] == 3
    told = " ".join(done["notes"])
    assert "database cannot be read" in told
    assert "pairing.json is damaged" in told


async def test_a_database_damaged_in_the_middle_gives_what_it_has(still: House, tmp_path: Path) -> None:
    home = installations.head(tmp_path)
    db = apsw.Connection(str(home / "tinyagi.db"))
    for number in range(300):
        text = "x" * 2000
        insert(
            db, "chat_messages", team_id="press", from_agent="writer", message=text, created_at=NOW + number
        )
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    data = bytearray((home / "tinyagi.db").read_bytes())
    data[len(data) - 8 * 4096 : len(data) - 4096] = b"\xff" * (7 * 4096)
    (home / "tinyagi.db").write_bytes(data)
    done = await move(still, home)
    assert any("damaged" in note for note in done["notes"]), done["notes"]
    assert done["moved"]["agents"] == 2


async def test_missing_tables_and_columns_are_no_harm(still: House, tmp_path: Path) -> None:
    home = installations.head(tmp_path)
    db = apsw.Connection(str(home / "tinyagi.db"))
    for sql in (
        "DROP TABLE agent_messages",
        "DROP TABLE responses",
        "DROP TABLE chat_messages",
        "DROP INDEX idx_msg_status",
        "ALTER TABLE messages DROP COLUMN sender_id",
        "ALTER TABLE messages DROP COLUMN last_error",
    ):
        db.execute(sql)
    db.close()
    done = await move(still, home)
    assert done["moved"]["open messages"] == 6
    assert done["moved"]["history"] == 1, "what was done is all the history there is"


async def test_wrong_types_are_left_out_field_by_field(still: House, tmp_path: Path) -> None:
    agents = {
        "writer": {"name": 5, "provider": "anthropic", "model": ["x"], "heartbeat": "often"},
        "../../etc": {"name": "Trick", "provider": "anthropic", "model": "opus"},
        "Big One": {"name": "Big", "provider": "anthropic", "model": "opus", "working_directory": "../../x"},
        "odd": "not an object",
        "": {"name": "Nameless"},
    }
    teams = {"press": {"name": "P", "agents": ["writer", 7, "gone"], "leader_agent": 3}, "t": {"agents": "x"}}
    home = installations.head(
        tmp_path,
        agents=agents,
        teams=teams,
        models="opus",
        channels=["telegram"],
        monitoring={"heartbeat_interval": []},
    )
    (home / "schedules.json").write_text('{"no": "list"}')
    (home / "pairing.json").write_text('["no object"]')
    db = apsw.Connection(str(home / "tinyagi.db"))
    db.execute("PRAGMA ignore_check_constraints = ON")
    insert(db, "messages", **mail(70, "", agent="writer"))
    insert(db, "messages", **{**mail(71, "x"), "created_at": "yesterday", "sender": 12, "agent": b"\xff\xfe"})
    db.execute("UPDATE messages SET message = CAST(x'66ff66' AS TEXT) WHERE message_id = 'telegram_00000001'")
    db.close()
    done = await move(still, home)
    found = await get(still, "/api/agents")
    assert found["writer"]["provider"] == "anthropic"
    assert found["etc"]["working_directory"] == str(tmp_path / "work" / "etc")
    assert found["big-one"]["working_directory"] == str(tmp_path / "work" / "big-one")
    assert (await get(still, "/api/teams"))["press"]["agents"] == ["writer"]
    told = " ".join(done["notes"])
    for field in ("agents.writer.name", "agents.writer.model", "agents.odd", "the team t is left out"):
        assert field in told, field
    assert "1 of the messages cannot be used" in told
    page = await still.room.messages(scope="office", correlation_id="telegram:telegram_00000001", limit=1)
    assert page.messages[0].body["text"] == "f\ufffdf"


async def test_a_folder_that_leads_elsewhere_is_not_copied(still: House, tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere"
    secret.mkdir()
    (secret / "key").write_text("private")
    agents = {
        "linked": {"name": "L", "provider": "anthropic", "model": "opus"},
        "pointed": {"name": "P", "provider": "anthropic", "model": "m", "working_directory": str(secret)},
    }
    home = installations.head(tmp_path, agents=agents, teams={})
    (tmp_path / "their-work" / "linked").symlink_to(secret)
    done = await move(still, home)
    assert not (tmp_path / "work" / "linked" / "key").exists()
    agents = await get(still, "/api/agents")
    assert agents["pointed"]["working_directory"] == str(secret), "a person pointed it there"
    assert any("goes on working in" in note for note in done["notes"])
