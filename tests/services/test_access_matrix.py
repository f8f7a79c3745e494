"""Every method of every service, asked by everybody whom a queue is closed to: it tells and changes nothing.

The matrix is made from the services themselves, so that a method that is added is asked too.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom.clock import ManualClock
from postroom.errors import NotFound, PostroomError
from postroom.kernel.access import acl
from postroom.kernel.access.permissions import Permission
from postroom.kernel.erasure.subject import Subject
from postroom.kernel.model import NewMessage
from postroom.kernel.states import State
from postroom.services import callers
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service
from postroom.services.claims import CompletedWork
from postroom.services.container import Services
from postroom.services.errors import OwnerOnly, PermissionMissing, ScopeNotYours
from postroom.services.webhooks import WebhookDraft
from postroom.webhooks.delivery import DeliveryWorkers
from postroom.webhooks.relay import Relay
from postroom.webhooks.service import make_queue
from tests.services.conftest import ServedRoom
from tests.services.lists import close_queue

# Whoever reads one of these words has learned something of the closed queue.
SECRET = "hush"
CLOSED = "vault"
NOTHING = "nowhere"
ALL = tuple(Permission)
QUESTION = {"sections": [{"type": "decision", "field": "decision", "options": ["yes", SECRET]}]}
# They are about no queue: what they answer with is about the scope, the tenant, the key or the server.
# `check_seen` and `read` of a subscription go by its public id, which only `list_all` tells; a claim is given
# back by the entrance that made it.
ELSEWHERE = {("subscriptions", "check_seen"), ("subscriptions", "read"), ("claims", "give_back")}
ABOUT_NO_QUEUE = {"schemas", "patterns", "trusts", "roles", "tenants", "keys", "housekeepers", "units"}


@dataclass
class Vault:
    """A room with a queue that is bob's alone, in which there is one of everything."""

    served: ServedRoom
    ids: dict[str, str]

    async def snapshot(self) -> list[Any]:
        """Everything of the closed queues that could be changed."""
        room, ids = self.served.room, self.ids
        queues = [await room.queue(f"work/{name}") for name in (CLOSED, f"{CLOSED}_news")]
        found: list[Any] = [(queue.state, queue.settings) for queue in queues]
        for name in ("waiting", "claimed", "dead", "review", "done"):
            message = await room.get(ids[name])
            found.append((name, message.state, message.queue, message.body, message.attempts, message.result))
        found += [await room.counts(f"work/{CLOSED}"), await room.subscriptions(f"work/{CLOSED}_news")]
        lists = await room.look(lambda reader: reader.documents("default", acl.ENTRY, "", "", 100))
        return [*found, [document.data for document in lists]]


async def _fill(served: ServedRoom) -> dict[str, str]:
    room, services, owner = served.room, served.services, served.owner
    await room.create_queue(f"work/{CLOSED}", max_retries=0, description=SECRET)
    await room.create_queue(f"work/{CLOSED}_news", consumer_mode="broadcast")
    path = f"work/{CLOSED}"
    labels = {"person": SECRET, "kind": "known"}
    review = await room.publish(path, SECRET, hitl_spec=QUESTION, labels=labels, type="question")
    done, dead, claimed = [
        await room.publish(path, SECRET, labels=labels, correlation_id="talk", type=kind)
        for kind in ("done", "dead", "claimed")
    ]
    taken = await room.claim(path, limit=4)
    held = {message.id: message for message in taken}
    await room.release(held[review.id])
    await room.complete(held[done.id], {"said": SECRET})
    await room.fail(held[dead.id], SECRET, retry=False)
    waiting = await room.publish(path, SECRET, labels=labels, correlation_id="talk")
    await room.publish("work/open", "plain", labels={"kind": "known"})
    await room.subscribe(f"work/{CLOSED}_news", "sub")
    await room.schedule("work/hush-hour", path, SECRET, every_s=86_400)
    await services.subscriptions.subscribe(owner, "work", "_events", "events")
    rule = await services.rules.create(
        owner,
        "work",
        {"name": SECRET, "source_queue_id": CLOSED, "enabled": False, "action": {"type": "archive"}},
    )
    stream = await services.streams.open(owner, "work", queue=CLOSED)
    await services.streams.append(owner, "work", stream.stream.id, [(0, SECRET.encode())])
    hook = await services.webhooks.create(owner, WebhookDraft(url="https://example.org/", events=["*"]))
    await Relay(room).catch_up()
    await make_queue(room)
    after = await room.publish(path, SECRET, labels=labels)
    await Relay(room).catch_up()
    assert len(await services.webhooks.list_deliveries(owner, hook.id)) == 1, after
    job = await services.erasures.create(owner, "work", Subject(field="labels.person", value=SECRET))
    return {
        "waiting": waiting.id,
        "claimed": claimed.id,
        "dead": dead.id,
        "review": review.id,
        "done": done.id,
        "token": held[claimed.id].claim_token or "",
        "rule": rule.rule.id,
        "stream": stream.stream.id,
        "hook": hook.id,
        "job": job.id,
    }


