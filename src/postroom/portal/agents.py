"""Agents and teams: who works here, how they belong together, and everything about one of them."""

from typing import Any
from urllib.parse import quote

from htpy import Node, Renderable, a, button, code, dialog, div, form, h2, input, label, li, p, span, td, ul

from postroom.office.agents.views import AgentView, TeamView
from postroom.portal.parts import (
    act_button,
    area_field,
    choice_field,
    show_empty,
    show_face,
    show_pairs,
    show_row,
    show_section,
    show_state,
    show_table,
    show_tag,
    text_field,
)
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.portal.words import tell_money, tell_span
from postroom.services.agent_hosts import AgentElsewhere, AgentHost

PROVIDERS = ("anthropic", "openai", "opencode", "anthropic_api", "openai_api", "script")


async def show_agents(visit: PortalVisit) -> PageView:
    agents = await visit.services.agents.list_all(visit.caller)
    teams = await visit.services.teams.list_all(visit.caller)
    load = {each.agent: each for each in await visit.services.workload.by_agent(visit.caller)}
    hosts = await visit.services.agents.list_hosts(visit.caller)

    def row(agent: AgentView) -> Renderable:
        work = load.get(agent.id)
        busy = bool(work and work.processing)
        waits = work.pending + work.queued if work else 0
        return show_row(
            td(".nowrap")[
                span(".gap")[
                    show_face(agent.id, busy=busy),
                    a(href=f"/agents/{quote(agent.id)}")[agent.name or agent.id],
                ]
            ],
            td(".quiet.mono.small")[f"@{agent.id}"],
            td[show_state("claimed") if busy else show_state("completed", "free")],
            td(".num")[str(waits) if waits else "–"],
            td(".nowrap.quiet")[f"{agent.provider} {agent.model}".strip()],
            td(".nowrap")[_show_host(hosts.get(agent.id))] if hosts else None,
            td(".nowrap")[
                [show_tag(f"leads {team}" if team in agent.leads else team) for team in agent.teams]
            ],
            td[
                agent.problems
                and span(".tone.is-dead.small", title="\n".join(agent.problems))["needs attention"]
            ],
            row_id=f"agent-{agent.id}",
        )

    heads: list[str | tuple[str, str]] = ["Name", "Id", "Now", ("Waiting", "num"), "Provider"]
    heads += [*(["Host"] if hosts else []), "Teams", ""]
    return PageView(
        title="Agents and teams",
        way="/agents",
        actions=[
            button(data_do="dialog", data_opens="new-team")["New team"],
            button(".primary", data_do="dialog", data_opens="new-agent")["New agent"],
        ],
        body=div(".stack-l")[
            div(id="agents", data_live=True)[show_table(heads, [row(each) for each in agents.values()])],
            show_section("How they belong together", _chart(agents, teams), part_id="chart"),
            _new_agent(),
            _new_team(list(agents)),
        ],
    )


def _show_host(host: AgentHost | None) -> Node:
    if host is None or not host.is_gone:
        return span(".quiet")["–" if host is None else host.host]
    return span(title=host.explain())[show_state("dead", f"{host.host}, not there")]


def _chart(agents: dict[str, AgentView], teams: dict[str, TeamView]) -> Node:
    """Each team with its leader above its members; who is in none stands apart."""
    alone = [agent.id for agent in agents.values() if not agent.teams]

    def member(name: str) -> Renderable:
        return li(".gap")[show_face(name), a(href=f"/agents/{quote(name)}")[f"@{name}"]]

    if not teams:
        return show_empty("No teams yet", "A team has a leader, members and a room; write to it as @team.")
    return div(".board")[
        [
            div(".column")[
                h2[
                    a(href=f"/chat?room={quote(team.id)}")[f"# {team.name}"],
                    span(".quiet")[str(len(team.agents))],
                ],
                ul(".tree")[
                    li[
                        div(".gap")[
                            show_face(team.leader_agent), f"@{team.leader_agent} ", show_tag("leads")
                        ],
                        ul(".stack")[[member(each) for each in team.agents if each != team.leader_agent]],
                    ]
                ],
                act_button(
                    "Remove team",
                    "/teams/remove",
                    {"team": team.id},
                    kind="plain danger",
                    confirm=f"Remove the team {team.name}? Its agents stay, and what was said is kept.",
                ),
            ]
            for team in teams.values()
        ],
        div(".column")[h2["In no team"], ul(".stack")[[member(each) for each in alone]]] if alone else None,
    ]


