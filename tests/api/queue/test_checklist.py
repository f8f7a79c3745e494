"""The capabilities of the work-queue service, row by row, over HTTP on SQLite.

Each test is named by its row of the acceptance list. Details are tried in the other files of this folder.
"""

import asyncio
import base64
from datetime import UTC, datetime
from typing import Any

from postroom.clock import SECOND, ManualClock
from postroom.kernel.housekeeping import housekeepers
from postroom.kernel.ledger import fold
from tests.api.queue.service import Answer, Caller, Service

SCOPE = "/scopes/work"
JOBS = SCOPE + "/queues/jobs"


def at(clock: ManualClock, seconds: float) -> str:
    return datetime.fromtimestamp((clock.now() / SECOND) + seconds, UTC).isoformat()


async def publish(caller: Caller, body: Any = None, queue: str = JOBS, **options: Any) -> Any:
    return await caller.post(queue + "/messages", {"body": body, **options})


async def claim(caller: Caller, queue: str = JOBS, **wish: Any) -> Any:
    return await caller.post(queue + "/claim", wish)


async def settle(caller: Caller, message: Any, verb: str, **body: Any) -> Answer:
    path = f"{SCOPE}/messages/{message['id']}/{verb}"
    return await caller("POST", path, {"claim_token": message["claim_token"], **body})


async def message_of(caller: Caller, message: Any) -> Any:
    return await caller.get(f"{SCOPE}/messages/{message['id']}")


async def test_row_01_create_list_read_scope(owner: Caller) -> None:
    made = await owner("POST", "/scopes", {"slug": "orders", "display_name": "Orders", "description": "All"})
    assert made.status == 201
    assert (made.data["slug"], made.data["display_name"], made.data["state"]) == (
        "orders",
        "Orders",
        "active",
    )
    assert await owner.get("/scopes/orders") == made.data == await owner.get(f"/scopes/{made.data['id']}")
    assert made.data in await owner.get("/scopes")


async def test_row_02_five_system_queues_are_seeded_with_a_scope(jobs: Caller) -> None:
    queues = await jobs.get(SCOPE + "/queues")
    seeded = {queue["slug"] for queue in queues if queue["system"]}
    assert seeded == {"_dead_letter", "_events", "_audit", "_integrity", "_corrections"}


async def test_row_03_scope_pause_resume_archive_unarchive_delete(jobs: Caller) -> None:
    await publish(jobs, 1)
    for close, state, reopen in (("pause", "paused", "resume"), ("archive", "archived", "unarchive")):
        assert (await jobs.post(f"{SCOPE}/{close}"))["state"] == state
        refused = await jobs("POST", JOBS + "/messages", {"body": 2})
        assert (refused.status, refused.code) == (409, "SCAIQUEUE_SCOPE_PAUSED")
        assert await claim(jobs) == [], "an empty list, not an error"
        assert (await jobs.post(f"{SCOPE}/{reopen}"))["state"] == "active"
    assert (await jobs("DELETE", SCOPE)).status == 409
    [message] = await claim(jobs)
    await settle(jobs, message, "complete")
    assert (await jobs("DELETE", SCOPE)).status == 204
    assert (await jobs("GET", SCOPE)).status == 404


async def test_row_04_create_list_read_queue(jobs: Caller) -> None:
    made = await jobs.post(SCOPE + "/queues", {"slug": "late", "ordering": "deadline", "description": "x"})
    assert await jobs.get(f"{SCOPE}/queues/{made['id']}") == made == await jobs.get(SCOPE + "/queues/late")
    assert made in await jobs.get(SCOPE + "/queues")
    assert (made["ordering"], made["consumer_mode"], made["depth_pending"]) == ("deadline", "competing", 0)


