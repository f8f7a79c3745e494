"""What is no scope and no queue: bad names, unknown places, unknown settings and those out of range."""

import math
from typing import Any

import pytest
from tests.conformance.helpers import LONE_SURROGATE, refused

from postroom import Room
from postroom.errors import InvalidField, QueueNotFound, ScopeNotFound

BAD_SCOPES: list[Any] = [
    "",
    "Office",
    "-office",
    "_office",
    "of fice",
    "office!",
    "of/fice",
    "of.fice",
    "office\n",
    "bü",
    "o" * 64,
    LONE_SURROGATE,
    None,
    5,
]
BAD_QUEUES: list[Any] = [
    "",
    "default/",
    "default/Jobs",
    "default/-jobs",
    "default/jo bs",
    "default/jobs/",
    "default/jobs//x",
    "default/jobs/_x",
    "default/jobs/../x",
    "default/.jobs",
    "default/jobs\n",
    "default/jöbs",
    "default/" + "q" * 128,
    f"default/{LONE_SURROGATE}",
    None,
    5,
]


async def test_a_bad_scope_name_is_refused(room: Room) -> None:
    for slug in BAD_SCOPES:
        async with refused(room, InvalidField, "scope"):
            await room.create_scope(slug)


async def test_a_bad_queue_name_is_refused(room: Room) -> None:
    for path in BAD_QUEUES:
        async with refused(room, InvalidField, "queue"):
            await room.create_queue(path)


async def test_names_at_their_limits_are_taken(room: Room) -> None:
    for slug in ("a", "0", "s" * 63, "a-b_c-9"):
        await room.create_scope(slug)
    for slug in ("a", "0", "q" * 127, "inbox/coder", "a.b/c-d_e", "a/b/c/d"):
        queue = await room.create_queue(f"a/{slug}")
        assert (await room.queue(f"a/{slug}")).slug == queue.slug == slug


async def test_descriptions_are_bounded_texts(room: Room) -> None:
    wrong: list[Any] = ["d" * 513, 5, LONE_SURROGATE]
    for text in wrong:
        async with refused(room, InvalidField, "display_name"):
            await room.create_scope("office", display_name=text)
        async with refused(room, InvalidField, "description"):
            await room.create_scope("office", description=text)
        async with refused(room, InvalidField, "display_name"):
            await room.create_queue("jobs", display_name=text)
        async with refused(room, InvalidField, "description"):
            await room.create_queue("jobs", description=text)


async def test_an_unknown_setting_is_refused_and_the_known_ones_are_named(room: Room) -> None:
    await room.create_queue("jobs")
    for setting in ("visibility", "state", "slug", "system"):
        wrong: dict[str, Any] = {setting: 1}
        async with refused(room, InvalidField, setting, "max_retries"):
            await room.create_queue("other", **wrong)
        async with refused(room, InvalidField, setting, "max_retries"):
            await room.update_queue("jobs", **wrong)


BAD_SETTINGS: dict[str, list[Any]] = {
    "visibility_timeout_s": [0, -1, 86_401, math.nan, math.inf, "30", None],
    "max_retries": [-1, 101, 1.5, "5", None, True],
    "backoff_base_s": [-1, 86_401, math.nan],
    "backoff_cap_s": [-1, 604_801, math.nan],
    "concurrency": [0, -1, 1_000_001, 1.5, "1"],
    "max_depth": [-1, 10**12 + 1, "1"],
    "default_ttl_s": [0, -1, math.nan, 367 * 24 * 3600],
    "retention_s": [-1, math.nan, math.inf],
    "ordering": ["lifo", "", None, 1],
    "consumer_mode": ["exclusive", None],
    "overflow_policy": ["explode", None],
    "schema": ["order@", "order@x", "order@-1", "@1", "", 5],
}


@pytest.mark.parametrize("setting", BAD_SETTINGS)
async def test_a_setting_out_of_range_is_refused_and_named(room: Room, setting: str) -> None:
    await room.create_queue("jobs")
    for value in BAD_SETTINGS[setting]:
        async with refused(room, InvalidField, setting):
            await room.create_queue("other", **{setting: value})
        async with refused(room, InvalidField, setting):
            await room.update_queue("jobs", **{setting: value})


async def test_unknown_places_are_refused_by_every_call(room: Room) -> None:
    for path, error in (("nowhere", QueueNotFound), ("office/jobs", ScopeNotFound)):
        calls: list[Any] = [
            lambda path=path: room.queue(path),
            lambda path=path: room.counts(path),
            lambda path=path: room.peek(path),
            lambda path=path: room.messages(queue=path),
            lambda path=path: room.update_queue(path, max_retries=1),
            lambda path=path: room.set_queue_state(path, "paused"),
            lambda path=path: room.delete_queue(path),
            lambda path=path: room.subscribe(path, "ann"),
            lambda path=path: room.unsubscribe(path, "ann"),
            lambda path=path: room.subscriptions(path),
            lambda path=path: room.check_seen(path, "ann", "key"),
            lambda path=path: room.claim(path, wait=0.01),
        ]
        for call in calls:
            async with refused(room, error):
                await call()


async def test_unknown_scopes_are_refused_by_every_call(room: Room) -> None:
    calls: list[Any] = [
        lambda: room.scope("office"),
        lambda: room.queues("office"),
        lambda: room.create_queue("office/jobs"),
        lambda: room.set_scope_state("office", "paused"),
        lambda: room.delete_scope("office"),
        lambda: room.messages(scope="office"),
        lambda: room.schemas("office"),
        lambda: room.register_schema("office", "order", {}),
        lambda: room.replay(scope="office"),
    ]
    for call in calls:
        async with refused(room, ScopeNotFound, "office"):
            await call()


async def test_a_state_that_does_not_exist_is_refused(room: Room) -> None:
    await room.create_queue("jobs")
    for state in ("open", "", "ACTIVE"):
        async with refused(room, InvalidField, "state"):
            await room.set_queue_state("jobs", state)
        async with refused(room, InvalidField, "state"):
            await room.set_scope_state("default", state)
