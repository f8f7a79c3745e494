"""Conversations as Markdown files: whole, in order, and never twice."""

import asyncio
from pathlib import Path

import pytest

import postroom
from postroom.kernel import commands as c
from postroom.office.chat_files import Chats
from postroom.providers.protocol import ErrorKind, TurnRequest
from postroom.providers.script_rules import ScriptRule
from tests.acceptance.office import Puppet, content, opened, staffed, until

RULES = [
    ScriptRule(agent="lead", match="login", reply="I ask. [#dev: we begin]", hand_off={"coder": "fix it"}),
    ScriptRule(agent="coder", match="fix it", reply="Fixed."),
    ScriptRule(match="Chat room", reply="noted"),
]


async def written(folder: Path, times: int, text: str = "Fixed.\n\n- [coder]") -> str:
    """The one file there is, once it says so."""
    await until(lambda: chats(folder) and content(chats(folder)[0]).count(text) >= times)
    [path] = chats(folder)
    return content(path)


def chats(folder: Path) -> list[Path]:
    return sorted(folder.glob("home/chats/*/*.md"))


async def test_a_conversation_can_be_read_as_a_file(tmp_path: Path) -> None:
    async with staffed(tmp_path, *RULES) as desk:
        await desk.write("@dev the login is broken")
        text = await written(tmp_path, 1)
    [path] = chats(tmp_path)
    assert path.parent.name == "dev"
    assert path.stat().st_mode & 0o777 == 0o600
    lines = text.splitlines()
    assert lines[0] == "# Team Conversation: Dev (@dev)"
    assert lines[2].startswith("**Date:** 20")
    assert lines[3:5] == ["**Channel:** web | **Sender:** Ann", "**Messages:** 5"]
    titles = [line for line in lines if line.startswith("## ")]
    assert titles == [
        "## User Message",
        "## Lead (@lead)",
        "## Lead (@lead) → @coder",
        "## Lead (@lead) in #dev",
        "## Coder (@coder)",
    ]
    assert text.count("\n------\n") == 5 + 1, "one before each entry, and one inside the hand-off"


async def test_a_file_written_again_from_the_beginning_has_no_entry_twice(tmp_path: Path) -> None:
    """As after a crash between the files and the position: the clerk sees the same events again."""
    async with postroom.open(str(tmp_path / "room.db")) as room:
        async with opened(room, tmp_path, *RULES) as desk:
            await desk.write("@dev the login is broken")
            before = await written(tmp_path, 1)
        await room.run(c.SetPosition(name="office-clerk", seq=0))
        async with opened(room, tmp_path, *RULES) as desk:
            await desk.write("@reviewer are you there?")
            await until(lambda: len(chats(tmp_path)) == 2)
        assert before in map(content, chats(tmp_path))


async def test_what_is_said_while_the_file_is_being_written_is_written_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing, go_on = asyncio.Event(), asyncio.Event()
    write = Chats.write

    async def slowly(chats: Chats, talk: str) -> Path | None:
        path = await write(chats, talk)
        writing.set()
        await go_on.wait()
        return path

    monkeypatch.setattr(Chats, "write", slowly)
    gate = asyncio.Event()

    async def act(request: TurnRequest) -> str:
        await gate.wait()
        return "at last"

    agents = {"coder": {"provider": "puppet"}}
    async with staffed(tmp_path, puppets={"puppet": Puppet(act)}, agents=agents, teams={}) as desk:
        await desk.write("@coder hello")
        await writing.wait()
        gate.set()
        await desk.replies(1)
        go_on.set()
        assert "hello" in await written(tmp_path, 1, "at last")


async def test_a_file_that_was_lost_is_written_again_and_one_that_was_cut_off_is_completed(
    tmp_path: Path,
) -> None:
    async with postroom.open(str(tmp_path / "room.db")) as room:
        async with opened(room, tmp_path, *RULES) as desk:
            await desk.write("@dev the login is broken")
            before = await written(tmp_path, 1)
        [path] = chats(tmp_path)
        path.write_text(before[: before.rindex("\n------\n\n<!-- message")])
        await room.run(c.SetPosition(name="office-clerk", seq=0))
        async with opened(room, tmp_path, *RULES):
            assert await written(tmp_path, 1) == before


async def test_words_that_look_like_our_marks_hide_nothing(tmp_path: Path) -> None:
    rules = [ScriptRule(agent="coder", reply="$prompt")]
    async with staffed(tmp_path, *rules, teams={}) as desk:
        sent = await desk.write("@coder first")
        await written(tmp_path, 1, "first\n\n- [coder]")
        reply = (await desk.replies(1))[0].id
    forged = tmp_path / "forged"
    async with staffed(forged, *rules, teams={}) as desk:
        mark = f"<!-- message {sent.receipts[0].id} -->\n<!-- message {reply} -->"
        await desk.write(f"@coder {mark}")
        text = await written(forged, 1, "- [coder]")
    assert mark not in text


async def test_a_failure_stands_in_the_file_and_history_can_be_turned_off(tmp_path: Path) -> None:
    rules = [ScriptRule(agent="coder", fail=ErrorKind.AUTH)]
    async with staffed(tmp_path / "on", *rules) as desk:
        await desk.write("@coder hello")
        assert "could not answer" in await written(tmp_path / "on", 1, "could not answer")
    async with staffed(tmp_path / "off", *rules, replies={"history": False}) as desk:
        await desk.write("@coder hello")
        await desk.settled()
    assert not (tmp_path / "off" / "home" / "chats").exists()


async def test_a_folder_that_cannot_be_written_keeps_no_other_from_its_file(tmp_path: Path) -> None:
    blocked = tmp_path / "home" / "chats" / "lead"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("a file where a folder should be")
    async with staffed(tmp_path, ScriptRule(reply="ok"), teams={}) as desk:
        await desk.write("@lead one")
        await desk.write("@coder two")
        await desk.write("@lead three")
        await desk.quiet()
        await until(lambda: list((tmp_path / "home" / "chats").glob("coder/*.md")), within=20)
        blocked.unlink()
        await until(lambda: len(list((tmp_path / "home" / "chats").glob("lead/*.md"))) == 2, within=20)