async def test_row_05_queue_pause_resume_drain_archive_delete_update(jobs: Caller) -> None:
    await publish(jobs, 1)
    closings = (
        ("pause", "paused", "resume", 0),
        ("drain", "draining", "resume", 1),
        ("archive", "archived", "unarchive", 0),
    )
    for close, state, reopen, handed_out in closings:
        assert (await jobs.post(f"{JOBS}/{close}"))["state"] == state
        refused = await jobs("POST", JOBS + "/messages", {"body": 2})
        assert (refused.status, refused.code) == (409, "SCAIQUEUE_QUEUE_PAUSED")
        claimed = await claim(jobs)
        assert len(claimed) == handed_out
        for message in claimed:
            await settle(jobs, message, "release")
        await jobs.post(f"{JOBS}/{reopen}")
    assert (await jobs("PATCH", JOBS, {"max_depth": 7})).data["max_depth"] == 7
    assert (await jobs("DELETE", JOBS)).code == "SCAIQUEUE_NOT_EMPTY"
    [message] = await claim(jobs)
    await settle(jobs, message, "complete")
    assert (await jobs("DELETE", JOBS)).status == 204
    assert (await jobs("GET", JOBS)).code == "SCAIQUEUE_QUEUE_NOT_FOUND"


async def test_row_06_a_duplicate_slug_is_a_conflict_and_returns_nothing(jobs: Caller) -> None:
    for path, body in (("/scopes", {"slug": "work"}), (SCOPE + "/queues", {"slug": "jobs"})):
        refused = await jobs("POST", path, body)
        assert (refused.status, refused.code) == (409, "SLUG_CONFLICT")
        assert "data" not in refused.document


async def test_row_07_publish_checks_states_then_writes_row_and_place(jobs: Caller) -> None:
    made = await jobs("POST", JOBS + "/messages", {"body": {"n": 1}})
    assert (made.status, made.data["state"]) == (201, "pending")
    assert (await jobs.get(JOBS))["depth_pending"] == 1
    [listed] = await jobs.get(JOBS + "/messages")
    assert listed["id"] == made.data["id"]


async def test_row_08_all_message_fields_with_defaults(jobs: Caller, service: Service) -> None:
    message = await publish(jobs)
    defaults = {
        "tenant_id": "default",
        "message_type": "message",
        "content_type": "application/json",
        "priority_tier": "normal",
        "priority_score": 500,
        "labels": {},
        "state": "pending",
        "attempts": 0,
        "hops": 0,
        "correlation_id": message["id"],
    }
    assert {name: message[name] for name in defaults} == defaults
    unset = (
        "body ttl_seconds deadline delay_until visible_at idempotency_key hitl_spec causation_id parent_id "
    )
    unset += "claimed_by_type claimed_by_id claimed_at claim_expires_at failure_reason result completed_at"
    assert {name: message[name] for name in unset.split()} == dict.fromkeys(unset.split())
    scope, queue = await jobs.get(SCOPE), await jobs.get(JOBS)
    assert (message["scope_id"], message["queue_id"]) == (scope["id"], queue["id"])
    agent = await service.key(actor_type="agent", assigned_user_id="robby")
    sent = await publish(
        agent, "x", message_type="order.new", labels={"a": 1}, correlation_id="c", ttl_seconds=9
    )
    assert (sent["source_type"], sent["source_id"], sent["labels"]) == ("agent", "robby", {"a": 1})
    opaque = base64.b64encode(b"\xff\x00").decode()
    sent = await publish(jobs, opaque, content_type="application/octet-stream")
    assert (sent["body"], sent["body_encoding"]) == (opaque, "base64")


async def test_row_09_fifo_ordering(jobs: Caller, clock: ManualClock) -> None:
    for n in range(5):
        await publish(jobs, n, priority_tier="critical" if n % 2 else "low")
        clock.advance(0.001)
    assert [message["body"] for message in await claim(jobs, batch_size=5)] == [0, 1, 2, 3, 4]


