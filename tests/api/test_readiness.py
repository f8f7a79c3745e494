"""What probes are told, and what a set-up page of others leaves alone."""

import pytest

from postroom.api import health
from postroom.stores.sqlite import SqliteStore
from tests.api.house import House


async def test_readyz_tells_when_nothing_can_be_written(
    still: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "TRIED_AGAIN", 0)
    assert (await still.http.get("/readyz")).status_code == 200
    store = still.room._core.store
    assert isinstance(store, SqliteStore)
    with store._writer_use:
        store._db.pragma("query_only", True)
    refused = await still.http.get("/readyz")
    with store._writer_use:
        store._db.pragma("query_only", False)
    assert (refused.status_code, refused.json()["ok"]) == (503, False)
    assert (await still.http.get("/readyz")).status_code == 200


async def test_setup_keeps_what_its_caller_cannot_know(still: House) -> None:
    own = {"limits": {"request_bytes": 2_000_000}, "guards": {"hops": 7}}
    assert (await still.http.put("/api/settings", json=own)).status_code == 200
    before = (await still.http.get("/api/settings")).json()
    wizard = {"agents": {"lead": {"name": "Lead", "provider": "script", "model": "default"}}}
    wizard["workspace"] = before["workspace"]
    answer = await still.http.post("/api/setup", json=wizard)
    assert answer.status_code == 200, answer.text
    after = (await still.http.get("/api/settings")).json()
    assert (after["limits"], after["guards"]) == (before["limits"], before["guards"])
    assert set(after["agents"]) == {"lead"}, "what it knows is replaced"
    assert "teams" not in after or not after["teams"]