def _new_agent() -> Renderable:
    return dialog("#new-agent", aria_label="New agent")[
        form(".inside", method="post", action="/agents/new")[
            h2["New agent"],
            text_field("id", "Id", hint="as others write to it", placeholder="coder", required=True),
            text_field("name", "Name", placeholder="Coder"),
            choice_field(
                "provider", "Provider", [("", "as the first agent"), *((each, each) for each in PROVIDERS)]
            ),
            text_field("model", "Model", placeholder="as the provider chooses"),
            area_field("prompt", "What it is for", rows="4", placeholder="You write and test code…"),
            div(".acts")[
                button(type="button", data_do="close")["Cancel"], button(".primary")["Create agent"]
            ],
        ]
    ]


def _new_team(agents: list[str]) -> Renderable:
    return dialog("#new-team", aria_label="New team")[
        form(".inside", method="post", action="/teams/new")[
            h2["New team"],
            text_field("id", "Id", placeholder="dev", required=True),
            text_field("name", "Name", placeholder="Development"),
            div(".flow")[
                [
                    label(".check")[input(type="checkbox", name="agents", value=agent), f"@{agent}"]
                    for agent in agents
                ]
            ],
            choice_field(
                "leader", "Leader", [("", "the first of them"), *((each, f"@{each}") for each in agents)]
            ),
            div(".acts")[button(type="button", data_do="close")["Cancel"], button(".primary")["Create team"]],
        ]
    ]


async def show_agent(visit: PortalVisit) -> PageView:
    services, caller = visit.services, visit.caller
    agent = await services.agents.get(caller, visit.path("agent"))
    plans = await services.schedules.list_all(caller, agent.id)
    base = f"/agents/{quote(agent.id)}"
    daily, own = agent.budget.get("daily_usd"), agent.settings
    return PageView(
        title=agent.name or agent.id,
        way="/agents",
        crumb=("/agents", "Agents"),
        lead=f"@{agent.id} · {agent.working_directory}",
        actions=[
            a(".button.primary", href=f"/chat?with={quote(agent.id)}")["Chat"],
            act_button("New session", f"{base}/reset", confirm="The next turn begins a new session. Go on?"),
            act_button(
                "Remove",
                f"{base}/remove",
                kind="danger",
                confirm=f"Remove @{agent.id}? Its folder and settings go into a backup first.",
            ),
        ],
        body=div(".stack-l")[
            [div(".banner")[problem] for problem in agent.problems],
            show_section(
                "Settings",
                form(".fields", method="post", action=f"{base}/change")[
                    text_field("name", "Name", agent.name),
                    text_field("provider", "Provider", agent.provider),
                    text_field("model", "Model", agent.model, placeholder="as the provider chooses"),
                    text_field(
                        "daily_usd",
                        "Money for a day",
                        "" if daily is None else f"{daily:g}",
                        hint="in $, empty: no limit of its own",
                    ),
                    text_field(
                        "turn_timeout_s",
                        "Longest turn",
                        f"{own['turn_timeout_s']:g}" if own.get("turn_timeout_s") else "",
                        hint="in seconds, empty: as for all",
                    ),
                    choice_field(
                        "permissions",
                        "Its tools may",
                        [
                            ("", "as for all"),
                            ("read", "read its folder"),
                            ("workspace", "change its folder"),
                            ("full", "everything its program can"),
                        ],
                        own.get("permissions") or "",
                    ),
                    choice_field(
                        "sandbox",
                        "Kept apart",
                        [
                            ("", "as for all"),
                            ("auto", "where the machine can"),
                            ("required", "or it does not work"),
                            ("off", "not at all"),
                        ],
                        own.get("sandbox") or "",
                    ),
                    choice_field(
                        "session",
                        "One session for",
                        [
                            ("", "as for all"),
                            ("agent", "everybody"),
                            ("sender", "each person"),
                            ("thread", "each thread"),
                        ],
                        own.get("session") or "",
                    ),
                    div[button(".primary")["Save settings"]],
                ],
            ),
            await _show_folder(visit, agent, base),
            show_section(
                "Schedules",
                ul[[li[f"{each.label}: ", code[each.cron or "once"]] for each in plans]]
                if plans
                else p(".quiet")["None. ", a(".link", href="/schedules")["Make one"]],
            ),
            show_section(
                "Holds for it",
                show_pairs(
                    ("Session", agent.session),
                    ("Longest turn", tell_span(agent.turn_timeout_s)),
                    ("Permissions", agent.permissions),
                    ("Kept apart by", agent.sandbox),
                    ("Money for a day", tell_money(daily) if daily is not None else "no limit of its own"),
                    ("Falls back to", ", ".join(agent.fallbacks) or "nothing"),
                ),
            ),
        ],
    )


