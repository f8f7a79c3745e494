"""Installations of the other program as it left them on the disk, one of each generation."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import apsw

NOW = 1_772_000_000_000

HEAD_TABLES = """
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT NOT NULL UNIQUE,
  channel TEXT NOT NULL, sender TEXT NOT NULL, sender_id TEXT, message TEXT NOT NULL, agent TEXT,
  from_agent TEXT, status TEXT NOT NULL DEFAULT 'pending', retry_count INTEGER NOT NULL DEFAULT 0,
  last_error TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
CREATE INDEX idx_msg_status ON messages (status, agent, created_at);
CREATE TABLE responses (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT NOT NULL,
  channel TEXT NOT NULL, sender TEXT NOT NULL, sender_id TEXT, message TEXT NOT NULL,
  original_message TEXT NOT NULL, agent TEXT, files TEXT, metadata TEXT,
  status TEXT NOT NULL DEFAULT 'pending', created_at INTEGER NOT NULL, acked_at INTEGER);
CREATE TABLE chat_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, team_id TEXT NOT NULL,
  from_agent TEXT NOT NULL, message TEXT NOT NULL, created_at INTEGER NOT NULL);
CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL,
  role TEXT NOT NULL, channel TEXT NOT NULL, sender TEXT NOT NULL, message_id TEXT NOT NULL,
  content TEXT NOT NULL, created_at INTEGER NOT NULL);
"""
G1_TABLES = """
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT NOT NULL UNIQUE,
  channel TEXT NOT NULL, sender TEXT NOT NULL, sender_id TEXT, message TEXT NOT NULL, agent TEXT, files TEXT,
  conversation_id TEXT, from_agent TEXT, status TEXT NOT NULL DEFAULT 'pending',
  retry_count INTEGER NOT NULL DEFAULT 0, last_error TEXT, created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, claimed_by TEXT);
CREATE TABLE responses (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT NOT NULL,
  channel TEXT NOT NULL, sender TEXT NOT NULL, sender_id TEXT, message TEXT NOT NULL,
  original_message TEXT NOT NULL, agent TEXT, files TEXT, status TEXT NOT NULL DEFAULT 'pending',
  created_at INTEGER NOT NULL, acked_at INTEGER);
"""
BOARD_TABLES = """
CREATE TABLE projects (id TEXT PRIMARY KEY, name TEXT NOT NULL, description TEXT NOT NULL DEFAULT '',
  prefix TEXT NOT NULL DEFAULT '', color TEXT NOT NULL DEFAULT '#6366f1',
  status TEXT NOT NULL DEFAULT 'active', created_at INTEGER, updated_at INTEGER);
CREATE TABLE tasks (id TEXT PRIMARY KEY, number INTEGER NOT NULL DEFAULT 0, title TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '', status TEXT NOT NULL DEFAULT 'backlog',
  assignee TEXT NOT NULL DEFAULT '', assignee_type TEXT NOT NULL DEFAULT '',
  project_id TEXT REFERENCES projects ON DELETE SET NULL, sort_order INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER, updated_at INTEGER);
CREATE TABLE comments (id TEXT PRIMARY KEY, task_id TEXT NOT NULL REFERENCES tasks ON DELETE CASCADE,
  author TEXT NOT NULL, author_type TEXT NOT NULL DEFAULT 'user', content TEXT NOT NULL, created_at INTEGER);
