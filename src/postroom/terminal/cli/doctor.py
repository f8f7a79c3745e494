"""`postroom doctor`: what is wrong, what is open to whom, and what to do about it."""

import os
import shutil
import socket
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from postroom.app.home import Home
from postroom.app.office_settings import open_file
from postroom.app.roles import running
from postroom.clock import SECOND
from postroom.errors import PostroomError
from postroom.runtime.store_move import describe_store
from postroom.services.provider_registry import SCRIPT, read_own_script
from postroom.settings import Settings, find_warnings, with_environment
from postroom.settings.defaults import API_KEYS, PROGRAMS
from postroom.settings.errors import SecretMissing
from postroom.settings.secrets import is_handle, reveal
from postroom.terminal.cli.command import command
from postroom.terminal.cli.doctor_finding import BAD, OK, WARN, DoctorFinding
from postroom.terminal.cli.doctor_hosts import find_host_problems
from postroom.terminal.cli.options import choice, flag
from postroom.terminal.cli.output import Column, table
from postroom.terminal.cli.store_access import CommandContext

FREE_BYTES = 500 * 1024 * 1024
AHEAD_S = 60.0


class Cure(StrEnum):
    CLOCK = "clock"


def register(app: typer.Typer, panel: str) -> None:
    command(
        app,
        "doctor",
        panel=panel,
        store=False,
        examples=[
            "postroom doctor",
            "postroom doctor --live",
            "postroom doctor --security",
            "postroom doctor --cure clock",
        ],
    )(doctor)


async def doctor(
    at: CommandContext,
    security: Annotated[bool, flag("Tell what is open to whom.", "--security")] = False,
    live: Annotated[
        bool, flag("Also ask each provider for one word; that costs a short turn each.", "--live")
    ] = False,
    cure: Annotated[
        Cure | None, choice(Cure, "Tell what a cure would change; with --yes, do it after a backup", "--cure")
    ] = None,
    yes: Annotated[bool, flag("With --cure: do it.", "--yes", "-y")] = False,
) -> None:
    """Look for what is wrong, and say what cures it. Ends with 1 when something is bad."""
    if cure is not None:
        from postroom.terminal.cli.clock_cure import cure_clock

        cure_clock(at, yes=yes)
        return
    home = Home.of()
    try:
        settings, shown, problem = _read_settings(home)
    except PostroomError as error:
        found = [DoctorFinding(BAD, "settings", str(error))]
    else:
        found = [DoctorFinding(BAD, "settings", problem)] if problem else []
        found += _security(home, settings) if security else _health(at, home, settings, shown)
        if at.is_on_server and not security and not problem:
            found += [finding async for finding in find_host_problems(at, home, settings)]
        if live and not security:
            found += [finding async for finding in _answers(at, settings)]
    document = [{"level": one.level, "about": one.about, "text": one.text} for one in found]
    at.out.show(
        {"findings": document, "bad": sum(one.level == BAD for one in found)},
        table(
            ["", "about", Column("finding", free=True)], [(one.level, one.about, one.text) for one in found]
        ),
    )
    if any(one.level == BAD for one in found):
        raise typer.Exit(1)


def _read_settings(home: Home) -> tuple[Settings, dict[str, Any], str]:
    """Also as they are shown. Where the store does not give the office's, those of the host, and why."""
    host = with_environment(home.settings.load())
    try:
        with open_file(home, os.environ) as file:
            return with_environment(file.load()), file.masked(), ""
    except PostroomError as error:
        return host, home.settings.masked(), str(error)


def _store(at: CommandContext) -> Iterator[DoctorFinding]:
    """Whether it can be read, and what in it waits for a person."""
    try:
        if at.is_on_server:
            info = describe_store(at.url)
            told = "and the office runs on it" if at.is_served else "which is reached while the office runs"
            yield DoctorFinding(OK, "store", f"{info.kind}, {info.bytes // 1024:,} kB, {told}")
            for warning in info.warnings:
                yield DoctorFinding(WARN, "store", warning)
            return
        if not at.path.exists():
            return
        with at.looking() as room:
            dead = sum(room.counts(queue.path).dead for queue in room.queues())
            ahead_s = (room.head().time - at.clock.now()) / SECOND
    except PostroomError as error:
        yield DoctorFinding(BAD, "store", str(error))
        return
    yield DoctorFinding(OK, "store", f"{at.path}, {at.path.stat().st_size // 1024:,} kB")
    if ahead_s > AHEAD_S:
        told = f"the newest event is dated {ahead_s / 60:,.0f} minutes ahead of this machine's clock"
        cure = "if it is right now, it was ahead once: postroom doctor --cure clock; else set it"
        yield DoctorFinding(WARN, "clock", f"{told}; {cure}")
    if dead:
        yield DoctorFinding(WARN, "dead letters", f"{dead:,}; see: postroom dead list")