async def _show_folder(visit: PortalVisit, agent: AgentView, base: str) -> Node:
    """What is in its folder, if that is on this host."""
    services, caller = visit.services, visit.caller
    try:
        prompt = await services.agents.read_prompt(caller, agent.id)
    except AgentElsewhere as elsewhere:
        return div(".banner")[str(elsewhere)]
    beat = await services.agents.read_heartbeat(caller, agent.id)
    memory = await services.agents.read_memory(caller, agent.id)
    skills = await services.agents.list_skills(caller, agent.id)
    return [
        show_section(
            "Instructions",
            form(".stack", method="post", action=f"{base}/prompt")[
                area_field("content", "AGENTS.md", prompt.content, rows="14", class_="mono"),
                div[button(".primary")["Save instructions"]],
            ],
        ),
        show_section(
            "Heartbeat",
            form(".fields", method="post", action=f"{base}/heartbeat")[
                label(".check")[
                    input(type="checkbox", name="enabled", checked=beat.enabled),
                    "Asks itself now and then",
                ],
                text_field(
                    "interval", "Every so many seconds", f"{beat.interval:g}" if beat.interval else ""
                ),
                area_field("content", "The question", beat.content, rows="4"),
                div[button(".primary")["Save heartbeat"]],
            ],
        ),
        show_section(
            "Memory",
            p(".quiet")[
                f"{len(memory.files)} files in {memory.folder}. ",
                a(".link", href=f"/memory?agent={quote(agent.id)}")["Read them"],
            ],
        ),
        show_section(
            "Skills",
            ul[
                [
                    li[span[each.get("name", "")], " ", span(".quiet")[each.get("description", "")]]
                    for each in skills
                ]
            ]
            if skills
            else p(".quiet")["None installed."],
        ),
    ]


async def add(visit: PortalVisit, form: SentForm) -> ActResult:
    fields = {name: form.word(name) for name in ("name", "provider", "model") if form.word(name)}
    made = await visit.services.agents.add(
        visit.acting, form.word("id"), fields, system_prompt=form.text("prompt").strip() or None
    )
    return ActResult(to=f"/agents/{quote(made.id)}")


async def change(visit: PortalVisit, form: SentForm) -> ActResult:
    changes: dict[str, Any] = {name: form.word(name) for name in ("name", "provider", "model")}
    daily = form.word("daily_usd").lstrip("$")
    changes["budget"] = {"daily_usd": _number(daily)}
    changes["turn_timeout_s"] = _number(form.word("turn_timeout_s"))
    changes |= {name: form.word(name) or None for name in ("permissions", "sandbox", "session")}
    await visit.services.agents.change(visit.acting, visit.path("agent"), changes)
    return ActResult(said="Saved.")


def _number(text: str) -> float | str | None:
    """What is no number goes on as it is: the settings say what is wrong with it."""
    try:
        return float(text) if text else None
    except ValueError:
        return text


async def write_prompt(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.agents.write_prompt(visit.acting, visit.path("agent"), form.text("content"))
    return ActResult(said="Saved. The next turn reads it.")


async def change_heartbeat(visit: PortalVisit, form: SentForm) -> ActResult:
    changes: dict[str, Any] = {"enabled": bool(form.word("enabled"))}
    if form.word("interval"):
        changes["interval"] = _number(form.word("interval"))
    await visit.services.agents.change_heartbeat(
        visit.acting, visit.path("agent"), content=form.text("content"), **changes
    )
    return ActResult(said="Saved.")


async def reset(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.agents.reset(visit.acting, visit.path("agent"))
    return ActResult(said="The next turn begins a new session.")


async def remove(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.agents.remove(visit.acting, visit.path("agent"))
    return ActResult(to="/agents")


async def add_team(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.teams.add(
        visit.acting,
        form.word("id"),
        form.every("agents"),
        name=form.word("name"),
        leader=form.word("leader"),
    )
    return ActResult(said="The team is there.", to="/agents")


async def remove_team(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.teams.remove(visit.acting, form.word("team"))
    return ActResult(said="The team is removed.")


PART = PortalPart(
    {"/agents": show_agents, "/agents/{agent}": show_agent},
    {
        "/agents/new": add,
        "/teams/new": add_team,
        "/teams/remove": remove_team,
        "/agents/{agent}/change": change,
        "/agents/{agent}/prompt": write_prompt,
        "/agents/{agent}/heartbeat": change_heartbeat,
        "/agents/{agent}/reset": reset,
        "/agents/{agent}/remove": remove,
    },
)
