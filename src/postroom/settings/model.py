"""All settings of the room, and what follows from them: which agents there are, and where they work."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import field

from postroom.settings.agents import (
    SHORTEST_HEARTBEAT_S,
    Agents,
    AgentSettings,
    CustomProviderSettings,
    PermissionLevel,
    SandboxWord,
    SessionScope,
    Teams,
)
from postroom.settings.base_urls import BaseUrl
from postroom.settings.channels import ChannelSettings
from postroom.settings.defaults import (
    DEFAULT_AGENTS,
    DEFAULT_MODELS,
    DEFAULT_WORKSPACE,
    FALLBACK_AGENT,
    FALLBACK_NAME,
)
from postroom.settings.names import check_id
from postroom.settings.part import SharedPart
from postroom.settings.paths import expanded
from postroom.settings.reading import read_part
from postroom.settings.secret import Secret
from postroom.settings.sections import (
    ApiSettings,
    BudgetSettings,
    GuardSettings,
    LimitSettings,
    LogSettings,
    MessageFileSettings,
    MonitoringSettings,
    PipelineSettings,
    PluginSettings,
    ReplySettings,
    RetentionSettings,
    ScheduleSettings,
    SecuritySettings,
    SessionSettings,
    StoreSettings,
    WebhookSettings,
)


class WorkspaceSettings(SharedPart):
    path: Annotated[str, "The folder of the agents' folders"] = DEFAULT_WORKSPACE
    name: Annotated[str, "A name to show"] = ""
    shared: Annotated[bool, "Whether all hosts of an office on a database server see this folder"] = False


class Model(SharedPart):
    model: Annotated[str, "The model of agents that name none"] = ""
    api_key: Annotated[Secret | None, "The key at the vendor"] = None
    oauth_token: Annotated[Secret | None, "A token of the vendor's program, instead of a key"] = None
    base_url: Annotated[
        BaseUrl | None, "Of the server that anthropic_api or openai_api asks, instead of the vendor's"
    ] = None


class Models(SharedPart):
    provider: Annotated[str, "The provider of agents that name none"] = ""
    anthropic: Model | None = None
    openai: Model | None = None
    opencode: Model | None = None

    def chosen(self) -> tuple[str, str]:
        """The provider and model of agents that name none."""
        return self.chosen_for(None)

    def chosen_for(self, provider: str | None) -> tuple[str, str]:
        """That provider with its model; without one, the provider of agents that name none."""
        order = ("openai", "opencode", "anthropic")
        provider = provider or self.provider
        provider = provider or next((name for name in order if getattr(self, name)), "anthropic")
        section = provider.removesuffix("_api")
        own = getattr(self, section) if section in order else None
        return provider, (own.model if own else "") or DEFAULT_MODELS.get(provider, "")


class Settings(SharedPart):
    workspace: WorkspaceSettings = WorkspaceSettings()
    channels: ChannelSettings = ChannelSettings()
    models: Models = Models()
    agents: Agents = field(default_factory=dict)
    custom_providers: dict[str, CustomProviderSettings] = field(default_factory=dict)
    teams: Teams = field(default_factory=dict)
    monitoring: MonitoringSettings = MonitoringSettings()

    default_agent: Annotated[str | None, "Who gets messages that are addressed to nobody"] = None
    sessions: SessionSettings = SessionSettings()
    replies: ReplySettings = ReplySettings()
    budgets: BudgetSettings = BudgetSettings()
    guards: GuardSettings = GuardSettings()
    security: SecuritySettings = SecuritySettings()
    limits: LimitSettings = LimitSettings()
    api: ApiSettings = ApiSettings()
    schedules: ScheduleSettings = ScheduleSettings()
    store: StoreSettings = StoreSettings()
    retention: RetentionSettings = RetentionSettings()
    files: MessageFileSettings = MessageFileSettings()
    logs: LogSettings = LogSettings()
    plugins: PluginSettings = PluginSettings()
    pipeline: PipelineSettings = PipelineSettings()
    webhooks: WebhookSettings = WebhookSettings()

    def present_agents(self) -> dict[str, AgentSettings]:
        """The agents there are: those configured, or the one a room has without any."""
        if self.agents:
            return dict(self.agents)
        provider, model = self.models.chosen()
        return {FALLBACK_AGENT: AgentSettings(name=FALLBACK_NAME, provider=provider, model=model)}

    def default_agent_id(self) -> str:
        present = self.present_agents()
        wanted = ((self.default_agent or "").lower(), *DEFAULT_AGENTS)
        return next((agent for agent in wanted if agent in present), next(iter(present)))

    def choice_of(self, agent: str) -> tuple[str, str]:
        """The provider and model an agent works with."""
        own = self.present_agents()[agent]
        provider, model = self.models.chosen()
        return (own.provider, own.model) if own.provider else (provider, own.model or model)

    def heartbeat_s(self, agent: str) -> float:
        """How often an agent is asked how things are; 0: never."""
        beat = self.present_agents()[agent].heartbeat
        seconds = self.monitoring.heartbeat_interval if beat.interval is None else beat.interval
        return max(seconds, SHORTEST_HEARTBEAT_S) if beat.enabled and seconds > 0 else 0

    def session_scope(self, agent: str) -> SessionScope:
        own = self.agents.get(agent)
        return (own.session if own else None) or self.sessions.scope

    def permissions_of(self, agent: str) -> PermissionLevel:
        own = self.agents.get(agent)
        return (own.permissions if own else None) or self.security.permissions

    def sandbox_of(self, agent: str) -> SandboxWord:
        own = self.agents.get(agent)
        return (own.sandbox if own else None) or self.security.sandbox

    def workspace_path(self, home: Path | None = None) -> Path:
        path = expanded(self.workspace.path or DEFAULT_WORKSPACE, home)
        return path if path.is_absolute() else (home or Path.home()) / path

    def agent_directory(self, agent: str, home: Path | None = None) -> Path:
        """The one folder an agent has: its process, prompt, memory and files all use this."""
        check_id("agent", agent)
        own = self.agents.get(agent)
        folder = expanded((own.working_directory if own else None) or agent, home)
        return self.workspace_path(home) / folder


def parse(document: Mapping[str, Any], path: object = "settings.json") -> Settings:
    return read_part(Settings, document, path)
