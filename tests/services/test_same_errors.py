"""Whichever way a wrong input comes, it gets the same code, and changes nothing."""

import asyncio
import contextlib
import io
import json
import os
import re
import sys
from typing import Any

import pytest

from postroom import Room
from postroom.errors import PostroomError
from postroom.kernel import commands as c
from postroom.kernel import service_commands
from postroom.kernel.rules import rule
from postroom.kernel.rules.rule import MOST_RULES, Trigger
from postroom.services import callers
from postroom.services.container import Services
from postroom.services.queues import MOST_QUEUES
from postroom.terminal.cli.app import run
from postroom.terminal.cli.remote import remote_services
from tests.api.house import TOKEN, House, opened
from tests.api.mcp.test_tools import call as call_tool
from tests.services.wrong_inputs import QUESTION, WRONG, WrongInput

WAYS = ("python", "rpc", "http", "mcp", "cli")
Codes = dict[tuple[str, str], str]


async def prepare(house: House) -> dict[str, str]:
    """The state that the inputs do not fit; the ids of its messages."""
    room, owner = house.room, callers.owner(actor="tester")
    services = house.deps.services
    for queue in ("jobs", "other", "closed"):
        await room.create_queue(queue, visibility_timeout_s=3600)  # what is claimed stays so
    await room.create_queue("news", consumer_mode="broadcast")
    await services.schemas.register(owner, "default", "number", {"type": "number"})
    await room.create_queue("strict", schema="number")
    await services.queues.set_state(owner, "default", "closed", "archive")
    await fill(room)
    await services.public_ids()  # made once, with the first answer that shows one
    review = await room.publish("other", 1, hitl_spec=QUESTION)
    done = await room.publish("jobs", 1)
    await room.complete((await room.claim("jobs"))[0])
    claimed = await room.publish("jobs", 1)
    [held] = await room.claim("jobs")
    waiting = await room.publish("jobs", 2, key="used")
    assert held.claim_token is not None
    return {
        "review": review.id,
        "done": done.id,
        "claimed": claimed.id,
        "waiting": waiting.id,
        "token": held.claim_token,
    }


async def fill(room: Room) -> None:
    """A scope with as many queues and rules as one may have."""
    scope = await room.create_scope("full")
    there = len(await room.queues("full"))
    queues = [c.CreateQueue(queue=f"full/q{number}") for number in range(MOST_QUEUES - there)]
    rules = [
        service_commands.PutServiceDocument(
            kind=rule.KIND,
            key=f"{scope.id}/r{number}",
            data={
                "id": f"r{number}",
                "name": f"r{number}",
                "trigger": Trigger.PUBLISHED,
                "action": {"type": "archive"},
            },
        )
        for number in range(MOST_RULES)
    ]
    for start in range(0, len(queues), 100):
        await room.run(c.Unit(commands=tuple(queues[start : start + 100])))
    await room.run(c.Unit(commands=tuple(rules)))


def fill_in(value: Any, ids: dict[str, str]) -> Any:
    """With ids where names of messages stand, in texts and in what holds texts."""
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], value)
    if isinstance(value, dict):
        return {name: fill_in(each, ids) for name, each in value.items()}
    return value


async def by_python(services: Services, wrong: WrongInput, ids: dict[str, str]) -> str:
    """Here; or in the server, as a command does that runs beside it."""
    try:
        await wrong.python(services, callers.owner(actor="tester"), ids)
    except PostroomError as error:
        return error.code
    return "accepted"


async def by_http(house: House, wrong: WrongInput, ids: dict[str, str]) -> str | None:
    if wrong.http is None:
        return None
    method, path, body = wrong.http
    answer = await house.http.request(method, "/v1" + fill_in(path, ids), json=fill_in(body, ids))
    if answer.status_code < 400:
        return "accepted"
    assert "Extra inputs" not in answer.text, f"{wrong.name}: the request itself is misspelt"
    assert "Not Found" not in answer.text, f"{wrong.name}: there is no such path"
    return answer.json()["error"]["code"].removeprefix("SCAIQUEUE_")


async def by_mcp(house: House, wrong: WrongInput, ids: dict[str, str]) -> str | None:
    if wrong.mcp is None:
        return None
    arguments = fill_in(wrong.mcp, ids)
    went_well, said = await call_tool(house, TOKEN, arguments.pop("tool"), **arguments)
    found = re.search(r"\((\w+)\)$", said)
    return "accepted" if went_well else found[1] if found else said


def by_cli(wrong: WrongInput, ids: dict[str, str]) -> str | None:
    if wrong.cli is None:
        return None
    words = tuple(wrong.cli.split()) if isinstance(wrong.cli, str) else wrong.cli
    said, stdin = io.StringIO(), io.TextIOWrapper(io.BytesIO(json.dumps(wrong.stdin).encode()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", stdin)
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            code = run(["--json", *(ids_in(word, ids) for word in words)])
    if code == 0:
        return "accepted"
    error = json.loads(said.getvalue().strip().splitlines()[-1])["error"]
    return f"USAGE: {error['message']}" if error["code"] == "USAGE" else error["code"]


def ids_in(word: str, ids: dict[str, str]) -> str:
    return fill_in(word, ids) if re.fullmatch(r"\{\w+\}", word) else word


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Codes:
    """Each input by each way: through the server while it runs, then at the shell over the same store."""
    folder = tmp_path_factory.mktemp("same_errors")
    found: dict[tuple[str, str], str | None] = {}
    ids: dict[str, str] = {}

    async def ask() -> None:
        async with opened(folder, works=False) as house:
            ids.update(await prepare(house))
            head = await house.room.head()
            async with remote_services(house.url, TOKEN) as remote:
                for wrong in WRONG:
                    found[wrong.name, "python"] = await by_python(house.deps.services, wrong, ids)
                    found[wrong.name, "rpc"] = await by_python(remote, wrong, ids)
                    found[wrong.name, "http"] = await by_http(house, wrong, ids)
                    found[wrong.name, "mcp"] = await by_mcp(house, wrong, ids)
            found["", "changes"] = str((await house.room.head()).seq - head.seq)

    asyncio.run(ask())
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("POSTROOM")]:
            patch.delenv(name)
        patch.setenv("POSTROOM_HOME", str(folder / "home"))
        patch.chdir(folder)
        for wrong in WRONG:
            found[wrong.name, "cli"] = by_cli(wrong, ids)
    return {asked: code for asked, code in found.items() if code is not None}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_input_gets_one_code_by_every_way(codes: Codes, wrong: WrongInput) -> None:
    told = {way: codes[wrong.name, way] for way in WAYS if (wrong.name, way) in codes}
    assert told == dict.fromkeys(told, wrong.code)
    assert len(told) >= 2


def test_what_was_refused_has_changed_nothing(codes: Codes) -> None:
    assert codes["", "changes"] == "0"


def test_no_two_inputs_have_one_name() -> None:
    assert len({wrong.name for wrong in WRONG}) == len(WRONG)
