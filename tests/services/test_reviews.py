"""Reviews are answered by people: not by agents, not by whoever asked, through every entrance alike."""

from typing import Any

import pytest

from postroom.errors import PostroomError
from postroom.kernel.model import NewMessage
from postroom.kernel.reviews.sections import HitlInvalid
from postroom.services import callers
from postroom.services.container import Services
from postroom.services.errors import QueueNotGiven, ReviewForPeople
from tests.services.conftest import ServedRoom

SPEC: dict[str, Any] = {"sections": [{"type": "decision", "options": ["yes", "no"]}]}


@pytest.fixture
async def asked(served: ServedRoom) -> str:
    await served.room.create_queue("reviews")
    return (await served.room.publish("reviews", "ship it?", hitl_spec=SPEC)).id


@pytest.mark.parametrize("given", [(), ("jobs",), ("*",), ("reviews",)])
async def test_an_agent_reaches_no_question_whatever_it_was_given(
    served: ServedRoom, asked: str, given: tuple[str, ...]
) -> None:
    services = Services(served.room, agent_queues=lambda agent: given)
    agent = callers.agent("coder")
    with pytest.raises(QueueNotGiven):
        await services.claims.claim(agent, [("default", "reviews")])
    [held] = await served.room.claim("reviews")
    with pytest.raises(QueueNotGiven):
        await services.claims.complete(agent, asked, held.claim_token, result={"decision": "yes"})
    with pytest.raises(QueueNotGiven):
        await services.reviews.answer(agent, asked, {"decision": "yes"}, token=held.claim_token)
    assert (await served.room.get(asked)).state == "claimed"


async def test_an_agents_tools_reach_only_the_queues_it_was_given(served: ServedRoom) -> None:
    for queue in ("jobs", "jobs-night", "wages"):
        await served.room.create_queue(queue)
        await served.room.publish(queue, 1)
    services = Services(served.room, agent_queues=lambda agent: {"coder": ("jobs*",)}.get(agent, ()))
    coder, other = callers.agent("coder"), callers.agent("other")
    for queue in ("jobs", "jobs-night"):
        await services.messages.publish(coder, "default", queue, [NewMessage(body=2)])
        [found] = await services.claims.claim(coder, [("default", queue)])
        await services.claims.complete(coder, found.message.id, found.message.claim_token)
        with pytest.raises(QueueNotGiven):
            await services.claims.claim(other, [("default", queue)])
    for call in (
        services.messages.publish(coder, "default", "wages", [NewMessage(body=2)]),
        services.claims.claim(coder, [("default", "wages")]),
        services.claims.claim(coder, [("default", "jobs"), ("default", "wages")]),
    ):
        with pytest.raises(QueueNotGiven, match=r"agents\.coder\.queues"):
            await call
    assert (await served.room.counts("wages")).pending == 1


@pytest.mark.parametrize("who", ["agent", "key of an agent"])
async def test_a_question_among_an_agents_work_stays_for_people(served: ServedRoom, who: str) -> None:
    await served.room.create_queue("jobs")
    asked = (await served.room.publish("jobs", "ship it?", hitl_spec=SPEC)).id
    await served.room.publish("jobs", "work")
    services = Services(served.room, agent_queues=lambda agent: ("*",))
    caller = callers.agent("coder")
    if who != "agent":
        caller = await served.key("view", "consume", "publish", actor_type="agent")
    [work] = await services.claims.claim(caller, [("default", "jobs")], limit=5)
    assert work.message.body == "work"
    assert (await served.room.get(asked)).state == "pending", "people can answer it at once"
    [held] = await served.room.claim("jobs")
    for call in (
        services.claims.complete(caller, asked, held.claim_token, result={"decision": "yes"}),
        services.claims.fail(caller, asked, held.claim_token, retry=False),
        services.claims.snooze(caller, asked, held.claim_token, seconds=60),
        services.claims.extend(caller, asked, held.claim_token),
        services.reviews.answer(caller, asked, {"decision": "yes"}, token=held.claim_token),
    ):
        with pytest.raises(ReviewForPeople):
            await call
    assert (await served.room.get(asked)).state == "claimed"
    await services.reviews.answer(served.owner, asked, {"decision": "no"}, token=held.claim_token)
    assert (await served.room.get(asked)).result == {"decision": "no"}


async def test_whoever_asked_does_not_answer(served: ServedRoom) -> None:
    await served.room.create_queue("jobs")
    asker = await served.key("view", "publish", "consume")
    other = await served.key("view", "consume")
    draft = NewMessage(body="may I?", hitl_spec=SPEC)
    [made] = await served.services.messages.publish(asker, "default", "jobs", [draft])
    asked = made.found.message.id
    with pytest.raises(ReviewForPeople):
        await served.services.reviews.answer(asker, asked, {"decision": "yes"})
    [held] = await served.services.claims.claim(asker, [("default", "jobs")])
    with pytest.raises(ReviewForPeople):
        await served.services.claims.complete(asker, asked, result={"decision": "yes"})
    await served.services.claims.release(asker, asked, held.message.claim_token)
    await served.services.reviews.answer(other, asked, {"decision": "no"})
    assert (await served.room.get(asked)).result == {"decision": "no"}


@pytest.mark.parametrize("answer", [{"foo": 1}, {"decision": "maybe"}, None, "yes", {}])
async def test_completing_a_review_is_answering_it_with_all_its_rules(
    served: ServedRoom, asked: str, answer: Any
) -> None:
    """The service that all entrances call; `complete` of the command line and of the tools is this one."""
    [held] = await served.services.claims.claim(served.owner, [("default", "reviews")])
    with pytest.raises(PostroomError):
        await served.services.claims.complete(served.owner, asked, held.message.claim_token, result=answer)
    assert (await served.room.get(asked)).state == "claimed"


@pytest.mark.parametrize(
    "ways",
    [
        {"on_decision": {"yes": {"queue": "nowhere"}}},
        {"on_decision": {"no": {"queue": "/nowhere/jobs"}}},
        {"escalation": {"queue": "nowhere"}, "timeout_s": 60},
    ],
)
async def test_a_review_that_would_lead_nowhere_is_refused_when_it_is_published(
    served: ServedRoom, ways: dict[str, Any]
) -> None:
    await served.room.create_queue("jobs")
    with pytest.raises(HitlInvalid, match="no such queue"):
        await served.services.messages.publish(
            served.owner, "default", "jobs", [NewMessage(body=1, hitl_spec={**SPEC, **ways})]
        )
    with pytest.raises(HitlInvalid, match="no such queue"):
        await served.room.publish("jobs", 1, hitl_spec={**SPEC, **ways})
    assert (await served.room.counts("jobs")).pending == 0
