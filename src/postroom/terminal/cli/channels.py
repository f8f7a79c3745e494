"""`postroom channel`: the clients of messaging platforms, their tokens, and whether they run."""

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom.app.home import Home
from postroom.settings import durable
from postroom.settings.channel_guides import GUIDES
from postroom.settings.secrets import is_handle, names_secret, reveal
from postroom.terminal.cli import channel_check, channel_link, prompts, unconfirmed_replies
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.output import table
from postroom.terminal.cli.store_access import CommandContext

if TYPE_CHECKING:
    from postroom.services.office import OfficeServices

app = group("channel", "Channels: talk to the office from chat platforms.")
also = group("channels", "The same as channel.")

NEXT = " Write to it there: it answers with a code, which you approve with postroom pairing approve CODE."
SESSION = "whatsapp-session"


Channel = Annotated[str, argument("CHANNEL", f"{', '.join(GUIDES)} …")]


def _known(channel: str) -> str:
    if channel.lower() not in GUIDES:
        raise Unclear(f"{channel} is no channel; there are {', '.join(GUIDES)}")
    return channel.lower()


def _both(name: str, *examples: str) -> Any:
    """Registers under `channel` and, for hands that know it from elsewhere, under `channels`."""

    def decorate(function: Any) -> Any:
        command(also, name, store=False, examples=examples)(function)
        return command(app, name, store=False, examples=examples)(function)

    return decorate


@_both("list", "postroom channel list")
async def list_channels(at: CommandContext) -> None:
    """List the channels, whether they are set up, and whether they run."""
    async with at.office() as office:
        settings = await office.settings.show(at.caller)
        status = (await office.system.status(at.caller)).channels
    found: dict[str, dict[str, Any]] = {}
    own = settings.get("channels") or {}
    for name in dict.fromkeys([*GUIDES, *status]):
        needs = name in GUIDES and GUIDES[name].token is not None
        found[name] = {
            "enabled": name in (own.get("enabled") or ()),
            "token": bool((own.get(name) or {}).get("bot_token")) if needs else None,
            "running": bool(status.get(name, {}).get("running")),
        }
        if problem := status.get(name, {}).get("problem"):
            found[name]["problem"] = problem
    rows = [
        (
            name,
            "on" if one["enabled"] else "off",
            {True: "has a token", False: "no token", None: ""}[one["token"]],
            one.get("problem") or ("runs" if one["running"] else "does not run"),
        )
        for name, one in found.items()
    ]
    at.out.show(found, table(["channel", "switched", "token", "now"], rows))


_both("status", "postroom channel status")(list_channels)


@_both("test", "postroom channel test telegram", "postroom channel test telegram --to 110201543")
async def try_channel(
    at: CommandContext,
    channel: Channel,
    to: Annotated[str | None, option("ID", "A chat or a person who gets a first message.", "--to")] = None,
) -> None:
    """Ask the platform whether the channel's token and the rest of its settings are right."""
    channel_link.check_alone(at, channel)
    label = await channel_check.check_channel(channel, to)
    told = f"{label} takes the settings of {channel}.{_tell_sent(to)}"
    at.out.show({"ok": True, "channel": channel, "to": to}, told)


def _tell_sent(to: str | None) -> str:
    return f" A first message is on its way to {to}." if to else ""


async def setup(
    at: CommandContext,
    channel: Annotated[
        str | None, argument("CHANNEL", f"{', '.join(GUIDES)}; without it, you are asked.")
    ] = None,
    token: Annotated[
        str | None,
        option("TEXT", "- reads it from stdin; env:NAME and file:PATH are kept as such.", "--token"),
    ] = None,
    given: Annotated[
        list[str] | None, option("NAME=VALUE", "A field of the channel's settings; several times.", "--set")
    ] = None,
    off: Annotated[bool, flag("Switch the channel off; its token is kept.", "--off")] = False,
    ask: Annotated[bool, flag("Ask the platform at once whether it takes them.", "--test")] = False,
    to: Annotated[str | None, option("ID", "A chat or a person who gets a first message.", "--to")] = None,
) -> None:
    """Choose channels and give them their tokens.

    A token is checked for its form, kept in a file that only you can read, and named in the settings by that
    file. Platforms that need more than a token take it from --set NAME=VALUE, or ask for it.
    """
    if channel is None:
        if token is not None or off:
            raise Unclear("--token and --off need the name of a channel")
        await _ask_for_all(at)
        return
    name = _known(channel)
    if off:
        await _switch(at, name, on=False)
        return
    if prompts.somebody():
        at.out.say(GUIDES[name].where)
    secret = _token(name, token) if GUIDES[name].token else None
    async with at.office() as office:
        own = (await office.settings.show(at.caller)).get("channels") or {}
    fields = _read_fields(at, name, given or (), own.get(name) or {})
    await _set_up(at, name, secret, fields)
    if name == channel_link.LINKED:
        await channel_link.show_code(at, name)
        return
    if to is None and prompts.somebody():
        to = prompts.text("A first message now, to which chat or person (their id; empty: none)", "") or None
    if ask or to:
        at.out.say(f"{await channel_check.check_channel(name, to)} takes the settings.{_tell_sent(to)}")