async def test_row_10_priority_ordering_with_age_tie_break(jobs: Caller, clock: ManualClock) -> None:
    await jobs.post(SCOPE + "/queues", {"slug": "ranked", "ordering": "priority"})
    queue = SCOPE + "/queues/ranked"
    for name, tier, score in (
        ("a", "high", 0),
        ("b", "normal", 1000),
        ("c", "critical", 0),
        ("d", "high", 250),
    ):
        await publish(jobs, name, queue, priority_tier=tier, priority_score=score)
        clock.advance(1)
    got = [message["body"] for message in await claim(jobs, queue, batch_size=4)]
    assert got == ["c", "d", "a", "b"]


async def test_row_11_deadline_ordering(jobs: Caller, clock: ManualClock) -> None:
    await jobs.post(SCOPE + "/queues", {"slug": "late", "ordering": "deadline"})
    queue = SCOPE + "/queues/late"
    await publish(jobs, "none", queue)
    await publish(jobs, "later", queue, deadline=at(clock, 200))
    await publish(jobs, "sooner", queue, deadline=at(clock, 100))
    got = [message["body"] for message in await claim(jobs, queue, batch_size=3)]
    assert got == ["sooner", "later", "none"]


async def test_row_12_competing_consumers_claim_atomically(jobs: Caller) -> None:
    for n in range(20):
        await publish(jobs, n)
    taken = await asyncio.gather(*(claim(jobs, batch_size=3) for _ in range(10)))
    bodies = [message["body"] for batch in taken for message in batch]
    assert sorted(bodies) == list(range(20)), "each message went to one consumer"


async def test_row_13_broadcast_to_every_subscriber(jobs: Caller) -> None:
    made = await jobs.post(SCOPE + "/queues", {"slug": "news", "consumer_mode": "broadcast"})
    queue = SCOPE + "/queues/news"
    for name in ("ann", "bob"):
        await jobs.post(SCOPE + "/subscriptions", {"queue_id": made["id"], "name": name})
    sent = await publish(jobs, "hello", queue)
    for name in ("ann", "bob"):
        [copy] = await claim(jobs, queue, subscription=name)
        assert (copy["body"], copy["parent_id"]) == ("hello", sent["id"])
        await settle(jobs, copy, "complete")
    assert (await message_of(jobs, sent))["state"] == "completed"
    found = await jobs.get(SCOPE + "/subscriptions")
    assert [each["progress"]["completed"] for each in found] == [1, 1]


async def test_row_14_claim_in_batches_list_answer_empty_when_nothing(jobs: Caller) -> None:
    for n in range(3):
        await publish(jobs, n)
    assert len(await claim(jobs, batch_size=2)) == 2
    assert len(await claim(jobs, batch_size=2)) == 1
    answer = await jobs("POST", JOBS + "/claim")
    assert (answer.status, answer.data) == (200, [])


async def test_row_15_claim_lock_with_visibility_timeout(jobs: Caller, clock: ManualClock) -> None:
    await publish(jobs, 1)
    [message] = await claim(jobs)
    assert (message["attempts"], message["state"]) == (1, "claimed")
    assert message["claim_expires_at"] == at(clock, 30).replace("+00:00", ".000Z")
    assert await claim(jobs) == []
    clock.advance(31)
    [again] = await claim(jobs)
    assert (again["id"], again["attempts"]) == (message["id"], 2)


async def test_row_16_complete_with_outcome_and_event(jobs: Caller) -> None:
    await publish(jobs, 1, correlation_id="talk")
    [message] = await claim(jobs)
    done = await settle(jobs, message, "complete", result={"paid": True})
    assert (done.data["state"], done.data["result"]) == ("completed", {"paid": True})
    assert (await settle(jobs, message, "complete", result={"paid": True})).status == 200, (
        "a repeat is no error"
    )
    steps = await jobs.get(SCOPE + "/audit/trace/talk")
    assert "message.completed" in [step["event_type"] for step in steps]


