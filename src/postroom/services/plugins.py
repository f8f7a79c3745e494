"""Plugins: code of others, and which of it may run. Which may is a setting."""

import asyncio
from typing import Any

from postroom.office.plugins.plugin import PluginStatus
from postroom.services.callers import Caller
from postroom.services.office_context import OfficeService, require_owner, require_viewer
from postroom.settings.names import check_id


class PluginService(OfficeService):
    async def list_all(self, caller: Caller) -> list[PluginStatus]:
        """All that were found or are allowed, and how they do."""
        require_viewer(caller)
        return await (await self._context.control()).plugins.look()

    async def allow(self, caller: Caller, name: str) -> tuple[str, ...]:
        """Let it run from the next start on; all that may."""
        check_id("plugins.allowed", name)
        return await self._change(caller, name, on=True)

    async def forbid(self, caller: Caller, name: str) -> tuple[str, ...]:
        return await self._change(caller, name, on=False)

    async def _change(self, caller: Caller, name: str, *, on: bool) -> tuple[str, ...]:
        require_owner(caller)

        def change(document: dict[str, Any]) -> None:
            own = document.setdefault("plugins", {})
            others = [each for each in own.get("allowed") or [] if each != name]
            own["allowed"] = [*others, name] if on else others

        settings = await asyncio.to_thread(self._context.file.update, change)
        await self._context.apply()
        return tuple(settings.plugins.allowed)
