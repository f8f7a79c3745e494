"""Providers: what agents work with, servers of one's own, and whether they really answer."""

import asyncio
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from postroom.errors import Conflict, InvalidField, NotFound
from postroom.providers.protocol import Failed, Finished, Permissions, TurnLimits, TurnRequest, Usage
from postroom.providers.registry import Choice, Registry
from postroom.services.callers import Caller
from postroom.services.office_context import OfficeService, require_owner
from postroom.settings.defaults import PROGRAMS
from postroom.settings.file import Change
from postroom.settings.model import Model, Models, Settings
from postroom.settings.names import check_id
from postroom.settings.part import fields_of
from postroom.settings.reading import read_part
from postroom.settings.secrets import masked
from postroom.settings.warnings import unknown_provider

HARNESSES = ("claude", "codex", "api")
FIELDS = ("name", "harness", "base_url", "api_key", "model", "wire")
CUSTOM = "custom:"
Document = dict[str, Any]
# One cheap turn: no tool is needed for it, and few words come back.
TEST_PROMPT = "This is a test of the connection. Answer with the one word: ready"
TEST_WALL_CLOCK_S = 120.0
MOST_TOLD = 200


class ProviderNotFound(NotFound):
    """custom provider '{provider}' not found"""


class ProviderInUse(Conflict):
    """{provider} is in use by {agents}. Choose another there first: postroom agent provider AGENT NAME"""

    code = "PROVIDER_IN_USE"


class HarnessUnknown(InvalidField):
    """{field}: {problem}."""


class ProviderTest(msgspec.Struct, frozen=True, kw_only=True):
    """What one real turn came to. `problem` is empty when there was an answer; `kind` is for programs."""

    provider: str
    model: str
    seconds: float
    answer: str = ""
    problem: str = ""
    kind: str = ""
    cost_usd: float | None = None


def check_provider(name: str) -> None:
    """Whether a server of one's own is there is seen where the settings are."""
    if not name.startswith(CUSTOM) and (problem := unknown_provider(name)):
        raise InvalidField("provider", problem)


