"""The first visit: choose how agents think, try it live, connect a platform. Each step leads to the next."""

from urllib.parse import quote

from htpy import Renderable, a, button, code, div, form, li, ol, p, span

from postroom.portal.parts import act_button, choice_field, show_section, show_state, text_field
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm

BY_PROGRAM = {"claude": "anthropic", "codex": "openai", "opencode": "opencode"}
BY_KEY = (("anthropic_api", "Anthropic, with a key"), ("openai_api", "OpenAI, with a key"))


async def show_setup(visit: PortalVisit) -> PageView:
    programs = await visit.services.providers.find_programs(visit.caller)
    agents = await visit.services.agents.list_all(visit.caller)
    status = await visit.services.system.status(visit.caller)
    first = next(iter(agents.values()))
    return PageView(
        title="Set up",
        way="",
        lead="Three steps to the first real answer. Everything can be changed later.",
        body=ol(".stack-l")[
            li[
                show_section(
                    "1. How agents think",
                    p[f"@{first.id} uses ", code[f"{first.provider} {first.model}".strip()], "."],
                    div(".stack")[[_program(name, place) for name, place in programs.items()]],
                    form(".fields", method="post", action="/setup/provider")[
                        choice_field("name", "Or by the HTTP API", BY_KEY),
                        text_field("api_key", "Key", type="password", autocomplete="off", required=True),
                        text_field("model", "Model", placeholder="as the provider chooses"),
                        div[button(".primary")["Use it"]],
                    ],
                )
            ],
            li[
                show_section(
                    "2. The first answer",
                    p[
                        "One short message to ",
                        a(".link", href=f"/chat?with={quote(first.id)}")[f"@{first.id}"],
                        ", live.",
                    ],
                    act_button(
                        "Test it live",
                        "/providers/test",
                        {"provider": first.provider, "model": first.model},
                        kind="primary",
                    ),
                )
            ],
            li[
                show_section(
                    "3. Where people write from",
                    p[
                        ", ".join(status.channels)
                        or "No platform is connected yet. This portal and the shell always work."
                    ],
                    a(".button", href="/channels")["Connect a platform"],
                )
            ],
        ],
    )


def _program(name: str, place: str | None) -> Renderable:
    if place is None:
        return div(".gap")[show_state("cancelled", f"{name} is not installed")]
    use = act_button(f"Use {name}", "/setup/provider", {"name": BY_PROGRAM[name]})
    return div(".gap")[show_state("completed", f"{name} is installed"), span(".quiet.small.mono")[place], use]


async def choose(visit: PortalVisit, form: SentForm) -> ActResult:
    """For agents that name none, and for those that only played so far."""
    name, model = form.word("name"), form.word("model")
    await visit.services.providers.choose(
        visit.acting, name, model=model or None, api_key=form.word("api_key") or None
    )
    for agent in (await visit.services.agents.list_all(visit.caller)).values():
        if agent.provider == "script":
            await visit.services.agents.change(visit.acting, agent.id, {"provider": name, "model": model})
    return ActResult(said=f"Agents use {name}.", to="/setup")


PART = PortalPart({"/setup": show_setup}, {"/setup/provider": choose})
