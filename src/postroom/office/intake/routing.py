"""Whom a message is for: the addressees of what a person writes, and of what an agent hands on.

Nothing is dropped in silence: what reaches nobody is reported with its reason, or stays in the text.
"""

import re
import unicodedata
from collections.abc import Iterable, MutableMapping
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from postroom.errors import Invalid
from postroom.office import tags

if TYPE_CHECKING:
    from postroom.settings import Settings

CLEAR = "default"


class NoAgents(Invalid):
    """There is no agent to write to. Add one first."""

    code = "NO_AGENTS"


class AgentRef(msgspec.Struct, frozen=True):
    id: str
    name: str = ""


class TeamRef(msgspec.Struct, frozen=True):
    id: str
    name: str = ""
    leader: str = ""
    members: tuple[str, ...] = ()


class Addressee(msgspec.Struct, frozen=True):
    """An agent, and the team it was addressed as the leader of."""

    agent: str
    team: str | None = None


class OfficeDirectory:
    """The agents and teams there are, found by id or by a name of one word, in any case."""

    def __init__(
        self, agents: Iterable[AgentRef], teams: Iterable[TeamRef] = (), default: str | None = None
    ) -> None:
        self.agents = {agent.id: agent for agent in agents}
        self.teams = {team.id: team for team in teams}
        if not self.agents:
            raise NoAgents
        self.default = default if default in self.agents else next(iter(self.agents))
        self._members = {team.id: self._present(team) for team in self.teams.values()}
        self._agents = _by_word(self.agents.values())
        self._teams = _by_word(self.teams.values())

    @classmethod
    def of(cls, settings: "Settings") -> "OfficeDirectory":
        return cls(
            (AgentRef(key, agent.name) for key, agent in settings.present_agents().items()),
            (TeamRef(key, team.name, team.leader_agent, team.agents) for key, team in settings.teams.items()),
            settings.default_agent_id(),
        )

    def find(self, word: str) -> Addressee | None:
        """Ids come before names, and agents before teams."""
        word = _folded(word)
        for agents, teams in ((self._agents[0], self._teams[0]), (self._agents[1], self._teams[1])):
            if word in agents:
                return Addressee(agents[word])
            if word in teams and (leader := self.leader_of(teams[word])):
                return Addressee(leader, teams[word])
        return None

    def agent(self, word: str) -> str | None:
        found = self.find(word)
        return found.agent if found and found.team is None else None

    def members(self, team: str) -> tuple[str, ...]:
        """The members that exist, the leader among them."""
        return self._members.get(team, ())

    def _present(self, team: TeamRef) -> tuple[str, ...]:
        return tuple(dict.fromkeys(a for a in (*team.members, team.leader) if a in self.agents))

    def leader_of(self, team: str) -> str | None:
        """The leader; where it does not exist, the first member that does."""
        members = self.members(team)
        leader = self.teams[team].leader if team in self.teams else ""
        return leader if leader in members else next(iter(members), None)

    def teams_of(self, agent: str) -> tuple[str, ...]:
        return tuple(team for team in self.teams if agent in self.members(team))

    def common_team(self, one: str, other: str, preferred: str | None = None) -> str | None:
        common = [team for team in self.teams_of(one) if other in self.members(team)]
        return preferred if preferred in common else next(iter(common), None)


def _by_word(entries: Iterable[AgentRef | TeamRef]) -> tuple[dict[str, str], dict[str, str]]:
    ids: dict[str, str] = {}
    names: dict[str, str] = {}
    for entry in entries:
        ids.setdefault(_folded(entry.id), entry.id)
        if len(entry.name.split()) == 1:
            names.setdefault(_folded(entry.name.strip()), entry.id)
    return ids, names


