"""A chat goes on with whom it addressed last, also after a restart, until it says otherwise."""

from pathlib import Path

from tests.acceptance.office import staffed

CHAT = {"channel": "telegram", "chat": "7001", "sender_id": "7001"}


async def test_a_chat_stays_with_the_agent_it_addressed(tmp_path: Path) -> None:
    async with staffed(tmp_path) as desk:
        first = await desk.write("@coder hello", **CHAT)
        assert first.notice == (
            "Switched to agent @coder (Coder). Future messages will be routed here automatically. "
            "Send @default to clear."
        )
        assert first.routed.messages[0].text == "hello"
        again = await desk.write("@coder hello", **CHAT)
        assert again.notice is None
        other = await desk.write("hello", **{**CHAT, "chat": "7002"})
        assert other.routed.messages[0].agent == "lead"
    async with staffed(tmp_path) as desk:
        after = await desk.write("and this?", **CHAT)
        assert (after.routed.messages[0].agent, after.notice) == ("coder", None)


async def test_a_prefix_alone_switches_and_sends_nothing(tmp_path: Path) -> None:
    async with staffed(tmp_path) as desk:
        switched = await desk.write("@dev", **CHAT)
        assert switched.receipts == ()
        assert not switched.repeated
        assert switched.notice is not None
        assert switched.notice.startswith("Switched to team @dev (Dev).")
        assert (await desk.write("hello", **CHAT)).routed.messages[0].team == "dev"
        cleared = await desk.write("@default", **CHAT)
        assert cleared.notice == "Cleared default agent. Messages will use default routing."
        assert (await desk.write("@default", **CHAT)).notice == "No default agent was set."


async def test_without_a_chat_nothing_sticks(tmp_path: Path) -> None:
    async with staffed(tmp_path) as desk:
        await desk.write("@coder hello")
        assert (await desk.write("hello")).routed.messages[0].agent == "lead"


async def test_a_chat_that_never_chose_has_the_default_of_the_settings(tmp_path: Path) -> None:
    async with staffed(tmp_path, channels={"defaults": {"7001": "reviewer"}}) as desk:
        assert (await desk.write("hello", **CHAT)).routed.messages[0].agent == "reviewer"
        await desk.write("@default", **CHAT)
        assert (await desk.write("hello", **CHAT)).routed.messages[0].agent == "lead"


async def test_a_default_can_be_chosen_without_a_message(tmp_path: Path) -> None:
    async with staffed(tmp_path) as desk:
        choose = desk.office.defaults.choose
        directory = desk.office.directory
        assert (await choose(directory, "telegram", "7001", "coder")).startswith("Switched to agent @coder")
        assert "already" in await choose(directory, "telegram", "7001", "coder")
        assert await choose(directory, "telegram", "7001", "ghost") == 'There is no agent or team "ghost".'
        assert (await desk.write("hello", **CHAT)).routed.messages[0].agent == "coder"
        assert (await choose(directory, "telegram", "7001", None)).startswith("Cleared")


async def test_a_message_sent_again_by_the_platform_goes_where_it_went(tmp_path: Path) -> None:
    """The chat has switched meanwhile, and must neither switch back nor ask a second agent."""
    async with staffed(tmp_path) as desk:
        first = await desk.write("@coder hello", platform_id="1", **CHAT)
        await desk.write("@reviewer hello", platform_id="2", **CHAT)
        again = await desk.write("@coder hello", platform_id="1", **CHAT)
        assert again.repeated
        assert [receipt.id for receipt in again.receipts] == [receipt.id for receipt in first.receipts]
        third = await desk.write("hello", platform_id="3", **CHAT)
        assert third.routed.messages[0].agent == "reviewer"
        await desk.write("@lead", platform_id="4", **CHAT)
        repeated = await desk.write("hello", platform_id="3", **CHAT)
        assert repeated.repeated
        assert [m.agent for m in await desk.quiet() if m.queue.startswith("inbox/")] == [
            "coder",
            "reviewer",
            "reviewer",
        ]
