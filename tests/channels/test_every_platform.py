"""One scenario on every platform: pairing, hand-off, files both ways, a review, a budget, a long answer."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import SystemClock
from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage
from postroom.providers.protocol import Finished, TextChunk, TurnRequest, Usage
from postroom.testing import Attachment, HeldClock
from tests.acceptance.office import until
from tests.channels.chat_platforms import PLATFORMS, ChatOffice, ChatPlatform, open_chat_office

LONG = (
    "\n\n".join(f"Paragraph {number}: " + "words and more words " * 30 for number in range(20))
    + "\n\nTHE END"
)


@pytest.fixture(params=list(PLATFORMS))
def platform(request: pytest.FixtureRequest) -> ChatPlatform:
    return PLATFORMS[request.param]


@pytest.fixture
async def fake(platform: ChatPlatform) -> AsyncIterator[Any]:
    async with platform.make(HeldClock(SystemClock().now())) as fake:
        yield fake


def act(folder: Path, request: TurnRequest) -> Any:
    asked = request.prompt
    if "please look" in asked:
        return "the colleague has looked"
    if "please pay" in asked:
        return "the colleague has paid"
    if "hand it on" in asked:
        return "I ask a colleague. [@coder: please look at it]"
    if "report" in asked:
        (folder / "work" / "lead" / "report.txt").write_text("the report")
        return "here it is [send_file: report.txt]"
    if "in steps" in asked:
        steps = [
            TextChunk(text=f"step {part} [@coder: please look] [#dev: hear, hear]", part=part)
            for part in (0, 1)
        ]
        return [*steps, TextChunk(text="done", part=2), Finished(text="done in steps [@coder: please look]")]
    if "long" in asked:
        return LONG
    if "expensive" in asked:
        usage = Usage(provider="puppet", model="", output_tokens=1, cost_usd=9.8)
        return [usage, Finished(text="that was dear [@coder: please pay]")]
    return f"echo: {asked}"


def read_file(path: str) -> bytes:
    return Path(path).read_bytes()


async def ask_review(office: ChatOffice) -> str:
    """As an agent asks its person, in the conversation that it answers."""
    page = await office.room.messages(scope="office", message_type="office.mail", newest_first=True, limit=1)
    [cause] = page.messages
    spec = {
        "title": "@lead asks",
        "sections": [
            {"type": "context", "content": "May I pay the bill?"},
            {"type": "decision", "options": ["yes", "no"]},
        ],
    }
    message = NewMessage(
        body={"question": "May I pay the bill?"},
        message_type="office.question",
        hitl_spec=spec,
        correlation_id=cause.correlation_id,
        causation_id=cause.id,
        source_type="agent",
        source_id="lead",
    )
    commands = (
        c.CreateQueue(queue="default/reviews", settings={}, exist_ok=True),
        c.Publish(queue="default/reviews", messages=[message]),
    )
    _, [receipt] = await office.room.run(c.Unit(commands=commands))
    return receipt.id


async def test_the_whole_way_of_a_conversation(platform: ChatPlatform, fake: Any, tmp_path: Path) -> None:
    (tmp_path / "work" / "lead").mkdir(parents=True)
    async with open_chat_office(
        tmp_path,
        platform,
        fake,
        lambda request: act(tmp_path, request),
        replies={"long_text_chars": 100_000},
    ) as office:
        # A stranger gets one code, and costs nothing else.
        await office.pair()
        assert office.puppet.asked == []
        await office.write("good morning")
        await office.hear("echo: good morning")
        await office.write("please hand it on")
        await office.hear("the colleague has looked")

        await office.command("mode steps")
        await office.hear("What you hear: steps")
        await office.write("now in steps")
        await office.hear("done in steps")
        await office.hear("step 0")
        await office.command("mode default")
        await office.hear("the colleague has looked", 2)
        shown = [text for each in fake.transcript.deliveries for text in (each.text, *each.edits)]
        assert not [text for text in shown if "[@" in text or "[#" in text]

        await office.write("read this", files=[Attachment("plan.txt", b"the plan", "text/plain")])
        await office.hear("read this")
        # Some platforms send a file and its text as two messages.
        await until(lambda: any("[file: " in asked.prompt for asked in office.puppet.asked))
        asked = next(each.prompt for each in office.puppet.asked if "[file: " in each.prompt)
        assert read_file(asked.split("[file: ")[1].split("]")[0]) == b"the plan"
        await office.write("your report?")
        await office.hear("here it is")
        [sent] = [each for each in fake.transcript.deliveries if each.attachments]
        assert (sent.attachments[0].name, sent.attachments[0].content) == ("report.txt", b"the report")

        review = await ask_review(office)
        [question] = await office.hear("May I pay the bill?")
        if platform.buttons:
            await fake.press(office.ann, question, "yes")
        else:
            words = question.text.split("Answer with one of: ")[1].split(" · ")[0]
            await office.write(words)
        await office.hear("Decided: yes")
        assert (await office.room.get(review)).result == {"decision": "yes"}
        await office.command(f"approve {review[-6:].lower()} no")
        await office.hear("Nothing waits for your decision")

        await office.write("something expensive")
        [paused] = await office.hear("I have paused this conversation")
        mark = paused.text.split("continue ")[1].split()[0]
        await office.command(f"raise 30 {mark}")
        await office.hear("The limit is $30")
        await office.hear("the colleague has paid")

        await office.write("a long answer, please")
        await office.hear("THE END")
        seen = " ".join(text for text in fake.transcript.texts() if "Paragraph" in text)
        assert all(f"Paragraph {number}:" in seen for number in range(20))
