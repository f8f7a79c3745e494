"""The settings: shown without secrets, changed by name or as a whole.

A mask that comes back never takes the place of a secret, and what is not valid changes nothing.
"""

import asyncio
import hashlib
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from postroom.errors import Invalid, InvalidField, NotFound
from postroom.services.callers import Caller
from postroom.services.office_context import OfficeService, require_owner
from postroom.settings.defaults import VARIABLES
from postroom.settings.errors import InvalidSettings, SettingsChanged
from postroom.settings.secrets import masked

if TYPE_CHECKING:
    from postroom.settings.catalog import KnownSetting
    from postroom.settings.model import Settings

Document = dict[str, Any]
# What the settings of TinyAGI have, and its set-up page writes.
CONTRACT_FIELDS = frozenset(
    {"workspace", "channels", "models", "agents", "custom_providers", "teams", "monitoring"}
)


class SettingUnknown(Invalid):
    """unknown setting `{name}`; {hint}"""

    code = "SETTING_UNKNOWN"

    def __init__(self, name: str, hint: str = "", *, more: str = "") -> None:
        from postroom.settings.field_names import nearest_name

        near = nearest_name(name)
        hint = hint or (f"did you mean `{near}`?" if near else "see docs/reference/settings.md.")
        super().__init__(name=name, hint=f"{hint} {more}".rstrip())


class SettingNotSet(NotFound):
    """{name} is not set (see docs/reference/settings.md)"""

    code = "SETTING_NOT_SET"
    exit_code = 2


class ValueRefused(Invalid):
    """{problem} Nothing was changed."""

    code = "SETTINGS_INVALID"


class SettingsService(OfficeService):
    async def show(self, caller: Caller) -> Document:
        require_owner(caller)
        return await asyncio.to_thread(self._context.file.masked)

    async def list_all(self, caller: Caller) -> "list[KnownSetting]":
        """Every setting there is, with what holds now and where it comes from."""
        from postroom.settings.catalog import list_settings

        file, shown = self._context.file, await self.show(caller)
        return await asyncio.to_thread(lambda: list_settings(shown, source_of=file.source_of))

    async def get(self, caller: Caller, name: str) -> Any:
        """What holds of one setting, like `api.port`: by the environment, the file, or by itself."""
        found: Any = await self.show(caller)
        for step in name.split("."):
            if not isinstance(found, dict) or step not in found:
                break
            found = found[step]
        else:
            if not os.environ.get(VARIABLES.get(name, "")):
                return found
        holding = {each.name: each.value for each in await self.list_all(caller)}
        if name in holding:
            return holding[name]
        below = {each: value for each, value in holding.items() if each.startswith(f"{name}.")}
        if below:
            return {each.removeprefix(f"{name}."): value for each, value in below.items()}
        if _unknown_names(name):
            raise SettingUnknown(name)
        raise SettingNotSet(name=name)

    async def set(self, caller: Caller, name: str, value: Any, *, force: bool = False) -> Document:
        """`force` also writes names that nobody here knows, as for another program. All settings after it."""
        require_owner(caller)
        strange = _unknown_names(name, value)
        if strange and not force:
            raise SettingUnknown(strange[0], more="To write it all the same, as for another program: --force")
        return await self._change_one(name, value)

    async def unset(self, caller: Caller, name: str) -> Document:
        """Its default holds again."""
        require_owner(caller)
        if _unknown_names(name):
            await self.get(caller, name)
        return await self._change_one(name, None)

    async def merge(self, caller: Caller, fields: Mapping[str, Any]) -> Document:
        """Replaces whole top-level fields; a null removes one. Others stay."""
        require_owner(caller)
        await asyncio.to_thread(self._context.file.merge, fields)
        return await self._applied()

    async def replace(
        self, caller: Caller, document: Mapping[str, Any], *, seen: str | None = None, whole: bool = False
    ) -> Document:
        """What clients of the contract know, and what they name besides. What they cannot know stays, unless
        it is the `whole` document. With `seen`, the fingerprint of what was shown, only if that still
        holds."""
        require_owner(caller)
        from postroom.settings.model import parse

        file = self._context.file
        await asyncio.to_thread(_make_workspace, parse(document, file.path))

        def change(found: Document) -> Document:
            if seen is not None and fingerprint(masked(found)) != seen:
                raise SettingsChanged
            stays = {name: value for name, value in found.items() if name not in CONTRACT_FIELDS}
            return dict(document) if whole else stays | dict(document)

        await asyncio.to_thread(file.update, change)
        return await self._applied()

    async def _change_one(self, name: str, value: Any) -> Document:
        try:
            await asyncio.to_thread(self._context.file.update, lambda found: _put(found, name, value))
        except InvalidSettings as error:
            # The file is well; it is the new value that is not.
            raise ValueRefused(problem=error.data["problems"]) from None
        return await self._applied()

    async def _applied(self) -> Document:
        await self._context.apply()
        return await asyncio.to_thread(self._context.file.masked)


def fingerprint(document: Mapping[str, Any]) -> str:
    """Of settings as they are shown: who changes them says by it what they saw."""
    text = json.dumps(document, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _unknown_names(name: str, value: Any = None) -> list[str]:
    from postroom.settings.field_names import unknown_names

    return unknown_names(name, value)


def _put(document: Document, name: str, value: Any) -> None:
    """One value in its place; None takes it away."""
    *above, last = name.split(".")
    at = document
    for step in above:
        below = at.get(step)
        if not isinstance(below, dict):
            if value is None:
                return
            below = at[step] = {}
        at = below
    if value is None:
        at.pop(last, None)
    else:
        at[last] = value


def _make_workspace(settings: "Settings") -> None:
    """Before anything is written: settings with a folder that cannot be are of no use."""
    try:
        settings.workspace_path().mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise InvalidField("workspace.path", f"cannot be made a folder: {reason}") from None
