"""What is answered, what the document promises and what the client reads are the same fields."""

from typing import Any

import msgspec
import pytest

from postroom.api.queue import views
from postroom.client import model
from tests.api.queue.service import Caller
from tests.api.queue.test_checklist import JOBS, SCOPE

RULE = {"name": "r", "action": {"type": "archive"}}
KEY = {"name": "k", "permissions": ["view"]}


async def _answers(jobs: Caller) -> dict[str, dict[str, Any]]:
    await jobs.post(JOBS + "/messages", {"body": 1})
    [claimed] = await jobs.post(JOBS + "/claim")
    return {
        "scope": await jobs.get(SCOPE),
        "queue": await jobs.get(JOBS),
        "message": await jobs.get(f"{SCOPE}/messages/{claimed['id']}"),
        "claimed": claimed,
        "rule": await jobs.post(SCOPE + "/routing-rules", RULE),
        "key": await jobs.post("/api-keys", KEY),
    }


async def test_an_answer_has_the_fields_that_its_document_promises(jobs: Caller) -> None:
    answers = await _answers(jobs)
    for name, promised in (
        ("scope", views.ScopeView),
        ("queue", views.QueueView),
        ("message", views.MessageView),
        ("claimed", views.MessageView),
    ):
        fields = {told.alias or field: told for field, told in promised.model_fields.items()}
        needed = {field for field, told in fields.items() if told.is_required()}
        missing, unknown = needed - answers[name].keys(), answers[name].keys() - fields.keys()
        assert (missing, unknown) == (set(), set()), name
        promised.model_validate(answers[name])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("scope", model.Scope),
        ("queue", model.Queue),
        ("message", model.Message),
        ("claimed", model.Message),
        ("rule", model.Rule),
        ("key", model.Key),
    ],
)
async def test_the_client_reads_only_what_is_answered(
    jobs: Caller, name: str, kind: type[msgspec.Struct]
) -> None:
    answer = (await _answers(jobs))[name]
    msgspec.convert(answer, kind)
    needed = {field.name for field in msgspec.structs.fields(kind) if field.required}
    assert needed <= answer.keys()


async def test_a_claim_tells_its_token_and_nothing_else_does(jobs: Caller) -> None:
    answers = await _answers(jobs)
    assert answers["claimed"]["claim_token"]
    assert answers["message"].get("claim_token") is None