class ProviderService(OfficeService):
    async def list_custom(self, caller: Caller) -> dict[str, Document]:
        """Keys show as `********`."""
        require_owner(caller)
        return (await asyncio.to_thread(self._context.file.masked)).get("custom_providers") or {}

    async def find_programs(self, caller: Caller) -> dict[str, str | None]:
        """The agents' programs of this machine, by name, with where they are; None where there is none."""
        require_owner(caller)
        return {name: await asyncio.to_thread(shutil.which, name) for name in PROGRAMS.values()}

    async def put_custom(self, caller: Caller, name: str, fields: Mapping[str, Any]) -> Document:
        """Adds a server or changes one; what other clients wrote of it stays."""
        require_owner(caller)
        check_id("custom_providers", name)
        if fields.get("harness") not in HARNESSES:
            raise HarnessUnknown("harness", f"{fields.get('harness')!r} is none of {', '.join(HARNESSES)}")
        if not re.match(r"https?://[^/\s]", str(fields.get("base_url") or "")):
            problem = f"{fields.get('base_url')!r} is no address; write one like http://127.0.0.1:8080"
            raise InvalidField("base_url", problem)
        given = {field: fields[field] for field in FIELDS if fields.get(field) is not None}

        def change(document: Document) -> None:
            known = document.setdefault("custom_providers", {})
            # A model left out is none; a wire left out stays.
            kept = {
                field: value
                for field, value in (known.get(name) or {}).items()
                if field not in FIELDS or field == "wire"
            }
            known[name] = {**kept, **given}

        await self._update(change)
        return masked(given)

    async def remove_custom(self, caller: Caller, name: str, *, even_in_use: bool = False) -> None:
        """With its key. Not while an agent works with it, unless somebody wants it all the same."""
        require_owner(caller)

        def change(document: Document) -> None:
            if name not in (document.get("custom_providers") or {}):
                raise ProviderNotFound(provider=name)
            agents = document.get("agents") or {}
            users = [key for key, one in agents.items() if (one or {}).get("provider") == f"{CUSTOM}{name}"]
            if users and not even_in_use:
                raise ProviderInUse(provider=f"{CUSTOM}{name}", agents=", ".join(f"@{key}" for key in users))
            del document["custom_providers"][name]

        await self._update(change)

    async def choose(
        self,
        caller: Caller,
        name: str | None = None,
        *,
        model: str | None = None,
        api_key: str | None = None,
        oauth_token: str | None = None,
    ) -> str:
        """The provider of agents that name none; without a `name`, the one chosen before. A model also goes
        to every agent that works with it."""
        require_owner(caller)
        own_server = (name or "").partition(CUSTOM)[2]
        if (api_key or oauth_token) and (own_server or name == "script"):
            raise InvalidField("api_key", "is not for this provider; give keys of your own servers with them")
        if name is not None:
            check_provider(name)

        def change(document: Document) -> None:
            if own_server and own_server not in (document.get("custom_providers") or {}):
                problem = f'there is no server "{own_server}"; add it: postroom provider add'
                raise InvalidField("provider", problem)
            models = document.setdefault("models", {})
            chosen = name or models.get("provider") or "anthropic"
            section = chosen.removesuffix("_api")
            own = dict(models.get(section) or {})
            own |= {
                field: value
                for field, value in (("model", model), ("api_key", api_key), ("oauth_token", oauth_token))
                if value
            }
            models["provider"] = chosen
            if own:
                models[section] = own
            for one in (document.get("agents") or {}).values():
                if model and one.get("provider") == chosen:
                    one["model"] = model

        return (await self._update(change)).models.provider

    async def test(
        self,
        caller: Caller,
        name: str | None = None,
        *,
        model: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
    ) -> ProviderTest:
        """Ask a provider for one short answer, as an agent would; without a `name`, the one of agents that
        name none. A key and an address that are given hold for this one turn, and are not kept. It never
        raises for what is wrong there: that is what it tells."""
        require_owner(caller)
        from postroom.services.provider_registry import registry_for
        from postroom.settings.environment import with_environment

        if name is not None:
            check_provider(name)
        settings = with_environment(await asyncio.to_thread(self._context.file.load))
        own_server = (name or "").partition(CUSTOM)[2]
        if own_server and own_server not in settings.custom_providers:
            raise ProviderNotFound(provider=own_server)
        chosen, its_model = settings.models.chosen_for(name)
        settings = _with_trial(settings, chosen, api_key, base_url)
        registry = registry_for(settings, self._context.home, self._context.clock)
        with tempfile.TemporaryDirectory(prefix="postroom-test-") as folder:
            return await _ask(registry, Choice(chosen, model or its_model), Path(folder))

    async def _update(self, change: Change) -> Settings:
        settings = await asyncio.to_thread(self._context.file.update, change)
        await self._context.apply()
        return settings


def _with_trial(settings: Settings, provider: str, api_key: str | None, base_url: str | None) -> Settings:
    section = provider.removesuffix("_api")
    if (api_key is None and base_url is None) or section not in fields_of(Models) or section == "provider":
        return settings
    own = getattr(settings.models, section) or Model()
    document = {"model": own.model, "api_key": api_key, "base_url": base_url}
    trial = read_part(Model, {name: value for name, value in document.items() if value}, "the trial")
    kept = {"api_key": trial.api_key or own.api_key, "base_url": trial.base_url or own.base_url}
    models = replace(settings.models, **{section: replace(own, **kept)})
    return replace(settings, models=models)


async def _ask(registry: Registry, choice: Choice, folder: Path) -> ProviderTest:
    request = TurnRequest(
        agent_id="postroom-test",
        prompt=TEST_PROMPT,
        workspace=folder,
        permissions=Permissions.READ,
        limits=TurnLimits(wall_clock=TEST_WALL_CLOCK_S, idle=TEST_WALL_CLOCK_S),
    )
    [(provider, fitting)] = registry.attempts([choice], request)
    started, cost = time.monotonic(), None
    answer = problem = kind = ""
    events = provider.run(fitting)
    try:
        async for event in events:
            if isinstance(event, Usage) and event.cost_usd is not None:
                cost = (cost or 0.0) + event.cost_usd
            elif isinstance(event, Finished):
                answer = event.text.strip()[:MOST_TOLD]
            elif isinstance(event, Failed):
                problem, kind = event.message, event.kind.value
    finally:
        await events.aclose()
    if not answer and not problem:
        problem, kind = "the answer was empty", "empty"
    return ProviderTest(
        provider=choice.provider,
        model=fitting.model,
        seconds=round(time.monotonic() - started, 2),
        answer=answer,
        problem=problem,
        kind=kind,
        cost_usd=cost,
    )