"""


def insert(db: apsw.Connection, table: str, **values: Any) -> None:
    names, marks = ", ".join(values), ", ".join("?" * len(values))
    db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(values.values()))


def database(path: Path, tables: str) -> apsw.Connection:
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(tables)
    return db


def mail(number: int, text: str, status: str = "pending", **more: Any) -> dict[str, Any]:
    known = {
        "message_id": f"telegram_{number:08}",
        "channel": "telegram",
        "sender": "Bob",
        "sender_id": "42",
        "message": text,
        "status": status,
        "created_at": NOW + number,
        "updated_at": NOW + number,
    }
    return {**known, **more}


def settings(folder: Path, **changes: Any) -> dict[str, Any]:
    work = folder / "their-work"
    return {
        "workspace": {"path": str(work), "name": "their-work"},
        "channels": {
            "enabled": ["telegram"],
            "telegram": {"bot_token": "1234567:secret"},
            "discord": {"bot_token": "your_token_here"},
            "defaults": {"42": "writer"},
        },
        "models": {"provider": "anthropic", "anthropic": {"model": "opus", "api_key": "sk-theirs"}},
        "agents": {
            "writer": {
                "name": "Writer",
                "provider": "anthropic",
                "model": "opus",
                "working_directory": str(work / "writer"),
                "heartbeat": {"enabled": True, "interval": 900},
            },
            "editor": {"name": "Editor", "provider": "custom:local", "model": "m"},
        },
        "custom_providers": {
            "local": {"name": "Local", "harness": "claude", "base_url": "http://127.0.0.1:1", "api_key": "k"}
        },
        "teams": {"press": {"name": "Press", "agents": ["writer", "editor"], "leader_agent": "writer"}},
        "monitoring": {"heartbeat_interval": 3600},
        **changes,
    }


def workspace(folder: Path, agent: str) -> Path:
    place = folder / "their-work" / agent
    (place / "memory").mkdir(parents=True)
    (place / ".tinyagi").mkdir()
    (place / ".agents" / "skills").mkdir(parents=True)
    (place / ".claude").mkdir()
    os.symlink("../.agents/skills", place / ".claude" / "skills")
    (place / "AGENTS.md").write_text("# My own rules\n")
    (place / "heartbeat.md").write_text("Anything new?\n")
    (place / ".tinyagi" / "SOUL.md").write_text("Kind.\n")
    (place / "memory" / "facts.md").write_text("The moon is far.\n")
    (place / "reset_flag").write_text("")
    return place


def head(folder: Path, name: str = ".tinyagi", **changes: Any) -> Path:
    """TinyAGI as it last was."""
    home = folder / name
    home.mkdir(parents=True)
    # A comma too many, as people write it.
    (home / "settings.json").write_text(json.dumps(settings(folder, **changes), indent=1)[:-1] + ",}")
    for agent in ("writer", "editor"):
        workspace(folder, agent)
    db = database(home / "tinyagi.db", HEAD_TABLES)
    insert(db, "messages", **mail(1, "@writer waiting", agent="writer"))
    insert(db, "messages", **mail(2, "@writer claimed", "queued", agent="writer"))
    insert(db, "messages", **mail(3, "@writer in hand", "processing", agent="writer"))
    insert(db, "messages", **mail(4, "@writer hopeless", "dead", agent="writer", last_error="boom"))
    insert(db, "messages", **mail(5, "@writer done", "completed", agent="writer"))
    insert(db, "messages", **mail(6, "a note", agent="editor", from_agent="writer"))
    insert(db, "messages", **mail(7, "@ghost hello", agent="ghost"))
    insert(db, "messages", **mail(8, "@press plan", agent=None))
    (home / "files").mkdir()
    (home / "files" / "plan.md").write_text("the plan")
    files = json.dumps(
        [str(home / "files" / "plan.md"), "/etc/hostname", str(home / "files/../settings.json")]
    )
    insert(db, "responses", **reply_row(5, "an answer", agent="writer", files=files))
    insert(db, "responses", **reply_row(6, "for the web", channel="web", agent="writer"))
    insert(db, "responses", **reply_row(7, "delivered", "acked", agent="writer"))
    for number, role, text in ((1, "user", "@writer done"), (2, "assistant", "an answer")):
        insert(
            db,
            "agent_messages",
            agent_id="writer",
            role=role,
            channel="telegram",
            sender="Bob" if role == "user" else "writer",
            message_id="telegram_00000005",
            content=text,
            created_at=NOW + number,
        )
    for number, writer, text in (
        (1, "writer", "hello all"),
        (2, "user", "hello back"),
        (3, "editor", "fine"),
    ):
        insert(db, "chat_messages", team_id="press", from_agent=writer, message=text, created_at=NOW + number)
    db.close()
    board = database(home / "tasks.db", BOARD_TABLES)
    insert(board, "projects", id="proj_a", name="Alpha", prefix="ALP", color="#22c55e", created_at=NOW)
    task = {"project_id": "proj_a", "assignee_type": "agent", "created_at": NOW}
    insert(board, "tasks", id="task_a", number=7, title="write it", status="todo", assignee="writer", **task)
    insert(board, "tasks", id="task_b", number=9, title="nobody's", assignee="ghost", sort_order=1, **task)
    insert(board, "tasks", id="task_c", number=1, title="alone", status="review", created_at=NOW)
    insert(board, "comments", id="cmt_a", task_id="task_a", author="Ann", content="nice", created_at=NOW)
    board.close()
    approved = [{"channel": "telegram", "senderId": "42", "sender": "Bob", "approvedAt": NOW}]
    (home / "pairing.json").write_text(json.dumps({"pending": [], "approved": [*approved, {"channel": 1}]}))
    schedules = [
        {"id": "1-a", "label": "daily", "cron": "0 9 * * *", "agentId": "writer", "message": "report"},
        {"id": "1-b", "label": "past", "runAt": "2020-01-01T09:00:00Z", "agentId": "writer", "message": "x"},
        {"id": "1-c", "label": "broken", "cron": "every day", "agentId": "writer", "message": "x"},
        {"id": "1-d", "label": "empty"},
    ]
    (home / "schedules.json").write_text(json.dumps(schedules))
    return home


def reply_row(number: int, text: str, status: str = "pending", **more: Any) -> dict[str, Any]:
    row = mail(number, text, status, original_message="a question", **more)
    del row["updated_at"]
    return row


def g1(folder: Path) -> Path:
    """TinyClaw with its first database: no history, tasks as JSON, conversations as files."""
    home = folder / ".tinyclaw"
    home.mkdir(parents=True)
    (home / "settings.json").write_text(json.dumps(settings(folder)))
    workspace(folder, "writer")
    db = database(home / "tinyclaw.db", G1_TABLES)
    insert(db, "messages", **mail(1, "[telegram/Bob]: waiting", agent="writer", files='["/tmp/a.png"]'))
    internal = {"agent": "editor", "from_agent": "writer", "conversation_id": "c1", "claimed_by": "editor"}
    insert(db, "messages", **mail(2, "check this", "processing", **internal))
    insert(db, "messages", **mail(3, "done", "completed", agent="writer"))
    insert(db, "messages", **mail(4, "never", "dead", agent="writer", last_error="boom"))
    insert(db, "responses", **reply_row(3, "it is done", "acked", agent="writer"))
    insert(db, "responses", **reply_row(5, "still to send", agent="writer"))
    db.close()
    tasks = [
        {
            "id": "task_1_a",
            "title": "old task",
            "status": "in_progress",
            "assignee": "press",
            "assigneeType": "team",
        },
        {"id": "task_2_b", "title": "odd task", "status": "someday"},
    ]
    (home / "tasks.json").write_text(json.dumps(tasks))
    chat = home / "chats" / "press" / "2026-02-22_10-00-00-000.md"
    chat.parent.mkdir(parents=True)
    chat.write_text("# Team Conversation: Press (@press)\n")
    (home / "pairing.json").write_text(json.dumps({"pending": [], "approved": []}))
    return home


def g0(folder: Path) -> Path:
    """The first TinyClaw: a file for each message."""
    home = folder / ".tinyclaw"
    for name in ("incoming", "processing", "outgoing"):
        (home / "queue" / name).mkdir(parents=True)
    found = {
        "channels": {"enabled": ["discord"], "discord": {"bot_token": "d-token"}},
        "models": {"anthropic": {"model": "opus"}},
        "workspace": {"path": str(folder / "their-work")},
    }
    (home / "settings.json").write_text(json.dumps(found))
    workspace(folder, "default")

    def letter(place: str, name: str, **fields: Any) -> None:
        known = {"channel": "discord", "sender": "Alice", "senderId": "7", "timestamp": NOW}
        (home / "queue" / place / name).write_text(json.dumps({**known, **fields}))

    letter("incoming", "b.json", message="second", messageId="discord_2", timestamp=NOW + 2)
    letter("incoming", "a.json", message="first", messageId="discord_1", timestamp=NOW + 1)
    letter("processing", "c.json", message="in hand", messageId="discord_0", files=["/tmp/shot.png"])
    letter(
        "outgoing", "d.json", message="an answer", originalMessage="q", messageId="discord_9", agent="default"
    )
    (home / "queue" / "incoming" / "half.json").write_text('{"channel": "discord", "sender": "Al')
    (home / "queue" / "incoming" / "comma.json").write_text(
        '{"channel": "discord", "sender": "Alice", "message": "repaired", "messageId": "discord_3",}'
    )
    (home / "queue" / "incoming" / "empty.json").write_text("")
    (home / "queue" / "incoming" / "note.txt").write_text("no letter")
    os.mkfifo(home / "queue" / "incoming" / "pipe.json")
    return home


def fingerprint(*folders: Path) -> dict[str, tuple[int, str]]:
    """Every file with its time of change and its bytes."""
    found: dict[str, tuple[int, str]] = {}
    for folder in folders:
        for place in (folder, *sorted(folder.rglob("*"))):
            seen = place.lstat()
            regular = place.is_file() and not place.is_symlink()
            data = hashlib.sha256(place.read_bytes()).hexdigest() if regular else str(seen.st_mode)
            found[str(place)] = (seen.st_mtime_ns, data)
    return found
