"""The rooms of teams: everybody reads every post once, in company, and not for ever."""

from pathlib import Path

import postroom
from postroom import State
from postroom.providers.script_rules import ScriptRule
from tests.acceptance.office import AGENTS, Puppet, opened, staffed, text

POSTING = ScriptRule(agent="lead", match="tell them (?P<what>.*)", reply="[#dev: $what]")


def teams(*members: str) -> dict[str, object]:
    return {"dev": {"agents": list(members), "leader_agent": "lead"}}


async def test_posts_that_wait_are_read_in_one_turn(tmp_path: Path) -> None:
    async with postroom.open(str(tmp_path / "room.db")) as room:
        async with opened(room, tmp_path, start=False) as desk:
            for number in range(5):
                await room.publish(
                    "office/room/dev",
                    {"text": f"[Chat room #dev — @lead]:\npost {number}", "team": "dev"},
                    type="office.post",
                    channel="chatroom",
                    from_agent="lead",
                )
        puppet = Puppet(lambda request: "noted")
        agents = {name: {"provider": "puppet"} for name in AGENTS}
        async with opened(room, tmp_path, puppets={"puppet": puppet}, agents=agents) as desk:
            everything = await desk.quiet()
        assert len(puppet.asked) == 2, "one turn for the coder, one for the reviewer"
        posts = puppet.asked[0].prompt.split("\n\n------\n\n")
        assert [post[-6:] for post in posts] == [f"post {number}" for number in range(5)]
        assert not [m for m in everything if m.queue.startswith("outbox/")]
        assert all(m.state is State.COMPLETED for m in everything)


async def test_whoever_joins_or_was_away_reads_the_last_posts_once(tmp_path: Path) -> None:
    async with postroom.open(str(tmp_path / "room.db")) as room:
        async with opened(room, tmp_path, POSTING, teams=teams("lead", "coder"), start=False):
            for number in range(30):
                await room.publish(
                    "office/room/dev",
                    {"text": f"[Chat room #dev — @lead]:\npost {number}.", "team": "dev"},
                    type="office.post",
                    channel="chatroom",
                    from_agent="lead",
                )
        puppet = Puppet(lambda request: "noted")
        agents = {name: {"provider": "puppet"} for name in AGENTS}
        options = {"puppets": {"puppet": puppet}, "agents": agents, "teams": teams(*AGENTS)}
        async with opened(room, tmp_path, **options) as desk:
            await desk.quiet()
        read = {request.agent_id: request.prompt for request in puppet.asked}
        assert set(read) == {"coder", "reviewer"}
        for prompt in read.values():
            assert prompt.startswith("[10 earlier posts left out]")
            assert "post 9." not in prompt
            assert all(f"post {number}." in prompt for number in range(10, 30))
        async with opened(room, tmp_path, **options) as desk:
            await desk.quiet()
        assert len(puppet.asked) == 2, "nobody reads them again"


async def test_whoever_leaves_a_team_gets_nothing_of_its_room_any_more(tmp_path: Path) -> None:
    async with postroom.open(str(tmp_path / "room.db")) as room:
        async with opened(room, tmp_path, start=False):
            assert {s.name for s in await room.subscriptions("office/room/dev")} == set(AGENTS)
        async with opened(room, tmp_path, POSTING, teams=teams("lead", "coder")) as desk:
            assert {s.name for s in await room.subscriptions("office/room/dev")} == {"lead", "coder"}
            await desk.write("@lead tell them all is well")
            heard = [m for m in await desk.quiet() if m.subscription is not None]
            assert {m.subscription for m in heard} == {"lead", "coder"}


async def test_a_post_rides_along_with_a_persons_message(tmp_path: Path) -> None:
    async with postroom.open(str(tmp_path / "room.db")) as room:
        async with opened(room, tmp_path, start=False) as desk:
            await room.publish(
                "office/room/dev",
                {"text": "[Chat room #dev — @lead]:\nthe build is red", "team": "dev"},
                type="office.post",
                channel="chatroom",
                from_agent="lead",
            )
            await desk.write("@coder what now?")
        rules = [ScriptRule(agent="coder", reply="heard: $prompt")]
        async with opened(room, tmp_path, *rules) as desk:
            [reply] = await desk.replies(1)
            assert text(reply).startswith(
                "heard: [Chat room #dev — @lead]:\nthe build is red\n\n------\n\nwhat now?"
            )
            await desk.quiet()
            turns = [turn.data["agent"] for turn in await room.records("turn")]
            assert sorted(turns) == ["coder", "reviewer"]


async def test_what_an_agent_says_to_a_post_is_kept_with_it(tmp_path: Path) -> None:
    rules = [POSTING, ScriptRule(match="Chat room", reply="noted by $agent")]
    async with staffed(tmp_path, *rules) as desk:
        await desk.write("@lead tell them all is well")
        heard = {m.subscription: m for m in await desk.quiet() if m.subscription is not None}
        assert heard["coder"].result["answer"] == "noted by coder\n\n- [coder]"
