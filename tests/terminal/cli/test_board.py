"""Tasks, projects, rooms and memory from a shell; what the shell offers after Tab."""

import re
from pathlib import Path

import pytest

from postroom.terminal.cli import completion
from tests.terminal.cli.runner import Cli

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@pytest.fixture
def team(cli: Cli) -> Cli:
    cli.ok("agent", "add", "coder", "--provider", "script")
    cli.ok("agent", "add", "lead", "--provider", "script")
    cli.ok("team", "add", "dev", "lead", "coder")
    return cli


def test_a_task_goes_over_the_board(team: Cli) -> None:
    assert team.json("task", "list") == []
    made = team.json("task", "add", "Write the notes", "--assign", "coder", "--status", "todo")
    assert (made["identifier"], made["status"], made["assignee"]) == ("T-1", "todo", "coder")
    assert ISO.fullmatch(made["createdAt"])
    assert "T-1" in team.ok("task", "list", "--status", "todo").out
    assert team.json("task", "set", "t-1", "--status", "done")["status"] == "done"
    team.ok("task", "comment", "T-1", "The tests are green.")
    shown = team.json("task", "show", "T-1")
    assert [each["content"] for each in shown["comments"]] == ["The tests are green."]
    assert "The tests are green." in team.ok("task", "show", made["id"]).out
    assert team("task", "set", "T-1").code == 2
    assert team("task", "set", "T-1", "--status", "lost").code == 2
    assert team("task", "show", "T-9").code == 4
    team.ok("task", "remove", "T-1", "--yes")
    assert team.json("task", "list") == []


def test_tasks_belong_to_a_project(cli: Cli) -> None:
    project = cli.json("project", "add", "Website", "--description", "The new one")
    made = cli.json("task", "add", "Choose a font", "--project", "website")
    assert made["projectId"] == project["id"]
    assert made["identifier"] == f"{project['prefix']}-1"
    assert [each["title"] for each in cli.json("task", "list", "--project", project["prefix"])] == [
        "Choose a font"
    ]
    assert cli.json("project", "set", "Website", "--archive")["status"] == "archived"
    assert cli.json("project", "list") == []
    assert [each["name"] for each in cli.json("project", "list", "--archived")] == ["Website"]
    assert cli("project", "set", "Website", "--archive", "--activate").code == 2
    cli.ok("project", "remove", project["id"], "--yes")
    assert "projectId" not in cli.json("task", "list")[0]


def test_a_room_is_read_and_posted_to(team: Cli) -> None:
    assert team.json("room", "list")[0] | {"members": None} == {
        "team": "dev",
        "name": "dev",
        "members": None,
        "lastPostAt": None,
    }
    number = team.json("room", "post", "dev", "Who takes the notes?")["id"]
    [post] = team.json("room", "read", "dev")
    assert (post["message"], post["from_agent"], post["id"]) == ("Who takes the notes?", "user", number)
    assert ISO.fullmatch(post["created_at"])
    assert team.json("room", "read", "dev", "--since", str(number)) == []
    assert ISO.fullmatch(team.json("room", "list")[0]["lastPostAt"])
    assert team("room", "post", "nobody", "x").code == 4


def test_what_an_agent_remembers_is_listed_shown_and_found(team: Cli) -> None:
    folder = Path(team.json("memory", "list", "coder")["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "customers.md").write_text(
        "---\nname: customers\nsummary: who buys\n---\nAnn pays by INVOICE.\n"
    )
    (folder.parent / "secret.md").write_text("hush")
    assert [each["path"] for each in team.json("memory", "list", "coder")["files"]] == ["customers.md"]
    assert "Ann pays" in team.ok("memory", "show", "coder", "customers.md").out
    assert team.json("memory", "search", "coder", "invoice") == [
        {"path": "customers.md", "line": 5, "text": "Ann pays by INVOICE."}
    ]
    for path in ("../secret.md", "nothing.md"):
        refused = team("memory", "show", "coder", path)
        assert (refused.code, "hush" in refused.out) == (4, False)


def test_the_shell_offers_agents_teams_settings_and_messages(team: Cli) -> None:
    assert completion.agents("co") == ["coder"]
    assert completion.teams("") == ["dev"]
    assert "api.port" in completion.settings("api.")
    (team.home / "settings.json").write_text("no json")
    assert (completion.agents(""), completion.teams("")) == ([], [])
