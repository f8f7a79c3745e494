"""What of this machine each agent is kept to: its own folder and the room's files; never the room itself."""

from pathlib import Path

from postroom.providers.protocol import Sandbox, SandboxMode
from postroom.settings.model import Settings, expanded


def sandbox_for(
    settings: Settings, agent: str, user_home: Path | None, folder: Path, files: Path | None = None
) -> Sandbox:
    """`folder` is the room's own: its token, settings, store and logs; `files` are those of messages, if they
    are not in it. Folders of the other agents stay
    closed, also where one lies inside of this agent's."""
    own = settings.present_agents()[agent]
    security = settings.security
    others = (each for each in settings.present_agents() if each != agent)
    hidden = [settings.agent_directory(each, user_home) for each in others]
    workspace = settings.agent_directory(agent, user_home)
    return Sandbox(
        mode=SandboxMode(settings.sandbox_of(agent)),
        readable=(files or folder / "files", *_paths((*security.readable, *own.readable), user_home)),
        writable=_paths((*security.writable, *own.writable), user_home),
        hidden=(
            folder,
            settings.workspace_path(user_home),
            # Two agents of one folder see each other's anyway, and one inside of another's must work.
            *(each for each in hidden if not workspace.is_relative_to(each)),
        ),
    )


def _paths(named: tuple[str, ...], user_home: Path | None) -> tuple[Path, ...]:
    return tuple(expanded(path, user_home) for path in named)
