"""All services of the office, each made when it is first asked for: a command that reads a setting must not
pay for the rest.
"""

from functools import cached_property
from typing import TYPE_CHECKING

from postroom.services.office_context import ChannelControl, OfficeContext

if TYPE_CHECKING:
    from postroom.services.agents import AgentService
    from postroom.services.backups import BackupService
    from postroom.services.budgets import BudgetService
    from postroom.services.chats import ChatService
    from postroom.services.conversations import ConversationService
    from postroom.services.files import FileService
    from postroom.services.imports import ImportService
    from postroom.services.insights import InsightService, LakeReader
    from postroom.services.pairing import PairingService
    from postroom.services.plugins import PluginService
    from postroom.services.providers import ProviderService
    from postroom.services.questions import QuestionService
    from postroom.services.rooms import RoomService
    from postroom.services.schedules import ScheduleService
    from postroom.services.settings import SettingsService
    from postroom.services.system import SystemService
    from postroom.services.tasks import ProjectService, TaskService
    from postroom.services.teams import TeamService
    from postroom.services.unconfirmed_replies import UnconfirmedReplies
    from postroom.services.workload import WorkloadService


class OfficeServices:
    def __init__(self, context: OfficeContext, lake: "LakeReader | None" = None) -> None:
        self._office = context
        self._lake_reader = lake

    @property
    def channels(self) -> ChannelControl:
        """The channels of this process, for what platforms push to them."""
        return self._office.channels

    @cached_property
    def agents(self) -> "AgentService":
        from postroom.services.agents import AgentService

        return AgentService(self._office)

    @cached_property
    def teams(self) -> "TeamService":
        from postroom.services.teams import TeamService

        return TeamService(self._office)

    @cached_property
    def rooms(self) -> "RoomService":
        from postroom.services.rooms import RoomService

        return RoomService(self._office)

    @cached_property
    def backups(self) -> "BackupService":
        from postroom.services.backups import BackupService

        return BackupService(self._office)

    @cached_property
    def files(self) -> "FileService":
        from postroom.services.files import FileService

        return FileService(self._office)

    @cached_property
    def chats(self) -> "ChatService":
        from postroom.services.chats import ChatService

        return ChatService(self._office)

    @cached_property
    def conversations(self) -> "ConversationService":
        from postroom.services.conversations import ConversationService

        return ConversationService(self._office)

    @cached_property
    def questions(self) -> "QuestionService":
        from postroom.services.questions import QuestionService

        return QuestionService(self._office)

    @cached_property
    def workload(self) -> "WorkloadService":
        from postroom.services.workload import WorkloadService

        return WorkloadService(self._office)

    @cached_property
    def tasks(self) -> "TaskService":
        from postroom.services.tasks import TaskService

        return TaskService(self._office)

    @cached_property
    def projects(self) -> "ProjectService":
        from postroom.services.tasks import ProjectService

        return ProjectService(self._office)

    @cached_property
    def schedules(self) -> "ScheduleService":
        from postroom.services.schedules import ScheduleService

        return ScheduleService(self._office)

    @cached_property
    def budgets(self) -> "BudgetService":
        from postroom.services.budgets import BudgetService

        return BudgetService(self._office)

    @cached_property
    def settings(self) -> "SettingsService":
        from postroom.services.settings import SettingsService

        return SettingsService(self._office)

    @cached_property
    def providers(self) -> "ProviderService":
        from postroom.services.providers import ProviderService

        return ProviderService(self._office)

    @cached_property
    def pairing(self) -> "PairingService":
        from postroom.services.pairing import PairingService

        return PairingService(self._office)

    @cached_property
    def unconfirmed(self) -> "UnconfirmedReplies":
        from postroom.services.unconfirmed_replies import UnconfirmedReplies

        return UnconfirmedReplies(self._office)

    @cached_property
    def plugins(self) -> "PluginService":
        from postroom.services.plugins import PluginService

        return PluginService(self._office)

    @cached_property
    def imports(self) -> "ImportService":
        from postroom.services.imports import ImportService

        return ImportService(self._office)

    @cached_property
    def insights(self) -> "InsightService":
        from postroom.services.insights import InsightService

        return InsightService(self._office, self._lake_reader)

    @cached_property
    def system(self) -> "SystemService":
        from postroom.services.system import SystemService

        return SystemService(self._office)
