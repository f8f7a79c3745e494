"""What a person gets of an answer: its text, its files, and a plain word about what was left out."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postroom.providers.protocol import Finished, TextChunk
from postroom.providers.script_rules import ScriptRule
from tests.acceptance.office import Puppet, content, staffed, text

AGENTS = {"coder": {"provider": "puppet"}}


async def test_a_file_of_the_workspace_goes_with_the_answer(tmp_path: Path) -> None:
    async with staffed(tmp_path, ScriptRule(agent="coder", reply="Here. [send_file: report.txt]")) as desk:
        (desk.workspace("coder") / "report.txt").write_text("forty-two")
        await desk.write("@coder the report")
        [reply] = await desk.replies(1)
        assert text(reply) == "Here.\n\n- [coder]"
        [path] = reply.files
        assert Path(path).name == "report.txt"
        assert content(path) == "forty-two"


async def test_what_is_sent_is_the_file_as_it_was_when_the_answer_was_given(tmp_path: Path) -> None:
    async with staffed(tmp_path, ScriptRule(agent="coder", reply="[send_file: report.txt]")) as desk:
        report = desk.workspace("coder") / "report.txt"
        report.write_text("as checked")
        await desk.write("@coder the report")
        [reply] = await desk.replies(1)
        secret = tmp_path / "secret.txt"
        secret.write_text("not for you")
        report.unlink()
        report.symlink_to(secret)
        assert content(reply.files[0]) == "as checked"


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../../secret.txt", "link.txt", "missing.txt", "../lead/notes.txt"]
)
async def test_a_file_that_may_not_leave_is_refused_in_words(tmp_path: Path, path: str) -> None:
    async with staffed(tmp_path, ScriptRule(agent="coder", reply=f"Look: [send_file: {path}]")) as desk:
        (tmp_path / "secret.txt").write_text("not for you")
        (desk.workspace("lead") / "notes.txt").write_text("not for you")
        (desk.workspace("coder") / "link.txt").symlink_to(tmp_path / "secret.txt")
        await desk.write("@coder the report")
        [reply] = await desk.replies(1)
        assert reply.files == []
        assert text(reply).startswith(f'Look:\n\nThe file "{path}" was not sent: ')
        assert "not for you" not in text(reply)


async def test_a_file_over_the_limit_is_refused_in_words(tmp_path: Path) -> None:
    rules = [ScriptRule(agent="coder", reply="[send_file: big.bin] [send_file: small.bin]")]
    async with staffed(tmp_path, *rules, limits={"file_bytes": 10}) as desk:
        (desk.workspace("coder") / "big.bin").write_bytes(b"x" * 11)
        (desk.workspace("coder") / "small.bin").write_bytes(b"x" * 10)
        await desk.write("@coder both")
        [reply] = await desk.replies(1)
        assert [Path(path).name for path in reply.files] == ["small.bin"]
        assert "at most 10 may be sent" in text(reply)


async def test_a_long_answer_goes_as_a_file_with_its_beginning_to_read(tmp_path: Path) -> None:
    long = "0123456789" * 401
    puppet = Puppet(lambda request: long)
    async with staffed(tmp_path, puppets={"puppet": puppet}, agents=AGENTS, teams={}) as desk:
        await desk.write("@coder everything")
        [reply] = await desk.replies(1)
        assert text(reply) == long[:4000] + "\n\n_(Full response attached as file)_\n\n- [coder]"
        [path] = reply.files
        assert content(path) == long + "\n\n- [coder]"


async def test_an_answer_of_exactly_the_limit_is_not_cut(tmp_path: Path) -> None:
    puppet = Puppet(lambda request: "x" * 4000)
    async with staffed(tmp_path, puppets={"puppet": puppet}, agents=AGENTS, teams={}) as desk:
        await desk.write("@coder everything")
        [reply] = await desk.replies(1)
        assert (text(reply), reply.files) == ("x" * 4000 + "\n\n- [coder]", [])


@pytest.mark.parametrize(
    "answer", ["\ud800 half a pair", "\x00\x1b[31m" * 40_000, "🙂" * 90_000, "", "[send_file: a]" * 500]
)
async def test_whatever_a_model_says_the_person_gets_one_answer(tmp_path: Path, answer: str) -> None:
    puppet = Puppet(lambda request: answer)
    async with staffed(tmp_path, puppets={"puppet": puppet}, agents=AGENTS, teams={}) as desk:
        await desk.write("@coder say something")
        [reply] = await desk.replies(1)
        assert text(reply).endswith("- [coder]")
        assert len(puppet.asked) == 1


async def test_a_huge_hand_off_is_cut_rather_than_lost(tmp_path: Path) -> None:
    puppet = Puppet(lambda request: "y" * 300_000 + " [@coder: fix it]")
    agents = {"lead": {"provider": "puppet"}, "coder": {"provider": "script"}}
    teams = {"dev": {"agents": ["lead", "coder"], "leader_agent": "lead"}}
    rules = [ScriptRule(agent="coder", reply="fixed")]
    async with staffed(tmp_path, *rules, puppets={"puppet": puppet}, agents=agents, teams=teams) as desk:
        await desk.write("@dev go")
        assert [reply.agent for reply in await desk.replies(2)] == ["lead", "coder"]
        [note] = [m for m in await desk.quiet() if m.message_type == "office.note"]
        assert text(note).endswith("[… cut here, it was too long]")


def on_the_way(request: object) -> list[object]:
    return [
        TextChunk(text="I look.", part=0),
        TextChunk(text="Found it.", part=1),
        Finished(text="Found it."),
    ]


async def test_by_default_only_the_final_answer_is_sent(tmp_path: Path) -> None:
    puppet = Puppet(on_the_way)
    async with staffed(tmp_path, puppets={"puppet": puppet}, agents=AGENTS, teams={}) as desk:
        await desk.write("@coder where is it")
        await desk.quiet()
        assert [text(m) for m in await desk.replies(1)] == ["Found it.\n\n- [coder]"]


async def test_in_verbose_mode_what_is_said_on_the_way_is_sent_too(tmp_path: Path) -> None:
    puppet = Puppet(on_the_way)
    options = {"puppets": {"puppet": puppet}, "agents": AGENTS, "teams": {}, "replies": {"detail": "verbose"}}
    async with staffed(tmp_path, **options) as desk:
        await desk.write("@coder where is it")
        said = await desk.replies(2)
        assert [(m.message_type, text(m)) for m in said] == [
            ("office.progress", "I look."),
            ("office.reply", "Found it.\n\n- [coder]"),
        ]


async def test_the_message_keeps_its_answer(tmp_path: Path) -> None:
    async with staffed(tmp_path, ScriptRule(agent="coder", reply="It is done.")) as desk:
        sent = await desk.write("@coder fix it")
        await desk.replies(1)
        message = await desk.room.get(sent.receipts[0].id)
        assert (message.result["agent"], message.result["answer"]) == ("coder", "It is done.\n\n- [coder]")


async def test_a_file_that_grows_while_it_is_copied_does_not_cost_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def growing(source: Any, target: Any) -> None:
        log = tmp_path / "work" / "coder" / "run.log"
        with log.open("ab") as file:
            file.write(b"x" * 2000)
        shutil.copyfileobj(source, target)

    monkeypatch.setattr("postroom.office.turns.replies.shutil", SimpleNamespace(copyfileobj=growing))
    rules = [ScriptRule(agent="coder", reply="Here. [send_file: run.log]")]
    async with staffed(tmp_path, *rules, limits={"file_bytes": 1000}) as desk:
        (desk.workspace("coder") / "run.log").write_bytes(b"x" * 500)
        await desk.write("@coder the log")
        [reply] = await desk.replies(1, within=20)
        assert reply.message_type == "office.reply"
        assert text(reply).startswith("Here.")
        assert "run.log" in text(reply)
        assert "was not sent" in text(reply)
        assert reply.files == []
        assert len(await desk.room.records("turn")) == 1
        [mail] = [m for m in await desk.quiet() if m.queue == "inbox/coder"]
        assert mail.attempts == 1, "the turn was paid for, and is not taken again"