def _health(
    at: CommandContext, home: Home, settings: Settings, shown: dict[str, Any]
) -> Iterator[DoctorFinding]:
    yield DoctorFinding(OK, "python", sys.version.split()[0])
    if home.is_new:
        yield DoctorFinding(WARN, "home", f"{home.path} has no settings yet; type: postroom")
        yield from _store(at)
        return
    yield DoctorFinding(OK, "home", str(home.path))
    yield from _store(at)
    found = running(home.run)
    told = ", ".join(f"{each.url or 'no address'} (process {each.pid})" for each in found)
    yield DoctorFinding(OK if found else WARN, "house", told or "does not run; start it: postroom start")
    if problem := read_own_script(home.path)[1]:
        yield DoctorFinding(WARN, SCRIPT, problem)
    yield from _handles(shown)
    if not found:
        yield from _port(settings)
    yield from _files(home, settings)
    free = shutil.disk_usage(home.path).free
    yield DoctorFinding(OK if free > FREE_BYTES else BAD, "disk", f"{free // 1024**2:,} MB free")
    for sentence in find_warnings(settings):
        field, _, problem = sentence.partition(": ")
        yield DoctorFinding(WARN, field, problem)
    for agent in settings.present_agents():
        yield _agent(settings, agent)


def _files(home: Home, settings: Settings) -> Iterator[DoctorFinding]:
    """Whether files of messages can be kept where the settings say."""
    if not settings.files.url:
        return
    from postroom.office.message_files import FilesAway
    from postroom.office.object_files import open_files

    try:
        open_files(settings, home.path).probe()
    except FilesAway as away:
        yield DoctorFinding(BAD, "files", str(away.data["reason"]))
    else:
        yield DoctorFinding(OK, "files", settings.files.url)


def _install_command(provider: str) -> str:
    from postroom.providers import claude, codex, opencode

    products = {"anthropic": claude.PRODUCT, "openai": codex.PRODUCT, "opencode": opencode.PRODUCT}
    return products[provider].install


def _agent(settings: Settings, agent: str) -> DoctorFinding:
    """Whether there is what it needs. Whether its provider answers is another question, and is said so."""
    provider, model = settings.choice_of(agent)
    program, about = PROGRAMS.get(provider), f"{provider} {model}".strip()
    if program and shutil.which(program) is None:
        problem = (
            f"needs {program}, which is not installed or not on PATH;"
            f" install it: {_install_command(provider)}, or choose another: postroom setup"
        )
        return DoctorFinding(BAD, f"@{agent}", problem)
    if provider in API_KEYS:
        variable = API_KEYS[provider]
        own = getattr(settings.models, provider.removesuffix("_api"))
        if not (own and own.api_key) and not os.environ.get(variable):
            cure = f"set {variable}, or: postroom setup --provider {provider}"
            return DoctorFinding(BAD, f"@{agent}", f"{about} has no key; {cure}")
    if provider == "script":
        return DoctorFinding(OK, f"@{agent}", "says what a script says; for a model: postroom setup")
    return DoctorFinding(OK, f"@{agent}", f"{about} is there; whether it answers: postroom doctor --live")


async def _answers(at: CommandContext, settings: Settings) -> AsyncIterator[DoctorFinding]:
    choices = dict.fromkeys(settings.choice_of(agent) for agent in settings.present_agents())
    async with at.office(patience_s=None) as office:
        for provider, model in choices:
            at.out.note(f"asking {provider} …")
            tested = await office.providers.test(at.caller, provider, model=model or None)
            if tested.problem:
                yield DoctorFinding(BAD, provider, f"gives no answer: {tested.problem}")
            else:
                yield DoctorFinding(OK, provider, f"{tested.model} answered after {tested.seconds:.1f} s")


