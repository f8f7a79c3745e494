"""`postroom setup`: from nothing to a real answer. It asks a person, and takes everything as options too.

A provider is tried with one short turn before anything is written: what does not answer changes nothing.
"""

import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.errors import PostroomError
from postroom.settings.defaults import API_KEYS, PROGRAMS
from postroom.settings.secrets import is_handle
from postroom.terminal.cli import channels, prompts, service_unit
from postroom.terminal.cli.command import command
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.send import CHANNEL, wait_for_answer
from postroom.terminal.cli.store_access import CommandContext, whoami

if TYPE_CHECKING:
    from postroom.services.office import OfficeServices
    from postroom.services.providers import ProviderTest

SCRIPT = "script"
HELLO = "Say hello in one short sentence, and tell me what I could ask you first."
ANSWER_S = 300.0
TEAM = "team"
MEMBERS = {
    "lead": "You lead a small team. Hand work to @writer and @checker with tags, and answer when it is done.",
    "writer": "You write drafts, short and clear.",
    "checker": "You check what others wrote and name what is wrong, briefly.",
}


class ProviderSilent(PostroomError):
    """{provider} gave no answer: {problem} Nothing was changed. To try again: postroom provider test"""

    code = "PROVIDER_SILENT"
    exit_code = 9


@dataclass(frozen=True)
class Offer:
    """A provider that could work here, and what there is of it."""

    provider: str
    about: str
    needs_key: bool = False


def find_offers(environment: Mapping[str, str] = os.environ) -> Iterator[Offer]:
    """What is on this machine first, then what needs a key, then what needs neither key nor network."""
    for provider, program in PROGRAMS.items():
        if where := shutil.which(program, path=environment.get("PATH", "")):
            yield Offer(provider, f"{program}, which is installed ({where})")
    for provider, variable in API_KEYS.items():
        if environment.get(variable):
            yield Offer(provider, f"the API, with the key in {variable}")
    for provider, variable in API_KEYS.items():
        if not environment.get(variable):
            yield Offer(provider, "the API, with a key that you paste", needs_key=True)
    yield Offer(SCRIPT, "no model: a script answers, without a key or network")


def register(root: typer.Typer, panel: str) -> None:
    command(
        root,
        "setup",
        panel=panel,
        store=False,
        examples=[
            "postroom setup",
            "postroom setup --provider anthropic",
            "postroom setup --provider anthropic_api --api-key env:ANTHROPIC_API_KEY --team --json",
            "postroom setup --provider openai_api --url http://127.0.0.1:8000/v1 --api-key none --model m",
            "postroom setup telegram --token env:TELEGRAM_BOT_TOKEN",
        ],
    )(setup)


async def setup(
    at: CommandContext,
    channel: Annotated[
        str | None, argument("CHANNEL", "Only this channel, as postroom channel setup does.")
    ] = None,
    provider: Annotated[
        str | None, option("NAME", "What agents work with; without it, you are asked.", "--provider")
    ] = None,
    model: Annotated[str | None, option("NAME", "Its model.", "--model")] = None,
    key: Annotated[
        str | None, option("TEXT", "Its key; env:NAME and file:PATH are kept as such.", "--api-key")
    ] = None,
    url: Annotated[str | None, option("URL", "The server, instead of the vendor's.", "--url")] = None,
    team: Annotated[bool, flag("Also make a team of three to try hand-offs.", "--team")] = False,
    service: Annotated[bool, flag("Also let systemd keep it running for you.", "--service")] = False,
    untested: Annotated[bool, flag("Do not try the provider.", "--no-test")] = False,
    token: Annotated[str | None, option("TEXT", "Of the channel's bot.", "--token")] = None,
    off: Annotated[bool, flag("Switch the channel off.", "--off")] = False,
) -> None:
    """Set up the office: a provider that answers, the first agents, a channel. Ends with a real answer."""
    if channel is not None or token is not None or off:
        await channels.setup(at, channel, token, off=off)
        return
    wanted, is_asked = _Wanted(provider, model, key, url), provider is None
    async with at.office(works=True, patience_s=None) as office:
        found = await _choose(at, office, wanted, untested=untested)
        agents = await _staff(at, office, wanted)
        if team or (is_asked and prompts.yes("Make a team of three to try hand-offs?")):
            agents += await _make_team(at, office)
        first = await _first_answer(at, office, agents[0])
    if is_asked and prompts.yes("Set up a channel, like Telegram?"):
        await channels.setup(at)
    if service or (is_asked and shutil.which("systemctl") and prompts.yes("Let systemd keep it running?")):
        _serve(at)
    document = {"provider": wanted.provider, "agents": agents, "tested": found is not None, "answer": first}
    at.out.show(document, first, f"\nAgents: {', '.join(f'@{each}' for each in agents)}.", *_next(agents[0]))