def _folded(word: str) -> str:
    """The same for all ways in which a word can be typed: large or small, with accents in one sign or two."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())


class SkipReason(StrEnum):
    """Why a tag, or one of its addressees, was passed over."""

    SELF = "self"
    UNKNOWN = "unknown"
    STRANGER = "stranger"
    REPEATED = "repeated"
    EMPTY = "empty"
    UNCLOSED = "unclosed"


class Skipped(msgspec.Struct, frozen=True):
    tag: str
    why: SkipReason
    reason: str


class Via(StrEnum):
    GIVEN = "given"
    PREFIX = "prefix"
    TAG = "tag"
    STICKY = "sticky"
    DEFAULT = "default"


class RoutedMessage(msgspec.Struct, frozen=True):
    """One message for one agent. `team` is the team it was addressed through."""

    agent: str
    team: str | None
    text: str
    via: Via


class Routed(msgspec.Struct, frozen=True):
    messages: tuple[RoutedMessage, ...]
    skipped: tuple[Skipped, ...] = ()


_PREFIX = re.compile(r"@(\S+)(?:\s+(.*))?", re.DOTALL)


def route(
    text: str, directory: OfficeDirectory, *, agent: str | None = None, sticky: str | None = None
) -> Routed:
    """Whom a person's message is for: the `agent` given, an `@` prefix, tags, `sticky`, or the default.

    An explicit addressee gets the whole text; tags fan a message out only if it has none.
    """
    prefixed = _prefixed(text, directory)
    given = directory.find(agent) if agent else None
    if given is not None:
        # A prefix that says the same again is cleaned off, and may name the team.
        same = prefixed is not None and prefixed[0].agent == given.agent
        body = prefixed[1] if prefixed and same else text
        team = given.team or (prefixed[0].team if prefixed and same else None)
        return Routed((RoutedMessage(given.agent, team, body, Via.GIVEN),))
    if prefixed is not None:
        to, body = prefixed
        return Routed((RoutedMessage(to.agent, to.team, body, Via.PREFIX),))
    messages, skipped = _fan_out(text, directory)
    if messages:
        return Routed(messages, skipped)
    stuck = directory.find(sticky) if sticky else None
    if stuck is not None:
        return Routed((RoutedMessage(stuck.agent, stuck.team, text, Via.STICKY),), skipped)
    return Routed((RoutedMessage(directory.default, None, text, Via.DEFAULT),), skipped)


def _prefixed(text: str, directory: OfficeDirectory) -> tuple[Addressee, str] | None:
    match = _PREFIX.fullmatch(text)
    if match is None or match[2] is None:
        return None
    to = _addressed(match[1], directory)
    return None if to is None else (to, match[2])


def _addressed(word: str, directory: OfficeDirectory) -> Addressee | None:
    # People write "@coder, please" and "@coder: please".
    return directory.find(word) or directory.find(word.rstrip(",:"))


def _fan_out(text: str, directory: OfficeDirectory) -> tuple[tuple[RoutedMessage, ...], tuple[Skipped, ...]]:
    shared: list[tags.Part] = []
    # A dict keeps the texts in order and takes each but once.
    own: dict[str, dict[str, None]] = {}
    teams: dict[str, str | None] = {}
    skipped: list[Skipped] = []
    for part in tags.parse(text):
        if not isinstance(part, tags.Mention):
            shared.append(part)
            continue
        found = {word: directory.find(word) for word in part.ids}
        for word, to in found.items():
            if to is None:
                skipped.append(Skipped(word, SkipReason.UNKNOWN, f'There is no agent or team "{word}".'))
            else:
                own.setdefault(to.agent, {})[part.text] = None
                teams[to.agent] = teams.get(to.agent) or to.team
        if not any(found.values()):
            # Meant for nobody here, so it stays where all can read it.
            shared.append(tags.Text(part.source))
    context = tags.shared_context(shared)
    messages: list[RoutedMessage] = []
    for agent, texts in own.items():
        mine = "\n".join(text for text in texts if text)
        body = tags.compose(context, mine) if mine else context
        if body:
            messages.append(RoutedMessage(agent, teams[agent], body, Via.TAG))
        else:
            skipped.append(Skipped(agent, SkipReason.EMPTY, f"The tag for @{agent} has no text."))
    return tuple(messages), tuple(skipped)


class Stuck(msgspec.Struct, frozen=True):
    """What a chat's own default makes of a message: `text` is None if nothing is to be sent on."""

    text: str | None
    sticky: str | None = None
    notice: str | None = None


def stick(text: str, directory: OfficeDirectory, defaults: MutableMapping[str, str], chat: str) -> Stuck:
    """Keeps or changes the default addressee of a chat in `defaults`. Hand `sticky` on to `route`."""
    match = _PREFIX.fullmatch(text)
    if match is None:
        return _stuck_before(text, directory, defaults, chat)
    body = (match[2] or "").strip()
    if match[1].casefold() == CLEAR:
        notice = (
            "Cleared default agent. Messages will use default routing."
            if defaults.pop(chat, None)
            else "No default agent was set."
        )
        return Stuck(match[2] if body else None, notice=notice)
    to = _addressed(match[1], directory)
    if to is None:
        return Stuck(text)
    target = to.team or to.agent
    notice = None
    if defaults.get(chat) != target:
        defaults[chat] = target
        kind, name = (
            ("team", directory.teams[target].name) if to.team else ("agent", directory.agents[target].name)
        )
        notice = (
            f"Switched to {kind} @{target} ({name}). Future messages will be routed here automatically. "
            "Send @default to clear."
        )
    return Stuck(text if body else None, target, notice)