def _texts(shown: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text of the settings, with the name of its field."""
    if isinstance(shown, dict):
        for key, below in shown.items():
            yield from _texts(below, f"{name}.{key}" if name else key)
    elif isinstance(shown, list):
        for number, below in enumerate(shown):
            yield from _texts(below, f"{name}.{number}")
    elif isinstance(shown, str):
        yield name, shown


def _handles(shown: dict[str, Any]) -> Iterator[DoctorFinding]:
    """Secrets that are elsewhere, and are not to be had there."""
    for name, text in _texts(shown):
        if is_handle(text):
            try:
                reveal(text)
            except SecretMissing as error:
                yield DoctorFinding(BAD, name, str(error))


def _port(settings: Settings) -> Iterator[DoctorFinding]:
    """Whether the server could listen where it should."""
    where = (settings.api.host, settings.api.port)
    try:
        with socket.create_server(where):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        cure = "stop what uses it, or choose another: postroom settings set api.port 4000"
        yield DoctorFinding(BAD, "port", f"{where[0]}:{where[1]} cannot be used ({reason}); {cure}")


def _security(home: Home, settings: Settings) -> Iterator[DoctorFinding]:
    from postroom.api.auth.hosts import is_loopback

    api = settings.api
    where = f"{api.host}:{api.port}"
    if is_loopback(api.host):
        yield DoctorFinding(OK, "address", f"{where}: only this machine can connect")
    else:
        level = WARN if api.remote and api.auth == "token" else BAD
        yield DoctorFinding(level, "address", f"{where}: other machines can connect; put TLS in front of it")
    if api.auth == "token":
        yield DoctorFinding(OK, "token", "every request needs it, or a login")
    else:
        yield DoctorFinding(
            WARN, "token", "any program of any user of this machine may do everything (api.auth loopback)"
        )
    for origin in api.origins:
        yield DoctorFinding(WARN, "origins", f"pages of {origin} may use the API")
    if not api.origins:
        yield DoctorFinding(OK, "origins", "no page of another origin may use the API")
    for name in api.hosts:
        yield DoctorFinding(OK, "hosts", f"also answers as {name}")
    for path in (home.path, home.token, home.path / "settings.json", home.path / "postroom.db", home.logs):
        yield from _mode(path)
    yield from _clear_secrets(home)
    for name in settings.plugins.allowed:
        yield DoctorFinding(WARN, "plugins", f"{name} runs with all rights of this office")
    for agent in settings.present_agents():
        provider, _ = settings.choice_of(agent)
        if provider in PROGRAMS:
            yield _confinement(settings, agent, PROGRAMS[provider], home)
    if os.geteuid() == 0:
        yield DoctorFinding(WARN, "user", "runs as root; agents' programs do, too")


def _confinement(settings: Settings, agent: str, program: str, home: Home) -> DoctorFinding:
    from postroom.office.sandboxes import sandbox_for
    from postroom.providers.protocol import SandboxMode
    from postroom.providers.sandbox import find_confinements

    folder = settings.agent_directory(agent)
    open_text = f"{program} works in {folder} with your user's rights"
    mode = sandbox_for(settings, agent, None, home.path).mode
    if mode is SandboxMode.OFF:
        return DoctorFinding(WARN, f"@{agent}", f"{open_text}: its sandbox is off")
    found, missing = find_confinements()
    if not found:
        level = BAD if mode is SandboxMode.REQUIRED else WARN
        outcome = "takes no turn" if mode is SandboxMode.REQUIRED else open_text
        return DoctorFinding(level, f"@{agent}", f"{outcome}: {'; '.join(missing)}")
    best = found[0]
    text = f"{best.name} keeps {program} to {folder} and its own home"
    if best.nests:
        return DoctorFinding(OK, f"@{agent}", text)
    return DoctorFinding(WARN, f"@{agent}", f"{text}, less closely than bubblewrap: {'; '.join(missing)}")


def _mode(path: Path) -> Iterator[DoctorFinding]:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return
    if mode & 0o077:
        yield DoctorFinding(
            BAD, path.name, f"{path} can be read by other users ({mode:o}); chmod go-rwx {path}"
        )
    else:
        yield DoctorFinding(OK, path.name, f"only you can read {path}")


def _clear_secrets(home: Home) -> Iterator[DoctorFinding]:
    """Secrets that stand in the file themselves. Only where they are is told."""
    from postroom.settings.secrets import MASK

    shown = _texts(home.settings.masked())
    clear = [name for name, text in shown if MASK in text and not is_handle(text)]
    if clear:
        yield DoctorFinding(
            WARN, "secrets", f"in clear in settings.json: {', '.join(clear)}; better env:NAME or file:PATH"
        )
    else:
        yield DoctorFinding(OK, "secrets", "none in clear in settings.json")