@pytest.fixture
async def vault(tmp_path: Path) -> AsyncIterator[Vault]:
    clock = ManualClock()
    url = f"sqlite:///{tmp_path / 'room.db'}"
    async with postroom.open(
        url, durability="relaxed", clock=clock, housekeeping=False, actor="tester"
    ) as room:
        for scope in ("work", "other"):
            await room.create_scope(scope)
        await room.create_queue("work/open")
        served = ServedRoom(room, Services(room, check_address=lambda url: None), clock)
        ids = await _fill(served)
        for name in (CLOSED, f"{CLOSED}_news"):
            await close_queue(served, f"work/{name}", ("user", "bob"), *ALL)
        [entry] = await served.services.lists.list_all(served.owner, "work", CLOSED)
        yield Vault(served, {**ids, "entry": entry.id})


async def outsiders(vault: Vault) -> dict[str, Caller]:
    """Everybody whom the queue is closed to, with every right besides."""
    served = vault.served
    other = await served.room.scope("other")
    return {
        "a key that its list does not name": await served.key(*ALL),
        "a key of another scope": await served.key(*ALL, scope_id=other.id),
        "an administrator of another tenant": await served.key(tenant="globex", role="tenant_admin"),
        "an agent": callers.agent("coder"),
    }


def methods() -> list[tuple[str, str]]:
    """All that an entrance can call."""
    services = Services(Any, clock=ManualClock())  # type: ignore[arg-type]
    return [
        (name, method)
        for name, service in vars(services).items()
        if isinstance(service, Service)
        for method, _ in inspect.getmembers(service, inspect.iscoroutinefunction)
        if not method.startswith("_")
    ]


