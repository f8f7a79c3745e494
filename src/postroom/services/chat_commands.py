"""What people can ask for in a chat with a command, and what each role may. Agents never see these messages.

Owners decide about everything, members about what is theirs; guests only talk.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from postroom.clock import Clock
from postroom.errors import PostroomError
from postroom.kernel.model import Message
from postroom.kernel.states import OPEN
from postroom.office import queues
from postroom.office.chat_preferences import (
    BusyMode,
    ChatPreferences,
    NoiseLevel,
    put_preferences,
    read_preferences,
)
from postroom.office.guards import budgets, pauses
from postroom.office.guards.budgets import dollars
from postroom.office.pairing import CODE_CHARS, CodeNotFound, Pairings, SenderRole
from postroom.office.review_notices import find_option, list_options, person_of_review, review_code
from postroom.office.texts import excerpt
from postroom.services import callers
from postroom.services.office_context import OfficeControl
from postroom.services.reviews import Review, Reviews
from postroom.services.waiting_reasons import explain_guards, explain_state

if TYPE_CHECKING:
    from postroom.runtime import Room

# Those that the office itself answers, about conversations that wait for a person.
OF_GUARDS = ("continue", "raise")
_COMMAND = re.compile(r"[/!]([a-z]+)(?:@\S+)?(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)
MOST_LISTED = 20
HELP = """/agent lists the agents, /team the teams; @name chooses one for this chat, @default none.
/status tells who works, /why what your last message waits for, /cost what was spent.
/stop ends what is open of yours; /reset @agent begins a new conversation with it.
/approve and /deny answer what waits for a decision. /mode says how this chat is treated."""


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A message of somebody who may write, before an agent gets it."""

    channel: str
    chat: str
    sender_id: str
    sender: str
    text: str