def _stuck_before(
    text: str, directory: OfficeDirectory, defaults: MutableMapping[str, str], chat: str
) -> Stuck:
    target = defaults.get(chat)
    if target is None or directory.find(target) is not None:
        return Stuck(text, target)
    del defaults[chat]
    return Stuck(text, notice=f"@{target} is not here any more. Messages will use default routing.")


class Handoff(msgspec.Struct, frozen=True):
    """A direct message between agents: `text` is what the other receives, `body` is without its header."""

    agent: str
    team: str
    body: str
    text: str


class RoutedPost(msgspec.Struct, frozen=True):
    """A post to the room of a team: `text` is what each of `members` receives, `body` is what was written."""

    team: str
    members: tuple[str, ...]
    body: str
    text: str


class Passed(msgspec.Struct, frozen=True):
    """What an agent's answer passes on to others."""

    handoffs: tuple[Handoff, ...]
    posts: tuple[RoutedPost, ...]
    skipped: tuple[Skipped, ...]


def pass_on(answer: str, sender: str, directory: OfficeDirectory, *, team: str | None = None) -> Passed:
    """The hand-offs and room posts in an agent's answer. An agent reaches the members of all its teams;
    `team`, the team it works for now, is preferred where two agents share several."""
    parts = tags.parse(answer)
    context = tags.shared_context(parts)
    handoffs: dict[str, Handoff] = {}
    posts: list[RoutedPost] = []
    skipped: list[Skipped] = []
    for part in parts:
        if isinstance(part, tags.Mention):
            for word in part.ids:
                mate = directory.agent(word)
                common = directory.common_team(sender, mate, team) if mate else None
                if mate is None or common is None or mate == sender or mate in handoffs:
                    skipped.append(_not_handed(word, mate, sender, directory, repeated=mate in handoffs))
                else:
                    body = tags.compose(context, part.text)
                    handoffs[mate] = Handoff(mate, common, body, tags.from_teammate(sender, body))
        elif isinstance(part, tags.RoomPost):
            made = _posted(part, sender, directory)
            if isinstance(made, RoutedPost):
                posts.append(made)
            else:
                skipped.append(made)
        elif isinstance(part, tags.Unclosed):
            skipped.append(
                Skipped(part.source, SkipReason.UNCLOSED, f'"{part.source}" is never closed by a "]".')
            )
    return Passed(tuple(handoffs.values()), tuple(posts), tuple(skipped))


def post(text: str, team: str, poster: str, directory: OfficeDirectory) -> RoutedPost:
    """A post for everybody in the team but its poster; a person posts as `user`."""
    others = tuple(member for member in directory.members(team) if member != poster)
    return RoutedPost(team, others, text, tags.from_room(team, poster, text))


def _posted(part: tags.RoomPost, sender: str, directory: OfficeDirectory) -> RoutedPost | Skipped:
    if part.team not in directory.teams:
        return Skipped(part.team, SkipReason.UNKNOWN, f'There is no team "{part.team}".')
    if sender not in directory.members(part.team):
        return Skipped(part.team, SkipReason.STRANGER, f"@{sender} is not a member of #{part.team}.")
    if not part.text:
        return Skipped(part.team, SkipReason.EMPTY, f"The post to #{part.team} has no text.")
    return post(part.text, part.team, sender, directory)


def _not_handed(
    word: str, mate: str | None, sender: str, directory: OfficeDirectory, *, repeated: bool
) -> Skipped:
    if mate is None:
        hint = f" To reach the whole team, write [#{word}: …]." if word in directory.teams else ""
        return Skipped(word, SkipReason.UNKNOWN, f'There is no agent "{word}".{hint}')
    if mate == sender:
        return Skipped(word, SkipReason.SELF, f"@{sender} wrote to itself.")
    if repeated:
        return Skipped(word, SkipReason.REPEATED, f"@{mate} has a message from this answer already.")
    return Skipped(word, SkipReason.STRANGER, f"@{sender} and @{mate} share no team.")