def arguments(service: str, method: str, queue: str, ids: dict[str, str]) -> tuple[list[Any], dict[str, Any]]:
    """What a method is asked with, about the queue and what lies in it."""
    scope, place = {"scope": "work"}, ["work", queue]
    subject = Subject(field="labels.kind", value="known")
    rule = {"name": "r", "source_queue_id": queue, "action": {"type": "archive"}}
    entry = {"principal_type": "role", "principal_id": "me", "permissions": ["view"]}
    held = [ids["claimed"], ids["token"]]
    hook = WebhookDraft(url="https://example.org/mine")
    known: dict[str, tuple[list[Any], dict[str, Any]]] = {
        "scopes.create": (["new"], {}),
        "scopes.delete": (["work"], {}),
        "scopes.list_all": ([], {}),
        "scopes.list_totals": ([], {}),
        "scopes.read": (["work"], {}),
        "scopes.set_state": (["work", "resume"], {}),
        "scopes.update": (["work"], {"description": "mine"}),
        "queues.activity": ([], {}),
        "queues.create": (["work", "new", {}], {}),
        "queues.delete": (place, {}),
        "queues.list_all": (["work"], {}),
        "queues.read": (place, {}),
        "queues.search": (["work"], {}),
        "queues.set_state": ([*place, "pause"], {}),
        "queues.update": ([*place, {"max_retries": 9}], {}),
        "messages.cancel": ([ids["waiting"]], scope),
        "messages.explain": ([ids["waiting"]], scope),
        "messages.list_page": (["work"], {"correlation_id": "talk"}),
        "messages.peek": (place, {}),
        "messages.publish": ([*place, [NewMessage(body=1)]], {}),
        "messages.publish_many": ([*place, [NewMessage(body=1)]], {}),
        "messages.read": ([ids["dead"]], scope),
        "claims.claim": ([[tuple(place)]], {}),
        "claims.complete": (held, scope),
        "claims.complete_many": (["work", [CompletedWork(*held)]], {}),
        "claims.extend": (held, scope),
        "claims.fail": (held, scope),
        "claims.release": (held, scope),
        "claims.snooze": (held, {**scope, "seconds": 1}),
        "dead_letters.discard": ([ids["dead"]], scope),
        "dead_letters.discard_all": (["work"], {}),
        "dead_letters.replay": ([ids["dead"]], scope),
        "dead_letters.replay_all": (["work"], {}),
        "subscriptions.list_all": (["work"], {}),
        "subscriptions.subscribe": (["work", f"{queue}_news", "mine"], {}),
        "subscriptions.unsubscribe": (["work", "sub"], {"queue": f"{queue}_news"}),
        "queue_schedules.delete": (["work", "hush-hour"], {}),
        "queue_schedules.list_all": (["work"], {}),
        "queue_schedules.put": (["work", "hush-hour", queue, {"every_s": 60}], {}),
        "queue_schedules.read": (["work", "hush-hour"], {}),
        "queue_schedules.run": (["work", "hush-hour"], {}),
        "rules.create": (["work", rule], {}),
        "rules.delete": (["work", ids["rule"]], {}),
        "rules.list_all": (["work"], {}),
        "rules.read": (["work", ids["rule"]], {}),
        "rules.reset": (["work", ids["rule"]], {}),
        "rules.test": (["work"], {"document": {"name": "r", "action": {"type": "archive"}}, "last": 50}),
        "rules.update": (["work", ids["rule"], {"enabled": True}], {}),
        "reviews.answer": ([ids["review"], {"decision": "yes"}], scope),
        "reviews.list_everywhere": ([], {}),
        "reviews.list_open": (["work"], {}),
        "reviews.read": ([ids["review"]], scope),
        "streams.abort": (["work", ids["stream"]], {}),
        "streams.append": (["work", ids["stream"], [(1, b"x")]], {}),
        "streams.close": (["work", ids["stream"]], {}),
        "streams.follow": (["work", ids["stream"]], {}),
        "streams.list_all": (["work"], {}),
        "streams.open": (["work"], {"queue": queue}),
        "streams.read": (["work", ids["stream"]], {}),
        "streams.read_parts": (["work", ids["stream"]], {}),
        "lists.add": (place, entry),
        "lists.list_all": (place, {}),
        "lists.remove": (["work", ids["entry"], queue], {}),
        "audit.list_page": (["work"], {}),
        "audit.newest_events": ([], {}),
        "audit.trace": (["work", "talk"], {}),
        "erasures.count": (["work", subject], {}),
        "erasures.create": (["work", subject], {}),
        "erasures.erase": (["work", subject], {}),
        "erasures.execute": (["work", ids["job"]], {}),
        "erasures.list_all": (["work"], {}),
        "erasures.preview": (["work", ids["job"]], {}),
        "erasures.read": (["work", ids["job"]], {}),
        "webhooks.create": ([hook], {}),
        "webhooks.delete": ([ids["hook"]], {}),
        "webhooks.list_all": ([], {}),
        "webhooks.list_deliveries": ([ids["hook"]], {}),
        "webhooks.read": ([ids["hook"]], {}),
        "webhooks.test": ([ids["hook"]], {}),
        "webhooks.update": ([ids["hook"], hook], {}),
    }
    return known[f"{service}.{method}"]


async def ask(vault: Vault, caller: Caller, about: tuple[str, str], *, there: bool = True) -> tuple[str, str]:
    """The code of the error, if it was one, and everything that was answered."""
    ids = vault.ids if there else dict.fromkeys(vault.ids, "nope")
    args, options = arguments(*about, CLOSED if there else NOTHING, ids)
    method = getattr(getattr(vault.served.services, about[0]), about[1])
    try:
        found = await method(caller, *args, **options)
        if hasattr(found, "__aiter__"):
            found = [part async for part in found]
    except PostroomError as error:
        return error.code, ""
    return "", repr(found)