async def _ask_for_all(at: CommandContext) -> None:
    if not prompts.somebody():
        raise Unclear("name a channel, like: postroom channel setup telegram --token env:TELEGRAM_BOT_TOKEN")
    async with at.office() as office:
        settings = await office.settings.show(at.caller)
    own = settings.get("channels") or {}
    done: dict[str, bool] = {}
    for name, platform in GUIDES.items():
        if platform.is_risky:
            continue  # who wants it names it
        on = name in (own.get("enabled") or ())
        wanted = prompts.yes(f"Use {platform.name}?", default=on)
        if wanted:
            at.out.say(f"  {platform.where}")
            has = bool((own.get(name) or {}).get("bot_token"))
            keep = has and prompts.yes("Keep the token that is there?", default=True)
            given = None if keep or platform.token is None else _token(name, None)
            await _set_up(at, name, given, _read_fields(at, name, (), own.get(name) or {}), show=False)
        elif on:
            await _switch(at, name, on=False, show=False)
        done[name] = wanted
    chosen = [name for name, wanted in done.items() if wanted]
    told = f"Channels: {', '.join(chosen)}." if chosen else "No channel is switched on."
    at.out.show({"enabled": chosen}, told)


def _token(name: str, given: str | None) -> str:
    platform = GUIDES[name]
    if given == "-":
        given = sys.stdin.readline()
    if given is None:
        given = prompts.secret(f"Token of the {platform.name} bot")
    elif not is_handle(given):
        given = given.strip()
    given = given.strip()
    secret = reveal(given)
    if problem := platform.find_problem(secret):
        raise Unclear(problem)
    return given