async def test_row_17_fail_with_reason_retries_while_attempts_are_left(
    jobs: Caller, clock: ManualClock
) -> None:
    await publish(jobs, 1)
    for attempt in (1, 2):
        [message] = await claim(jobs)
        assert message["attempts"] == attempt
        failed = await settle(jobs, message, "fail", reason=f"try {attempt}")
        assert (failed.data["state"], failed.data["failure_reason"]) == ("pending", f"try {attempt}")
        clock.advance(60)


async def test_row_18_release(jobs: Caller) -> None:
    await publish(jobs, 1)
    [message] = await claim(jobs)
    assert (await settle(jobs, message, "release")).data["state"] == "pending"
    [again] = await claim(jobs)
    assert (again["id"], again["attempts"]) == (message["id"], 1)


async def test_row_19_extend(jobs: Caller, clock: ManualClock) -> None:
    await publish(jobs, 1)
    [message] = await claim(jobs)
    clock.advance(20)
    extended = await settle(jobs, message, "extend", extend_s=100)
    assert extended.data["claim_expires_at"] == at(clock, 100).replace("+00:00", ".000Z")
    clock.advance(50)
    assert await claim(jobs) == []
    assert (await settle(jobs, message, "complete")).status == 200


async def test_row_20_retry_backoff(jobs: Caller, clock: ManualClock) -> None:
    await publish(jobs, 1)
    [message] = await claim(jobs)
    failed = await settle(jobs, message, "fail", reason="x")
    assert at(clock, 8) <= failed.data["visible_at"].replace("Z", "+00:00") <= at(clock, 12), "10 s ± 20 %"
    assert await claim(jobs) == []
    clock.advance(13)
    assert len(await claim(jobs)) == 1


async def test_row_21_dead_letter_to_the_scopes_dead_letters(jobs: Caller, clock: ManualClock) -> None:
    sent = await publish(jobs, 1, labels={"a": "b"})
    for _ in range(3):
        clock.advance(60)
        [message] = await claim(jobs)
        await settle(jobs, message, "fail", reason="no way")
    [dead] = await jobs.get(SCOPE + "/queues/_dead_letter/messages")
    assert (dead["id"], dead["state"], dead["failure_reason"]) == (sent["id"], "dead_lettered", "no way")
    assert (dead["origin_queue"], dead["attempts"], dead["labels"]) == ("jobs", 3, {"a": "b"})
    replayed = await jobs.post(f"{SCOPE}/messages/{sent['id']}/replay")
    assert (replayed["state"], replayed["queue"], replayed["attempts"]) == ("pending", "jobs", 0)


async def test_row_22_reclaim_after_crash(live: Service) -> None:
    owner = live.owner
    await owner.post("/scopes", {"slug": "work"})
    await owner.post(SCOPE + "/queues", {"slug": "jobs", "visibility_timeout_s": 0.3})
    sent = await publish(owner, 1)
    assert len(await claim(owner)) == 1, "and this consumer is never heard of again"
    [again] = await claim(owner, wait_s=20)
    assert (again["id"], again["attempts"]) == (sent["id"], 2)


async def test_row_23_delayed_visibility(jobs: Caller, clock: ManualClock) -> None:
    sent = await publish(jobs, 1, delay_until=at(clock, 60))
    assert (sent["state"], sent["visible_at"]) == ("pending", sent["delay_until"])
    assert await claim(jobs) == []
    clock.advance(61)
    assert len(await claim(jobs)) == 1


async def test_row_24_ttl_and_deadline_expiry(jobs: Caller, clock: ManualClock, service: Service) -> None:
    short = await publish(jobs, 1, ttl_seconds=10)
    dated = await publish(jobs, 2, deadline=at(clock, 20))
    clock.advance(30)
    assert await claim(jobs, batch_size=5) == [], "an expired message is not handed out"
    await service.room.housekeep(housekeepers.EXPIRY)
    assert [(await message_of(jobs, each))["state"] for each in (short, dated)] == ["expired", "expired"]