MATRIX = [about for about in methods() if about[0] not in ABOUT_NO_QUEUE and about not in ELSEWHERE]


@pytest.mark.parametrize("about", MATRIX, ids=".".join)
async def test_a_closed_queue_is_as_if_it_were_not_there(vault: Vault, about: tuple[str, str]) -> None:
    before = await vault.snapshot()
    for who, caller in (await outsiders(vault)).items():
        code, told = await ask(vault, caller, about)
        assert await vault.snapshot() == before, f"{who} changed something"
        for word in (SECRET, CLOSED):
            assert word not in told, f"{who} was told of it"
        if code:
            assert (await ask(vault, caller, about, there=False))[0] == code, f"{who} can tell it is there"


@pytest.mark.parametrize("about", MATRIX, ids=".".join)
async def test_every_right_is_asked_for(
    vault: Vault, about: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Operation] = []
    plain = Service._call

    def note(service: Service, caller: Caller, operation: Operation) -> Any:
        asked.append(operation)
        return plain(service, caller, operation)

    monkeypatch.setattr(Service, "_call", note)
    await ask(vault, vault.served.owner, about, there=False)
    wanted = {operation.permission for operation in asked}
    assert len(wanted) == 1
    others = await vault.served.key(*(set(ALL) - wanted))
    before = await vault.snapshot()
    for there in (True, False):
        code, _ = await ask(vault, others, about, there=there)
        assert code in (PermissionMissing.code, OwnerOnly.code)
    assert await vault.snapshot() == before


async def test_an_erasure_finds_only_what_its_maker_may_erase(vault: Vault) -> None:
    services, owner = vault.served.services, vault.served.owner
    subject = Subject(field="labels.kind", value="known")
    narrow = (await outsiders(vault))["a key that its list does not name"]
    assert (await services.erasures.count(narrow, "work", subject)).found == 1
    assert (await services.erasures.count(owner, "work", subject)).found == 7
    own = await services.erasures.create(narrow, "work", subject)
    assert [job.id for job in await services.erasures.list_all(narrow, "work")] == [own.id]
    assert len(await services.erasures.list_all(owner, "work")) == 2


async def test_bob_may(vault: Vault) -> None:
    """The matrix would hold of a room in which nobody may anything."""
    bob = await vault.served.key(*ALL, user_id="bob")
    for about in MATRIX:
        if about[1] in ("peek", "read", "list_open", "claim", "count", "publish"):
            code, told = await ask(vault, bob, about)
            assert code == "", about
            assert told, about


async def test_what_waits_for_a_webhook_is_not_sent_to_where_an_outsider_leads_it(vault: Vault) -> None:
    room, services, owner = vault.served.room, vault.served.services, vault.served.owner
    narrow = (await outsiders(vault))["a key that its list does not name"]
    await services.webhooks.update(narrow, vault.ids["hook"], WebhookDraft(url="https://example.org/mine"))
    workers = DeliveryWorkers(room, vault.served.clock)
    sending = asyncio.create_task(workers.run())
    async with asyncio.timeout(30):
        while True:
            [delivery] = await services.webhooks.list_deliveries(owner, vault.ids["hook"])
            if delivery.message.state not in (State.PENDING, State.CLAIMED):
                break
            await asyncio.sleep(0.01)
    workers.stop()
    await sending
    assert delivery.message.state is State.CANCELLED


async def test_what_an_outsider_subscribes_to_later_tells_it_nothing(vault: Vault) -> None:
    """Events of a scope are told in one queue, so that it is for those who may see all of the scope."""
    services = vault.served.services
    for caller in (await outsiders(vault)).values():
        with pytest.raises((NotFound, PermissionMissing, ScopeNotYours)):
            await services.subscriptions.subscribe(caller, "work", "_events", "mine")
        with pytest.raises((NotFound, PermissionMissing, ScopeNotYours)):
            await services.claims.claim(caller, [("work", "_events")], subscription="events")