class ChatCommands:
    def __init__(
        self,
        room: "Room",
        control: OfficeControl,
        reviews: Reviews,
        clock: Clock,
        restart: Callable[[], None] | None = None,
    ) -> None:
        self._room = room
        self._control = control
        self._reviews = reviews
        self._clock = clock
        self._restart = restart

    async def answer(self, asked: ChatRequest) -> str | None:
        """What to say to it at once; None when it is no command, or one that the office answers."""
        match = _COMMAND.fullmatch(asked.text.strip())
        run = COMMANDS.get(match[1].lower()) if match else None
        if match is None or run is None:
            return None
        role = await Pairings(self._room, self._clock).find_role(asked.channel, asked.sender_id)
        if role is None or role is SenderRole.GUEST:
            return "Guests can write to the agent here, and use no commands."
        try:
            return await run(self, asked, role, (match[2] or "").split())
        except PostroomError as problem:
            return str(problem)

    async def _help(self, asked: ChatRequest, role: SenderRole, words: Sequence[str]) -> str:
        return HELP

    async def _list_agents(self, asked: ChatRequest, role: SenderRole, words: Sequence[str]) -> str:
        settings = self._control.settings
        lines = ["**Available Agents:**"]
        for key, agent in settings.present_agents().items():
            lines += ["", f"@{key} - {agent.name}", f"  Provider: {'/'.join(settings.choice_of(key))}"]
            lines.append(f"  Directory: {settings.agent_directory(key)}")
            if agent.system_prompt:
                lines.append("  Has custom system prompt")
            if agent.prompt_file:
                lines.append(f"  Prompt file: {agent.prompt_file}")
        return "\n".join([*lines, "", "Begin a message with @agent_id to write to one of them."])

    async def _list_teams(self, asked: ChatRequest, role: SenderRole, words: Sequence[str]) -> str:
        teams = self._control.settings.teams
        if not teams:
            return "No teams configured.\n\nAdd one with: postroom team add"
        lines = ["**Available Teams:**"]
        for key, team in teams.items():
            lines += ["", f"@{key} - {team.name}", f"  Agents: {', '.join(team.agents)}"]
            lines.append(f"  Leader: @{team.leader_agent}")
        return "\n".join([*lines, "", "Begin a message with @team_id to write to one of them."])

    async def _reset(self, asked: ChatRequest, role: SenderRole, words: Sequence[str]) -> str | None:
        if not words:
            return "Usage: /reset @agent_id [@agent_id2 ...]\nSpecify which agent(s) to reset."
        office, lines = self._control.office, []
        for word in words:
            wanted = word.lstrip("@")
            agent = office.directory.agent(wanted)
            if agent is None:
                lines.append(f"Agent '{wanted}' not found.")
                continue
            await office.reset(agent)
            lines.append(f"Reset @{agent} ({office.directory.agents[agent].name}).")
        return "\n".join(lines)

    async def _begin_anew(self, asked: ChatRequest, role: SenderRole, words: Sequence[str]) -> str:
        if role is not SenderRole.OWNER:
            return "Only an owner can restart this office."
        if self._restart is None:
            return "This process cannot restart itself. At the shell: postroom restart"
        self._restart()
        return "Restarting. What you write meanwhile is answered afterwards."

    async def _tell_status(self, asked: ChatRequest, role: SenderRole, words: Sequence[str]) -> str:
        mine = [message for message in await self._own(asked) if message.state in OPEN]
        lines = [f"You have {_count(len(mine), 'open message')}."]
        if role is SenderRole.OWNER:
            counts = await self._room.scope_counts(queues.SCOPE)
            if await pauses.paused(self._room):
                lines.append("Everybody is paused: postroom guards resume")
            for agent in self._control.office.directory.agents:
                found = counts.get(queues.inbox(agent).removeprefix(f"{queues.SCOPE}/"))
                if found is not None and found.open:
                    does = "works" if found.claimed else "waits"
                    lines.append(f"@{agent} {does}; {_count(found.open, 'open message')}.")
            if reviews := await self._open_reviews(asked, role):
                lines.append(f"{_count(len(reviews), 'decision')} wait for you: /approve")
        return "\n".join(lines)

    async def _explain(self, asked: ChatRequest, role: SenderRole, words: Sequence[str]) -> str:
        """What became of the last message, agent by agent."""
        mine = await self._own(asked)
        if not mine:
            return "You have not written anything yet."
        last = next((message for message in mine if message.state in OPEN), mine[0])
        page = await self._room.messages(
            scope=queues.SCOPE, correlation_id=last.correlation_id, limit=MOST_LISTED
        )
        lines = [f"About “{excerpt(_words(last), 80)}”:"]
        lines += [
            explain_state(each) for each in page.messages if queues.is_inbox(each.origin_queue or each.queue)
        ]
        return "\n".join([*lines, *await explain_guards(self._room, last)])

    async def _tell_cost(self, asked: ChatRequest, role: SenderRole, words: Sequence[str]) -> str:
        lines: list[str] = []
        if mine := await self._own(asked):
            account = budgets.conversation(mine[0].correlation_id or "")
            spent = (await self._room.accounts(account))[account].spent
            lines.append(f"Your last conversation: {dollars(spent)}.")
        if role is SenderRole.OWNER:
            guards = self._control.office.guards
            for budget in await pauses.budgets(self._room, guards, self._clock.now()):
                if budget.spent or budget.frozen:
                    limit = "" if budget.limit is None else f" of {dollars(budget.limit)}"
                    used = ", used up" if budget.frozen else ""
                    lines.append(f"{budget.account}: {dollars(budget.spent)}{limit}{used}")
        return "\n".join(lines) or "Nothing was spent."

    async def _stop(self, asked: ChatRequest, role: SenderRole, words: Sequence[str]) -> str | None:
        """With a code, or while something is paused, it is an answer to a guard."""
        paused = await pauses.paused_conversations(self._room)
        if words or any((each.channel, each.person) == (asked.channel, asked.sender_id) for each in paused):
            return None
        talks = {message.correlation_id for message in await self._own(asked) if message.state in OPEN}
        ended = 0
        for talk in sorted(talk for talk in talks if talk):
            actor = f"{asked.channel}/{asked.sender_id}"[:500]
            ended += await pauses.stop(self._room, talk, actor=actor)
        self._control.office.look_up()
        return f"Stopped. {_count(ended, 'message')} cancelled." if ended else "Nothing of yours is open."

    async def _tell_mode(self, asked: ChatRequest, role: SenderRole, words: Sequence[str]) -> str:
        wanted = await read_preferences(self._room, asked.channel, asked.chat)
        for word in (word.lower() for word in words):
            if word in list(BusyMode):
                wanted = msgspec.structs.replace(wanted, busy=BusyMode(word))
            elif word in list(NoiseLevel):
                wanted = msgspec.structs.replace(wanted, noise=NoiseLevel(word))
            elif word == "default":
                wanted = ChatPreferences()
            else:
                return f"There is no mode “{excerpt(word, 30)}”. {MODES}"
        if words:
            command = put_preferences(asked.channel, asked.chat, wanted, self._room.actor)
            await self._room.run(command)
        busy, noise = wanted.busy or "as the channel does", wanted.noise or "as the channel does"
        told = f"While an agent is busy: {busy}. What you hear: {noise}."
        if wanted.busy is BusyMode.STEER:
            told += f" {self._tell_steerable()}"
        return told if words else f"{told} {MODES}"

    def _tell_steerable(self) -> str:
        agents = self._control.office.list_steerable()
        if not agents:
            return "No agent's provider takes a message into a turn, so the turn begins again with both."
        named = ", ".join(f"@{agent}" for agent in agents)
        return f"Into a turn that goes on with {named}; with any other agent the turn begins again with both."

    async def _approve(self, asked: ChatRequest, role: SenderRole, words: Sequence[str]) -> str:
        if words and len(words[0]) == CODE_CHARS and role is SenderRole.OWNER:
            try:
                return await self._pair(asked, role, words)
            except CodeNotFound:
                pass
        return await self._decide(asked, role, words, approving=True)

    async def _deny(self, asked: ChatRequest, role: SenderRole, words: Sequence[str]) -> str:
        return await self._decide(asked, role, words, approving=False)

    async def _pair(self, asked: ChatRequest, role: SenderRole, words: Sequence[str]) -> str:
        if role is not SenderRole.OWNER:
            return "Only an owner can let others write."
        pairings = Pairings(self._room, self._clock)
        if not words:
            waiting = [f"{each.code}: {each.sender} on {each.channel}" for each in await pairings.waiting()]
            return "\n".join(waiting) or "Nobody waits."
        given = SenderRole(words[1].lower()) if words[1:] and words[1].lower() in list(SenderRole) else None
        done = await pairings.approve(words[0], given or SenderRole.MEMBER)
        return f"{done.sender} on {done.channel} may write, as {done.role}."

    async def _decide(
        self, asked: ChatRequest, role: SenderRole, words: Sequence[str], *, approving: bool
    ) -> str:
        found = await self._open_reviews(asked, role)
        if words and not any(words[0].lower() == review_code(each.found.message.id) for each in found):
            found = [each for each in found if find_option(each.spec, words, approving) is not None]
        elif words:
            found = [each for each in found if words[0].lower() == review_code(each.found.message.id)]
            words = words[1:]
        if not found:
            return "Nothing waits for your decision."
        if len(found) > 1:
            return "\n".join(["Which one? Write the code behind /approve or /deny:", *map(_describe, found)])
        option = find_option(found[0].spec, words, approving)
        if option is None:
            return _describe(found[0])
        await self._answer_review(found[0], option, asked)
        return f"Decided: {option}."

    async def _answer_review(self, review: Review, option: str, asked: ChatRequest) -> None:
        actor = f"{asked.channel}/{asked.sender_id}"[:500]
        caller = callers.owner(name=asked.sender, actor=actor)
        field = next(
            section.get("field", "decision")
            for section in review.spec["sections"]
            if section["type"] == "decision"
        )
        await self._reviews.answer(caller, review.found.message.id, {field: option}, seen=review.seen)

    async def _open_reviews(self, asked: ChatRequest, role: SenderRole) -> list[Review]:
        found = await self._reviews.list_everywhere(callers.owner())
        if role is SenderRole.OWNER:
            return found
        own = (asked.channel, asked.sender_id)
        return [each for each in found if await person_of_review(self._room, each.found.message) == own]

    async def _own(self, asked: ChatRequest) -> list[Message]:
        """What this person wrote, the newest first."""
        page = await self._room.messages(
            scope=queues.SCOPE,
            channel=asked.channel,
            sender_id=asked.sender_id,
            message_type="office.mail",
            newest_first=True,
            limit=MOST_LISTED,
        )
        return list(page.messages)


