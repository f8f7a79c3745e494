"""The system prompt of an agent: composed anew for each turn, always in the same order, and bounded in size.

Manual, teammates, memory, the agent's own `AGENTS.md`, and what its settings add.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

import msgspec

from postroom.errors import PostroomError
from postroom.office import memory_index, skills
from postroom.office.intake.routing import OfficeDirectory
from postroom.office.manual import MANUAL, MEMORY_HINT, NO_MEMORY
from postroom.office.turns import sections
from postroom.office.turns.sections import harmless
from postroom.office.workspaces import INSTRUCTIONS, Workspace
from postroom.settings.model import Settings
from postroom.settings.paths import expanded

log = logging.getLogger("postroom.prompts")

# Existing skills and clients look for the last two; the first is ours.
OWN, TEAMMATES, MEMORY = "POSTROOM", "TEAMMATES", "MEMORY"

_NOTE_BYTES = 120


class PromptFileRefused(PostroomError):
    """The prompt file "{path}" of @{agent} is not used: {reason}."""

    code = "PROMPT_FILE_REFUSED"
    http_status = 422
    exit_code = 2


class Prompt(msgspec.Struct, frozen=True):
    """The text for the provider, and what did not find its way into it."""

    text: str
    problems: tuple[str, ...] = ()


def brief(settings: Settings, agent: str, user_home: Path | None = None) -> Prompt:
    """Puts the agent's workspace in order and composes its prompt: what is done before each turn."""
    workspace = Workspace.of(settings, agent, user_home)
    directory = OfficeDirectory.of(settings)
    parts = {OWN: MANUAL, TEAMMATES: teammates(settings, directory, workspace)}
    name = settings.present_agents()[agent].name
    problems = [*workspace.prepare(name, parts), *skills.refresh(workspace)]
    prompt = compose(settings, directory, workspace, user_home)
    problems = [*problems, *prompt.problems]
    for problem in problems:
        log.warning("@%s: %s", agent, problem)
    return Prompt(prompt.text, tuple(problems))


def compose(
    settings: Settings, directory: OfficeDirectory, workspace: Workspace, user_home: Path | None = None
) -> Prompt:
    problems: list[str] = []
    memory = memory_index.index(memory_index.notes(workspace.root))
    bounded = _fitted(
        (
            ("the list of teammates", teammates(settings, directory, workspace)),
            ("the index of memory/", memory),
            (INSTRUCTIONS, _instructions(workspace, problems)),
            ("the prompt of the settings", _added(settings, workspace, user_home, problems)),
        ),
        settings.limits.prompt_bytes - len(MANUAL.encode()) - 1024,
    )
    mates, memory, own, added = bounded
    known = f"## Memory\n\n{memory}\n\n{MEMORY_HINT}" if memory else f"## Memory\n\n{NO_MEMORY}"
    blocks = [MANUAL.strip(), sections.wrapped(TEAMMATES, mates), sections.wrapped(MEMORY, known)]
    return Prompt("\n\n".join([*blocks, *(text for text in (own, added) if text)]), tuple(problems))


def teammates(settings: Settings, directory: OfficeDirectory, workspace: Workspace) -> str:
    """Who the agent is, and whom it can write to."""
    agent = workspace.agent
    leads = any(directory.leader_of(team) == agent for team in directory.teams)
    lines = ["### You", "", _who(settings, agent, leader=leads), f"- Workspace: `{workspace.root}`"]
    for team in directory.teams_of(agent):
        name = harmless(directory.teams[team].name) or team
        lines += ["", f"### Team `#{team}` — {name}", ""]
        mates = [mate for mate in directory.members(team) if mate != agent]
        leader = directory.leader_of(team)
        lines += [_who(settings, mate, leader=mate == leader) for mate in mates] or ["- Nobody else yet."]
    return "\n".join(lines)


def _who(settings: Settings, agent: str, *, leader: bool) -> str:
    own = settings.present_agents()[agent]
    _, model = settings.choice_of(agent)
    name = f" — **{harmless(own.name)}**" if own.name else ""
    return (
        f"- `@{agent}`{name}"
        + (f" ({harmless(model)})" if model else "")
        + (" *(team leader)*" if leader else "")
    )


def _instructions(workspace: Workspace, problems: list[str]) -> str:
    try:
        text = workspace.read(INSTRUCTIONS)
    except PostroomError as error:
        problems.append(str(error))
        return ""
    own = sections.without(text, (OWN, TEAMMATES, MEMORY))
    return own.decode("utf-8-sig", errors="replace").strip()


def _added(settings: Settings, workspace: Workspace, user_home: Path | None, problems: list[str]) -> str:
    own = settings.present_agents()[workspace.agent]
    if own.prompt_file:
        try:
            return read_prompt_file(workspace, own.prompt_file, user_home).strip()
        except PostroomError as error:
            problems.append(str(error))
    return (own.system_prompt or "").encode(errors="replace").decode().strip()


def read_prompt_file(workspace: Workspace, path: str, user_home: Path | None = None) -> str:
    """A prompt file lies in the agent's folder or in the folder of all agents: what stands elsewhere is not
    for a model to read. Relative paths begin in the agent's folder."""
    place = workspace.root / expanded(path, user_home)
    for root in (workspace.root, workspace.base):
        try:
            relative = place.relative_to(root)
        except ValueError:
            continue
        holder = Workspace(workspace.agent, root, workspace.base)
        try:
            return holder.read(str(relative)).decode("utf-8-sig", errors="replace")
        except PostroomError as error:
            raise PromptFileRefused(
                path=harmless(path), agent=workspace.agent, reason=str(error).rstrip(".")
            ) from None
    reason = f"it is neither in {workspace.root} nor in {workspace.base}; move it there"
    raise PromptFileRefused(path=harmless(path), agent=workspace.agent, reason=reason)


def _fitted(parts: Sequence[tuple[str, str]], room: int) -> list[str]:
    """Each part has an equal share, and what one leaves the others may use. What is cut says so."""
    sizes = [len(text.encode()) for _, text in parts]
    shares = dict.fromkeys(range(len(parts)), 0)
    left = room
    for place, number in enumerate(sorted(shares, key=sizes.__getitem__)):
        shares[number] = min(sizes[number], left // (len(parts) - place))
        left -= shares[number]
    return [_cut(what, text, shares[number]) for number, (what, text) in enumerate(parts)]


def _cut(what: str, text: str, share: int) -> str:
    data = text.encode()
    if len(data) <= share:
        return text
    kept = data[: max(0, share - _NOTE_BYTES)]
    kept = kept[: kept.rfind(b"\n") + 1] or kept
    shown = kept.decode(errors="ignore").rstrip()
    return f"{shown}\n(Cut: {what} has {len(data)} bytes, {len(kept)} are shown.)"
