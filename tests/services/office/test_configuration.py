"""Settings, providers, plugins, pairing, imports, the lake and the server: what is wrong changes nothing."""

import asyncio
import json
import os
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest

from postroom.errors import InvalidField, NotFound, PostroomError
from postroom.services import callers
from postroom.services.callers import PersonRole
from postroom.services.insights import InsightService, LakeReader, NoLakeReader
from postroom.services.log_lines import plain
from postroom.services.office_context import NoChannels, OpenOffice, ServerFacts
from postroom.services.providers import HarnessUnknown, ProviderInUse, ProviderNotFound
from postroom.services.settings import SettingNotSet, SettingUnknown, ValueRefused, fingerprint
from postroom.services.system import ChannelRefused, RestartUnavailable
from postroom.settings.errors import InvalidSettings, SettingsChanged
from tests.providers.model_server import model_server
from tests.services.office.conftest import AGENTS, ServedOffice

SERVER = {"harness": "api", "base_url": "http://127.0.0.1:9", "api_key": "a-secret-key", "model": "m"}


async def test_a_setting_is_read_set_and_unset_by_its_name(office: ServedOffice) -> None:
    settings = office.services.settings
    assert await settings.get(office.owner, "limits.message_bytes") == 256 * 1024, "its default holds"
    with pytest.raises(SettingNotSet):
        await settings.get(office.owner, "agents.nobody.model")
    await settings.set(office.owner, "limits.message_bytes", 5000)
    assert await settings.get(office.owner, "limits.message_bytes") == 5000
    assert office.control.settings.limits.message_bytes == 5000, "it holds at once"
    await settings.unset(office.owner, "limits.message_bytes")
    assert office.control.settings.limits.message_bytes != 5000
    await settings.unset(office.owner, "schedules.zone")
    assert "schedules" not in await settings.show(office.owner), "nothing is made to be taken away"


async def test_wrong_names_and_values_change_nothing(office: ServedOffice) -> None:
    settings, before = office.services.settings, office.file.path.read_text()
    with pytest.raises(SettingUnknown, match=r"limits\.message_bytes"):
        await settings.set(office.owner, "limits.message_byte", 1)
    with pytest.raises(SettingUnknown):
        await settings.get(office.owner, "no.such")
    with pytest.raises(SettingUnknown):
        await settings.unset(office.owner, "no.such")
    with pytest.raises(ValueRefused):
        await settings.set(office.owner, "limits.message_bytes", "many")
    assert office.file.path.read_text() == before
    await settings.set(office.owner, "theirs.port", 1, force=True)
    assert await settings.get(office.owner, "theirs.port") == 1
    await settings.unset(office.owner, "theirs.port")


async def test_settings_are_merged_or_replaced_and_their_folder_can_be_made(
    office: ServedOffice, tmp_path: Path
) -> None:
    settings = office.services.settings
    merged = await settings.merge(office.owner, {"schedules": {"zone": "UTC"}, "monitoring": None})
    assert merged["schedules"] == {"zone": "UTC"}
    assert "monitoring" not in merged
    whole = json.loads(office.file.path.read_text())
    (tmp_path / "a-file").touch()
    with pytest.raises(InvalidField, match=r"workspace\.path"):
        await settings.replace(office.owner, {**whole, "workspace": {"path": f"{tmp_path}/a-file/below"}})
    replaced = await settings.replace(office.owner, {**whole, "workspace": {"path": f"{tmp_path}/new"}})
    assert (tmp_path / "new").is_dir()
    assert set(replaced["agents"]) == set(AGENTS)


async def test_settings_that_others_changed_meanwhile_are_not_written_over(office: ServedOffice) -> None:
    settings = office.services.settings
    shown = await settings.show(office.owner)
    await settings.set(office.owner, "default_agent", "coder")
    for whole in (True, False):
        with pytest.raises(SettingsChanged):
            await settings.replace(office.owner, {}, seen=fingerprint(shown), whole=whole)
    shown = await settings.show(office.owner)
    del shown["default_agent"], shown["monitoring"]
    seen = fingerprint(await settings.show(office.owner))
    assert await settings.replace(office.owner, shown, seen=seen, whole=True) == shown


async def test_servers_of_ones_own_keep_their_keys_secret(office: ServedOffice) -> None:
    providers = office.services.providers
    made = await providers.put_custom(office.owner, "own", SERVER)
    assert made["api_key"] != "a-secret-key"
    office.file.update(lambda found: found["custom_providers"]["own"].update(theirs=1, wire="anthropic"))
    await providers.put_custom(office.owner, "own", {**SERVER, "model": None})
    [shown] = (await providers.list_custom(office.owner)).values()
    assert shown["theirs"] == 1
    assert shown["wire"] == "anthropic"
    assert "model" not in shown
    assert "a-secret-key" not in json.dumps(shown)
    with pytest.raises(HarnessUnknown):
        await providers.put_custom(office.owner, "own", {**SERVER, "harness": "other"})
    with pytest.raises(InvalidField, match="base_url"):
        await providers.put_custom(office.owner, "own", {**SERVER, "base_url": "nowhere"})