Run = Callable[[ChatCommands, ChatRequest, SenderRole, Sequence[str]], Awaitable[str | None]]
COMMANDS: dict[str, Run] = {
    "help": ChatCommands._help,
    "start": ChatCommands._help,
    "agent": ChatCommands._list_agents,
    "agents": ChatCommands._list_agents,
    "team": ChatCommands._list_teams,
    "teams": ChatCommands._list_teams,
    "reset": ChatCommands._reset,
    "restart": ChatCommands._begin_anew,
    "status": ChatCommands._tell_status,
    "why": ChatCommands._explain,
    "cost": ChatCommands._tell_cost,
    "stop": ChatCommands._stop,
    "mode": ChatCommands._tell_mode,
    "approve": ChatCommands._approve,
    "deny": ChatCommands._deny,
    "pair": ChatCommands._pair,
}
MENU = {
    "agent": "List available agents",
    "team": "List available teams",
    "reset": "Reset conversation history",
    "restart": "Restart the office",
    "status": "Who works, and what is open",
    "why": "What your last message waits for",
    "cost": "What was spent",
    "stop": "End what is open of yours",
    "approve": "Answer what waits for a decision",
    "mode": "How this chat is treated",
}
MODES = f"There are {', '.join(BusyMode)} and {', '.join(NoiseLevel)}, and default."


def read_command(text: str) -> str:
    """A command as it is known here: `!stop` and `/stop@bot` are `/stop`. Anything else stays as it is."""
    match = _COMMAND.fullmatch(text.strip())
    if match is None or match[1].lower() not in {*COMMANDS, *OF_GUARDS}:
        return text
    return f"/{match[1].lower()} {match[2] or ''}".strip()


def _describe(review: Review) -> str:
    message = review.found.message
    title = review.spec.get("title") or "A decision is asked for"
    context = next((s.get("content", "") for s in review.spec["sections"] if s["type"] == "context"), "")
    options = " · ".join(list_options(review.spec))
    return f"{review_code(message.id)}: {title}. {excerpt(str(context), 200)} ({options})"


def _words(message: Message) -> str:
    return str(message.body.get("text", "")) if isinstance(message.body, dict) else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