async def test_row_25_idempotent_publish_and_conflict(jobs: Caller) -> None:
    first = await jobs("POST", JOBS + "/messages", {"body": {"n": 1, "m": 2}, "idempotency_key": "k"})
    again = await jobs("POST", JOBS + "/messages", {"body": {"m": 2, "n": 1}, "idempotency_key": "k"})
    assert (first.status, again.status) == (201, 200)
    assert first.data["id"] == again.data["id"]
    other = await jobs("POST", JOBS + "/messages", {"body": {"n": 2}, "idempotency_key": "k"})
    assert (other.status, other.code) == (409, "SCAIQUEUE_IDEMPOTENCY_CONFLICT")
    assert (await jobs.get(JOBS))["depth_pending"] == 1


async def test_row_26_max_depth_overflow_policy_queue_full(jobs: Caller) -> None:
    await jobs("PATCH", JOBS, {"max_depth": 1})
    await publish(jobs, 1)
    full = await jobs("POST", JOBS + "/messages", {"body": 2})
    assert (full.status, full.code) == (429, "SCAIQUEUE_QUEUE_FULL")
    await jobs("PATCH", JOBS, {"overflow_policy": "dead_letter"})
    assert (await publish(jobs, 3))["state"] == "dead_lettered"
    await jobs("PATCH", JOBS, {"overflow_policy": "drop_oldest"})
    assert (await publish(jobs, 4))["state"] == "pending"
    assert [message["body"] for message in await claim(jobs, batch_size=5)] == [4]


async def test_row_27_depth_counters(jobs: Caller) -> None:
    async def depths() -> tuple[int, int]:
        queue = await jobs.get(JOBS)
        return queue["depth_pending"], queue["depth_claimed"]

    for n in range(3):
        await publish(jobs, n)
    assert await depths() == (3, 0)
    messages = await claim(jobs, batch_size=2)
    assert await depths() == (1, 2)
    await settle(jobs, messages[0], "complete")
    await settle(jobs, messages[1], "release")
    assert await depths() == (2, 0)


async def test_row_32_children_carry_parent_causation_and_correlation(jobs: Caller) -> None:
    first = await publish(jobs, 1, correlation_id="talk")
    second = await publish(jobs, 2, correlation_id="talk", causation_id=first["id"])
    assert (second["causation_id"], second["correlation_id"]) == (first["id"], "talk")


async def test_row_34_schemas_by_name_and_version_validate_bodies(jobs: Caller) -> None:
    schema = {"type": "object", "required": ["total"], "properties": {"total": {"type": "number"}}}
    made = await jobs("POST", SCOPE + "/schemas", {"name": "order", "version": "1.0", "schema": schema})
    assert (made.status, made.data["version"]) == (201, 1)
    newer = {**schema, "required": ["total", "currency"]}
    assert (await jobs.post(SCOPE + "/schemas", {"name": "order", "schema": newer}))["version"] == 2
    taken = await jobs("POST", SCOPE + "/schemas", {"name": "order", "version": 1, "schema": schema})
    assert (taken.status, taken.code) == (409, "SCAIQUEUE_SCHEMA_CONFLICT")
    await jobs("PATCH", JOBS, {"schema": "order@1"})
    await publish(jobs, {"total": 3})
    refused = await jobs("POST", JOBS + "/messages", {"body": {"total": "three"}})
    assert (refused.status, refused.code) == (422, "SCAIQUEUE_SCHEMA_VIOLATION")
    assert refused.document["error"]["details"][0]["field"] == "body.total"
    await jobs("PATCH", JOBS, {"schema": None})
    own = await jobs("POST", JOBS + "/messages", {"body": {"total": 3}, "schema": "order"})
    assert own.code == "SCAIQUEUE_SCHEMA_VIOLATION", "the newest asks for a currency"
    assert [each["version"] for each in await jobs.get(SCOPE + "/schemas", name="order")] == [1, 2]
    assert (await jobs.get(SCOPE + "/schemas/order/latest"))["schema"] == newer