def _serve(at: CommandContext) -> None:
    """What cannot be started is told with the way to do it by hand; the office is set up all the same."""
    unit = service_unit.write_unit(at.home)
    problem = service_unit.start_unit()
    at.out.note(f"wrote {unit}" + (f"; it was not started ({problem})" if problem else ", and started it"))
    if problem:
        at.out.note(f"to start it: systemctl --user enable --now {service_unit.NAME}")


@dataclass
class _Wanted:
    provider: str | None
    model: str | None
    key: str | None
    url: str | None


async def _choose(
    at: CommandContext, office: "OfficeServices", wanted: _Wanted, *, untested: bool
) -> "ProviderTest | None":
    """Until one answers, or the person gives up; then it is in the settings."""
    is_asked = wanted.provider is None
    while True:
        if is_asked:
            _ask(at, wanted)
        assert wanted.provider is not None
        tested = None
        if not untested:
            at.out.note(f"asking {wanted.provider} for one word …")
            tested = await office.providers.test(
                at.caller, wanted.provider, model=wanted.model, api_key=wanted.key, base_url=wanted.url
            )
        if tested is None or not tested.problem:
            break
        if not is_asked:
            raise ProviderSilent(provider=wanted.provider, problem=f"{tested.problem.rstrip('.')}.")
        at.out.say(f"{wanted.provider} gave no answer: {tested.problem}")
        if not prompts.yes("Choose again?", default=True):
            raise ProviderSilent(provider=wanted.provider, problem=f"{tested.problem.rstrip('.')}.")
        wanted.provider = wanted.key = wanted.model = None
    if tested is not None:
        at.out.note(f"{wanted.provider} answered after {tested.seconds:.1f} s")
    key = wanted.key
    if key is not None and not is_handle(key):
        key = channels.keep_secret(at, f"{wanted.provider.removesuffix('_api')}_api_key", key)
    await office.providers.choose(at.caller, wanted.provider, model=wanted.model, api_key=key)
    if wanted.url is not None:
        section = wanted.provider.removesuffix("_api")
        await office.settings.set(at.caller, f"models.{section}.base_url", wanted.url)
    return tested


def _ask(at: CommandContext, wanted: _Wanted) -> None:
    offers = list(find_offers())
    if not prompts.somebody():
        names = ", ".join(offer.provider for offer in offers)
        raise Unclear(f"name a provider ({names}), like: postroom setup --provider {offers[0].provider}")
    at.out.say("What should your agents work with?")
    for number, offer in enumerate(offers, 1):
        at.out.say(f"  {number}  {offer.provider:<14} {offer.about}")
    choices = [str(number) for number in range(1, len(offers) + 1)]
    answer = ""
    while answer not in choices:
        answer = prompts.text("Number", "1", choices)
    offer = offers[int(answer) - 1]
    wanted.provider = offer.provider
    if offer.needs_key:
        wanted.key = prompts.secret(f"Key for {offer.provider} (it does not show)")


async def _staff(at: CommandContext, office: "OfficeServices", wanted: _Wanted) -> list[str]:
    """Agents that only say what a script says get what was chosen; the others keep what they have."""
    known = await office.agents.list_all(at.caller)
    for agent, one in known.items():
        if one.provider == SCRIPT and wanted.provider != SCRIPT:
            await office.agents.change(
                at.caller, agent, {"provider": wanted.provider, "model": wanted.model or ""}
            )
    return [agent for agent in known if agent not in MEMBERS] or list(known)


async def _make_team(at: CommandContext, office: "OfficeServices") -> list[str]:
    known = await office.agents.list_all(at.caller)
    for agent, prompt in MEMBERS.items():
        if agent not in known:
            await office.agents.add(at.caller, agent, {"name": agent.capitalize()}, system_prompt=prompt)
    await office.teams.put(
        at.caller, TEAM, {"name": "Team", "agents": list(MEMBERS), "leader_agent": next(iter(MEMBERS))}
    )
    return list(MEMBERS)


async def _first_answer(at: CommandContext, office: "OfficeServices", agent: str) -> str:
    """The whole way, as every later message goes it."""
    from postroom.services.conversations import Draft
    from postroom.services.office_documents import reply_document

    at.out.note(f"writing to @{agent} …")
    message_id = f"cli_{uuid.uuid4().hex[:12]}"
    draft = Draft(text=HELLO, channel=CHANNEL, sender=whoami(), agent=agent, message_id=message_id)
    await office.conversations.send(at.caller, draft)
    found = await wait_for_answer(at, office, message_id, ANSWER_S)
    if not found.replies:
        raise ProviderSilent(provider=f"@{agent}", problem=" ".join(found.failures) or "nobody answered.")
    return "\n".join(reply_document(reply)["message"] for reply in found.replies)


def _next(agent: str) -> list[str]:
    return [
        "Go on with:",
        f'  postroom send "@{agent} …" --wait   write to an agent',
        "  postroom start                      let them work while you do something else",
        "  postroom channel setup              write from Telegram",
        "  postroom doctor                     see what is wrong, if something is",
    ]