async def test_a_server_in_use_is_removed_only_on_purpose(office: ServedOffice) -> None:
    providers = office.services.providers
    await providers.put_custom(office.owner, "own", SERVER)
    await office.services.agents.change(office.owner, "coder", {"provider": "custom:own"})
    with pytest.raises(ProviderInUse, match="@coder"):
        await providers.remove_custom(office.owner, "own")
    with pytest.raises(ProviderNotFound):
        await providers.remove_custom(office.owner, "other")
    await providers.remove_custom(office.owner, "own", even_in_use=True)
    assert await providers.list_custom(office.owner) == {}


async def test_the_provider_of_agents_that_name_none_is_chosen(office: ServedOffice) -> None:
    providers = office.services.providers
    assert await providers.choose(office.owner, "script", model="fast") == "script"
    assert (await office.services.agents.get(office.owner, "coder")).model == "fast"
    assert await providers.choose(office.owner) == "script"
    assert await providers.choose(office.owner, "anthropic", api_key="sk-test") == "anthropic"
    assert office.control.settings.models.provider == "anthropic"
    for name, more in (("nothing", {}), ("custom:own", {}), ("script", {"api_key": "k"})):
        with pytest.raises(InvalidField):
            await providers.choose(office.owner, name, **more)


async def test_plugins_are_allowed_by_name(office: ServedOffice) -> None:
    plugins = office.services.plugins
    assert await plugins.allow(office.owner, "one") == ("one",)
    assert await plugins.allow(office.owner, "two") == ("one", "two")
    assert await plugins.forbid(office.owner, "one") == ("two",)
    assert isinstance(await plugins.list_all(office.owner), list)
    with pytest.raises(InvalidField):
        await plugins.allow(office.owner, "../evil")


async def test_strangers_wait_are_let_in_and_turned_out(office: ServedOffice) -> None:
    pairing = office.services.pairing
    for person in ("ann", "bob"):
        await office.control.office.pairings.admit("telegram", person, person.title())
    codes = {each.sender_id: each.code for each in (await pairing.list_all(office.owner)).pending}
    assert (await pairing.approve(office.owner, codes["ann"])).sender_id == "ann"
    await pairing.dismiss(office.owner, codes["bob"])
    found = await pairing.list_all(office.owner)
    assert (len(found.pending), [each.sender_id for each in found.approved]) == (0, ["ann"])
    await pairing.revoke(office.owner, "telegram", "ann")
    assert (await pairing.list_all(office.owner)).approved == ()
    with pytest.raises(NotFound):
        await pairing.approve(office.owner, "NOSUCHCODE")


async def test_nothing_to_import_is_told(office: ServedOffice, tmp_path: Path) -> None:
    with pytest.raises(PostroomError):
        await office.services.imports.run(office.owner, "tinyagi", str(tmp_path / "nothing"))