async def test_row_40_subscriptions_and_dedup_check(jobs: Caller) -> None:
    await jobs.post(SCOPE + "/queues", {"slug": "news", "consumer_mode": "broadcast"})
    made = await jobs.post(SCOPE + "/subscriptions", {"queue_id": "news", "name": "ann"})
    place = f"{SCOPE}/subscriptions/{made['id']}"
    assert await jobs.post(place + "/dedup", {"message_id": "m1"}) == {"duplicate": False}
    assert await jobs.post(place + "/dedup", {"message_id": "m1"}) == {"duplicate": True}
    again = await jobs("POST", SCOPE + "/subscriptions", {"queue_id": "news", "name": "ann"})
    assert again.code == "SLUG_CONFLICT"
    assert (await jobs("DELETE", place)).status == 204
    assert (await jobs("GET", place)).code == "SCAIQUEUE_SUBSCRIPTION_NOT_FOUND"


async def test_row_48_messages_by_correlation_id(jobs: Caller) -> None:
    first = await publish(jobs, 1, correlation_id="talk")
    await publish(jobs, 2, correlation_id="other")
    third = await publish(jobs, 3, correlation_id="talk")
    chain = await jobs.get(SCOPE + "/messages", correlation_id="talk")
    assert [message["id"] for message in chain] == [first["id"], third["id"]]


async def test_row_50_visibility_enforcer(jobs: Caller, clock: ManualClock, service: Service) -> None:
    sent = await publish(jobs, 1)
    await claim(jobs)
    clock.advance(31)
    assert await service.room.housekeep(housekeepers.VISIBILITY) == 1
    found = await message_of(jobs, sent)
    assert (found["state"], found["claimed_by_id"]) == ("pending", None)


async def test_row_51_expiry_enforcer(jobs: Caller, clock: ManualClock, service: Service) -> None:
    sent = await publish(jobs, 1, ttl_seconds=5)
    clock.advance(6)
    assert await service.room.housekeep(housekeepers.EXPIRY) == 1
    assert (await message_of(jobs, sent))["state"] == "expired"


async def test_row_52_archiver(jobs: Caller, clock: ManualClock, service: Service) -> None:
    await publish(jobs, 1)
    [message] = await claim(jobs)
    await settle(jobs, message, "complete")
    clock.advance(3599)
    assert await service.room.housekeep(housekeepers.ARCHIVER) == 0
    clock.advance(2)
    assert await service.room.housekeep(housekeepers.ARCHIVER) == 1
    found = await message_of(jobs, message)
    assert (found["archived"], found["state"]) == (True, "completed"), "still readable by its id"
    assert len(await jobs.get(JOBS + "/messages")) == 1, "and listed"


async def test_row_53_dead_letter_monitor(jobs: Caller, service: Service) -> None:
    await publish(jobs, 1)
    [message] = await claim(jobs)
    await settle(jobs, message, "fail", reason="x", retry=False)
    assert await service.room.housekeep(housekeepers.MONITOR) == 1
    grown = [event async for event in service.room.events() if event.type == "dead_letters.grew"]
    assert [event.details for event in grown] == [{"depth": 1, "before": 0}]


async def test_row_54_priority_aging(jobs: Caller, clock: ManualClock, service: Service) -> None:
    await jobs.post(SCOPE + "/queues", {"slug": "ranked", "ordering": "priority"})
    sent = await publish(jobs, 1, SCOPE + "/queues/ranked", priority_score=970)
    clock.advance(601)
    await service.room.housekeep(housekeepers.AGING)
    assert (await message_of(jobs, sent))["priority_score"] == 1000


async def test_row_55_system_agents_with_real_figures(
    jobs: Caller, clock: ManualClock, service: Service
) -> None:
    await publish(jobs, 1, ttl_seconds=5)
    clock.advance(6)
    await service.room.housekeep(housekeepers.EXPIRY)
    agents = {agent["name"]: agent for agent in await jobs.get("/system-agents")}
    assert {"visibility_timeout_enforcer", "message_archiver", "dead_letter_monitor"} <= set(agents)
    expiry = agents["expiry_enforcer"]
    assert (expiry["every_s"], expiry["last_status"], expiry["items_processed"]) == (60, "ok", 1)
    tenants = {agent["name"]: agent for agent in await (await service.key()).get("/system-agents")}
    assert "items_processed" not in tenants["expiry_enforcer"], "it would tell how much others do"