def _read_fields(
    at: CommandContext, name: str, given: Sequence[str], known: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """What was given, and what a person who is there is asked for. Secrets go into files of their own."""
    fields: dict[str, str] = {}
    for each in given:
        field, equals, value = each.partition("=")
        if not equals or not field:
            raise Unclear(f"--set takes NAME=VALUE, not {each}")
        fields[field] = value
    missing = [each for each in GUIDES[name].fields if each not in fields and not (known or {}).get(each)]
    if missing and not prompts.somebody():
        raise Unclear(f"{GUIDES[name].name} needs {', '.join(missing)}; give each as --set NAME=VALUE")
    for field in missing:
        label = f"{field.replace('_', ' ')} of {GUIDES[name].name}"
        fields[field] = prompts.secret(label) if names_secret(field) else prompts.text(label)
    return {
        field: keep_secret(at, f"{name}_{field}", value)
        if names_secret(field) and not is_handle(value)
        else value
        for field, value in fields.items()
    }


async def _set_up(
    at: CommandContext,
    name: str,
    token: str | None,
    fields: Mapping[str, str] | None = None,
    *,
    show: bool = True,
) -> None:
    if token is not None and not is_handle(token):
        token = keep_secret(at, f"{name}_bot_token", token)
    await _switch(at, name, on=True, token=token, fields=fields, show=show)


def keep_secret(at: CommandContext, name: str, secret: str) -> str:
    """In a file that only its owner can read; the handle that leads to it. On a database server it goes into
    the settings themselves, which seal it: other hosts would not find a file of this one."""
    if at.is_on_server:
        return secret
    home = Home.of()
    home.make()
    home.secrets.mkdir(mode=0o700, exist_ok=True)
    place = home.secrets / name
    durable.replace(place, secret.encode() + b"\n")
    return f"file:{place}"


async def _switch(
    at: CommandContext,
    name: str,
    *,
    on: bool,
    token: str | None = None,
    fields: Mapping[str, str] | None = None,
    show: bool = True,
) -> None:
    async with at.office() as office:
        own = dict((await office.settings.show(at.caller)).get("channels") or {})
        before = [each for each in own.get("enabled") or [] if each != name]
        own["enabled"] = [*before, name] if on else before
        if token is not None:
            own[name] = {**(own.get(name) or {}), "bot_token": token}
        if fields:
            own[name] = {**(own.get(name) or {}), **fields}
        if on and GUIDES[name].token is not None and not (own.get(name) or {}).get("bot_token"):
            raise Unclear(f"{name} needs a token: postroom channel setup {name} --token …")
        await office.settings.merge(at.caller, {"channels": own})
        told, running = await _act(at, office, name, on=on)
    if show:
        document = {"channel": name, "enabled": on, "token": token, "running": running}
        at.out.show(document, f"{name} is switched {'on' if on else 'off'}{told}.{NEXT if on else ''}")


async def _act(at: CommandContext, office: "OfficeServices", name: str, *, on: bool) -> tuple[str, bool]:
    """What became of it in a server that runs; a channel that cannot start is told, its setting stays."""
    from postroom.services.system import ChannelRefused

    if not at.server_runs:
        return "; it takes effect when Postroom starts", False
    try:
        if on:
            await office.system.restart_channel(at.caller, name)
        else:
            await office.system.stop_channel(at.caller, name)
    except ChannelRefused as refusal:
        return f"; {str(refusal).rstrip('.') if on else 'it did not run'}", False
    return (", and runs" if on else ""), on


_SETUP_EXAMPLES = (
    "postroom channel setup",
    "postroom channel setup telegram --token env:TELEGRAM_BOT_TOKEN",
    "postroom channel setup discord --token - < token.txt",
    "postroom channel setup signal --set account=+491701234567",
    "postroom channel setup telegram --off",
)
_both("setup", *_SETUP_EXAMPLES)(setup)


def register(root: typer.Typer, panel: str) -> None:
    root.add_typer(app, rich_help_panel=panel)
    root.add_typer(also, rich_help_panel=panel, hidden=True)


@_both("reset", "postroom channel reset telegram --yes")
async def reset(at: CommandContext, channel: Channel, yes: Yes = False) -> None:
    """Forget a channel's token or its login, and switch it off. What is forgotten goes into a backup."""
    name, home = _known(channel), Home.of()
    things = [home.secrets / f"{name}_bot_token"]
    if name == "whatsapp":
        things = [home.path / SESSION]
    elif name == channel_link.LINKED:
        things = [home.path / "channels" / f"{name}.db"]
    if not yes:
        confirm(f"Forget how to log in to {GUIDES[name].name}, and switch it off?")

    async with at.office() as office:
        own = dict((await office.settings.show(at.caller)).get("channels") or {})
        own["enabled"] = [each for each in own.get("enabled") or [] if each != name]
        if isinstance(own.get(name), dict):
            own[name] = {field: value for field, value in own[name].items() if field != "bot_token"}
        await office.settings.merge(at.caller, {"channels": own})
        await _act(at, office, name, on=False)
    kept = [str(place) for thing in things if (place := _put_away(home, thing))]
    where = f" A backup is in {', '.join(kept)}." if kept else ""
    at.out.show(
        {"channel": name, "backup": kept},
        f"{name} is reset.{where} To use it again: postroom channel setup {name}",
    )


def _put_away(home: Home, thing: Path) -> Path | None:
    if not os.path.lexists(thing):
        return None
    folder = home.path / "backups" / "channels"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = folder / f"{thing.name}.{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"
    os.rename(thing, place)
    return place


def _show_action(at: CommandContext, channel: str, action: str) -> None:
    at.out.show({"ok": True, "channel": channel, "action": action}, f"{channel}: {action}.")


@_both("start", "postroom channel start telegram")
async def start(at: CommandContext, channel: Channel) -> None:
    """Start a channel that is set up."""
    _needs_server(at)
    async with at.office() as office:
        await office.system.start_channel(at.caller, channel)
    _show_action(at, channel, "started")


@_both("stop", "postroom channel stop telegram")
async def stop(at: CommandContext, channel: Channel) -> None:
    """Stop a channel, until it is started again."""
    _needs_server(at)
    async with at.office() as office:
        await office.system.stop_channel(at.caller, channel)
    _show_action(at, channel, "stopped")


@_both("restart", "postroom channel restart telegram")
async def restart(at: CommandContext, channel: Channel) -> None:
    """Stop a channel and start it again."""
    _needs_server(at)
    async with at.office() as office:
        await office.system.restart_channel(at.caller, channel)
    _show_action(at, channel, "restarted")


def _needs_server(at: CommandContext) -> None:
    from postroom.app.process import NotRunning

    if not at.server_runs:
        raise NotRunning


_both("unconfirmed", "postroom channel unconfirmed", "postroom channel unconfirmed --channel telegram")(
    unconfirmed_replies.list_unconfirmed
)
_both("resend", "postroom channel resend 01J8…")(unconfirmed_replies.resend)
_both("dismiss", "postroom channel dismiss 01J8…")(unconfirmed_replies.dismiss)