class NotedLake:
    """Notes what it is asked; the lake itself is tested with the pipeline."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        def ask(*args: Any, **options: Any) -> str:
            self.asked.append((name, args, options))
            return name

        return ask


async def test_the_lake_is_asked_beside_the_event_loop(office: ServedOffice) -> None:
    context = OpenOffice(
        file=office.file,
        home=office.home,
        clock=office.room.clock,
        open_room=office.room,
        open_control=office.control,
    )
    lake = NotedLake()
    insights, day = InsightService(context, cast(LakeReader, lake)), date(2030, 1, 1)
    await insights.state(office.owner)
    await insights.start_run(office.owner, full_refresh=True)
    await insights.stop_run(office.owner)
    await insights.report(office.owner, day)
    await insights.insight(office.owner, "agents", day, day)
    await insights.traces(office.owner, limit=3)
    await insights.trace(office.owner, "t", "tenant")
    await insights.search(office.owner, ("word",), agent="coder")
    assert [name for name, _, _ in lake.asked] == [
        "state",
        "start_run",
        "stop_run",
        "report",
        "insight",
        "traces",
        "trace",
        "search",
    ]
    assert lake.asked[1][2] == {"full_refresh": True}
    assert lake.asked[-2][1] == ("t", "tenant")
    with pytest.raises(NoLakeReader):
        await InsightService(context).state(office.owner)


async def test_the_status_knows_channels_that_do_not_run(office: ServedOffice) -> None:
    await office.services.settings.merge(office.owner, {"channels": {"enabled": ["telegram", "discord"]}})
    system = office.with_server(ServerFacts(port=3777, started_at=0)).system
    started, failed = await system.apply(office.owner)
    assert (started, failed) == (("telegram",), ("discord",))
    status = await system.status(office.owner)
    assert status.port == 3777
    assert status.uptime > 0
    assert status.channels == {"telegram": {"running": True}, "discord": {"running": False}}


async def test_only_the_owner_sees_the_code_that_a_phone_scans(
    office: ServedOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = office.with_server(ServerFacts()).system

    def tell() -> dict[str, dict[str, object]]:
        return {"whatsapp_personal": {"running": True, "pairing": "2@code"}}

    monkeypatch.setattr(office.channels, "status", tell)
    assert (await system.status(office.owner)).channels["whatsapp_personal"]["pairing"] == "2@code"
    looker = callers.person("Cid", PersonRole.VIEWER)
    assert (await system.status(looker)).channels["whatsapp_personal"] == {"running": True}


async def test_channels_start_and_stop_once(office: ServedOffice) -> None:
    system = office.with_server(ServerFacts()).system
    await system.start_channel(office.owner, "telegram")
    with pytest.raises(ChannelRefused):
        await system.start_channel(office.owner, "telegram")
    await system.restart_channel(office.owner, "telegram")
    await system.stop_channel(office.owner, "telegram")
    with pytest.raises(ChannelRefused):
        await system.stop_channel(office.owner, "telegram")
    with pytest.raises(ChannelRefused):
        await system.restart_channel(office.owner, "unknown")
    none = NoChannels()
    assert (none.status(), await none.start("telegram"), await none.stop("telegram")) == ({}, False, False)


async def test_a_server_restarts_only_when_it_could_come_back(office: ServedOffice) -> None:
    with pytest.raises(RestartUnavailable):
        await office.services.system.restart(office.owner)
    restarted = asyncio.Event()

    def refuse() -> None:
        raise InvalidField("settings", "are broken")

    broken = office.with_server(ServerFacts(restart=restarted.set, check_restart=refuse))
    with pytest.raises(InvalidField):
        await broken.system.restart(office.owner)
    await office.with_server(ServerFacts(restart=restarted.set)).system.restart(office.owner)
    async with asyncio.timeout(60):
        await restarted.wait()


async def test_logs_and_chats_are_files_of_the_home(office: ServedOffice) -> None:
    system = office.services.system
    assert await system.chats(office.owner) == []
    for number, name in enumerate(("old", "new")):
        file = office.home / "chats" / "dev" / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (number, number))
    assert [each.name for each in await system.chats(office.owner)] == ["new.md", "old.md"]
    assert await system.logs(office.owner) == []


async def test_logs_are_told_line_by_line_whatever_stands_in_them(office: ServedOffice) -> None:
    folder = office.home / "logs"
    folder.mkdir(exist_ok=True)
    line = {"time": "2030-01-01T00:00:00Z", "level": "INFO", "text": "ready\u001b[2J"}
    (folder / "postroom.log").write_text(f"{json.dumps(line)}\nno json at all\n[1, 2]\n")
    system = office.services.system
    told = await system.logs(office.owner)
    assert [each["text"] for each in told] == ["ready\u001b[2J", "no json at all", "[1, 2]"]
    assert plain(told[0]) == "[2030-01-01T00:00:00Z] [INFO] ready\\u001b[2J", "no terminal obeys it"
    assert len(await system.logs(office.owner, 1)) == 1


async def test_a_provider_without_a_section_of_its_own_gets_none(office: ServedOffice) -> None:
    await office.services.providers.choose(office.owner, "openai")
    models = json.loads(office.file.path.read_text())["models"]
    assert models == {"provider": "openai"}


async def test_a_provider_is_tried_with_one_turn_and_nothing_is_kept_of_it(office: ServedOffice) -> None:
    providers, before = office.services.providers, office.file.path.read_text()
    said = await providers.test(office.owner, "script")
    assert (said.provider, said.problem) == ("script", "")
    assert said.answer
    async with model_server() as server:
        good = await providers.test(
            office.owner, "anthropic_api", api_key="a-key", base_url=server.scenario("ok"), model="haiku"
        )
        bad = await providers.test(
            office.owner, "anthropic_api", api_key="a-key", base_url=server.scenario("e401")
        )
        assert (good.problem, bad.answer, bad.kind) == ("", "", "auth")
        with pytest.raises(InvalidSettings):
            await providers.test(office.owner, "openai_api", base_url="ftp://nowhere")
    for unknown, error in (("custom:nowhere", ProviderNotFound), ("anthropc", InvalidField)):
        with pytest.raises(error):
            await providers.test(office.owner, unknown)
    assert office.file.path.read_text() == before


async def test_every_setting_is_listed_and_what_holds_is_told(
    office: ServedOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = office.services.settings
    found = {each.name: each for each in await settings.list_all(office.owner)}
    assert found["guards.hops"].source == "default"
    assert (await settings.get(office.owner, "guards"))["hops"] == found["guards.hops"].value
    await settings.set(office.owner, "api.port", 4000)
    assert await settings.get(office.owner, "api.port") == 4000
    monkeypatch.setenv("POSTROOM_API_PORT", "4001")
    assert await settings.get(office.owner, "api.port") == 4001