async def test_row_58_response_and_error_envelope(jobs: Caller) -> None:
    answer = await jobs("GET", SCOPE)
    assert set(answer.document) == {"status", "data"}
    assert answer.document["status"] == "ok"
    listing = await jobs("GET", SCOPE + "/queues", limit=2)
    assert set(listing.document) == {"status", "data", "has_more", "next_cursor"}
    assert listing.document["has_more"] is True
    seen = listing.data
    while listing.document["has_more"]:
        listing = await jobs("GET", SCOPE + "/queues", limit=2, cursor=listing.document["next_cursor"])
        seen += listing.data
    assert len({queue["id"] for queue in seen}) == len(seen) == 6
    refused = await jobs("POST", SCOPE + "/queues", {"slug": "x", "ordering": "zigzag", "colour": "red"})
    assert (refused.status, refused.document["status"], refused.code) == (422, "error", "VALIDATION_ERROR")
    assert refused.document["error"]["details"][0] == {
        "field": "colour",
        "message": "Extra inputs are not permitted",
    }
    assert refused.document["meta"]["request_id"] == refused.headers["x-request-id"]


async def test_row_59_the_four_stated_error_codes(jobs: Caller) -> None:
    await jobs("PATCH", JOBS, {"max_depth": 1})
    await publish(jobs, 1, idempotency_key="k")
    codes = [(await jobs("POST", JOBS + "/messages", {"body": 2, "idempotency_key": "k"})).code]
    codes.append((await jobs("POST", JOBS + "/messages", {"body": 2})).code)
    await jobs.post(JOBS + "/pause")
    codes.append((await jobs("POST", JOBS + "/messages", {"body": 2})).code)
    await jobs.post(SCOPE + "/pause")
    codes.append((await jobs("POST", JOBS + "/messages", {"body": 2})).code)
    names = ("IDEMPOTENCY_CONFLICT", "QUEUE_FULL", "QUEUE_PAUSED", "SCOPE_PAUSED")
    assert codes == [f"SCAIQUEUE_{name}" for name in names]


async def test_row_62_clients_of_sibling_products(jobs: Caller, service: Service) -> None:
    """One writes the ordering where the mode belongs; another knows places by slug and awaits a decision."""
    flow = Caller(jobs.client, jobs.token, prefix="/v1/modules/scaiqueue")
    made = await flow.post(SCOPE + "/queues", {"slug": "a", "consumer_mode": "priority", "purpose": "intake"})
    assert (made["ordering"], made["consumer_mode"]) == ("priority", "competing")
    made = await flow.post(SCOPE + "/queues", {"slug": "b", "consumer_mode": "broadcast"})
    assert (made["ordering"], made["consumer_mode"]) == ("fifo", "broadcast")
    spec = {"sections": [{"type": "decision", "field": "decision", "options": ["yes", "no"]}]}
    asked = await publish(
        flow, {}, message_type="hitl_request", correlation_id="checkpoint-7", hitl_spec=spec
    )
    await flow.post(f"{SCOPE}/messages/{asked['id']}/review", {"answer": {"decision": "yes"}})
    [done] = await flow.get(SCOPE + "/messages", correlation_id="checkpoint-7")
    assert (done["state"], done["result"]) == ("completed", {"decision": "yes"})


async def test_the_ledger_of_everything_done_over_http_folds_to_the_store(
    jobs: Caller, service: Service
) -> None:
    await publish(jobs, 1)
    [message] = await claim(jobs)
    await settle(jobs, message, "complete")
    await publish(jobs, 2)
    events = [event async for event in service.room.events()]
    assert fold(events) == service.room._core.read(lambda reader: reader.folded())
