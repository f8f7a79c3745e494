"""The guards' figures, taken from the settings."""

from collections.abc import Mapping

import msgspec

from postroom.office.guards.budgets import day_of, micros
from postroom.office.guards.days import Days
from postroom.office.schedules import house_zone
from postroom.settings.model import Settings

# Providers that cost nothing, whatever they do.
FREE = frozenset({"script"})
# Beyond the longest turn: what is set aside must not end before the work does.
MARGIN_S = 120.0


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent may spend in a day and in a turn (micro-dollars), and how long a turn may take."""

    daily: int | None = None
    turn: int | None = None
    free: bool = False
    seconds: float = 1800.0 + MARGIN_S


class GuardRules(msgspec.Struct, frozen=True, kw_only=True):
    hops: int = 10
    messages: int = 50
    repeats: int = 3
    cycles: int = 4
    conversation: int | None = None
    daily: int | None = None
    warn_at: float = 0.8
    reserve: int = 500_000
    unpriced_per_mtok: float = 5.0
    agents: Mapping[str, Terms] = {}
    teams: Mapping[str, int | None] = {}
    days: Days = msgspec.field(default_factory=Days)

    def terms(self, agent: str) -> Terms:
        return self.agents.get(agent) or Terms()

    def end_of(self, account: str, now: int) -> int:
        """When a budget begins anew. A limit that somebody set for good is looked at again every day."""
        return self.days.end(day_of(account) or self.days.of(now))

    @classmethod
    def of(cls, settings: Settings) -> "GuardRules":
        guards, budgets = settings.guards, settings.budgets
        return cls(
            hops=guards.hops,
            messages=guards.messages,
            repeats=guards.repeats,
            cycles=guards.cycles,
            conversation=micros(budgets.conversation_usd),
            daily=micros(budgets.daily_usd),
            warn_at=budgets.warn_at,
            reserve=micros(budgets.reserve_usd) or 0,
            unpriced_per_mtok=budgets.unpriced_usd_per_mtok,
            agents={agent: _terms(settings, agent) for agent in settings.present_agents()},
            teams={
                name: micros(budgets.team_daily_usd if team.daily_usd is None else team.daily_usd)
                for name, team in settings.teams.items()
            },
            days=Days(settings.schedules.zone or house_zone()),
        )


def _terms(settings: Settings, agent: str) -> Terms:
    own, guards, budgets = settings.present_agents()[agent], settings.guards, settings.budgets
    daily = budgets.agent_daily_usd if own.budget.daily_usd is None else own.budget.daily_usd
    turn = budgets.turn_usd if own.budget.turn_usd is None else own.budget.turn_usd
    providers = {settings.choice_of(agent)[0], *(fallback.provider for fallback in own.fallbacks)}
    tries = 1 + len(own.fallbacks)
    wall_clock = own.turn_timeout_s or guards.turn_timeout_s
    return Terms(
        daily=micros(daily),
        turn=micros(turn),
        free=providers <= FREE,
        # A turn may be taken a second time, in a new session.
        seconds=min(2 * tries * (wall_clock + guards.grace_s) + MARGIN_S, 24 * 3600.0),
    )
