"""Providers: how turns are executed, which one agents use, servers of one's own. Keys are never shown."""

from htpy import button, code, dialog, div, form, h2, p, td

from postroom.errors import PostroomError
from postroom.portal.agents import PROVIDERS
from postroom.portal.parts import (
    act_button,
    choice_field,
    show_empty,
    show_pairs,
    show_row,
    show_section,
    show_table,
    text_field,
)
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.portal.words import cut, tell_span


class ProviderFailed(PostroomError):
    """{provider} does not answer: {problem}"""

    code = "PROVIDER_FAILED"
    http_status = 409


async def show_providers(visit: PortalVisit) -> PageView:
    agents = await visit.services.agents.list_all(visit.caller)
    custom = await visit.services.providers.list_custom(visit.caller)
    chosen = visit.settings.models.provider
    used: dict[tuple[str, str], list[str]] = {}
    for agent in agents.values():
        used.setdefault((agent.provider, agent.model), []).append(agent.id)
    return PageView(
        title="Providers",
        way="/providers",
        actions=button(".primary", data_do="dialog", data_opens="new-server")["Add a server"],
        body=div(".stack-l")[
            show_section(
                "In use",
                show_table(
                    ["Provider and model", "Agents", ""],
                    [
                        show_row(
                            td(".nowrap")[f"{provider} {model}".strip()],
                            td[", ".join(f"@{each}" for each in names)],
                            td(".num")[
                                act_button(
                                    "Test live",
                                    "/providers/test",
                                    {"provider": provider, "model": model},
                                    kind="plain",
                                )
                            ],
                        )
                        for (provider, model), names in used.items()
                    ],
                ),
                p(".quiet.small")[
                    "A test asks for one short answer, and says what came back or what is wrong."
                ],
            ),
            show_section(
                "For agents that name none",
                form(".fields", method="post", action="/providers/choose")[
                    choice_field("name", "Provider", [(each, each) for each in PROVIDERS], chosen),
                    text_field("model", "Model", placeholder="as the provider chooses"),
                    text_field(
                        "api_key", "Key", type="password", autocomplete="off", placeholder="unchanged"
                    ),
                    div[button(".primary")["Save"]],
                ],
            ),
            show_section(
                "Servers of your own",
                [
                    div[
                        show_pairs(
                            ("Name", name),
                            ("Speaks", str(one.get("harness", ""))),
                            ("Address", code[str(one.get("base_url", ""))]),
                            ("Model", str(one.get("model", "") or "–")),
                        ),
                        act_button(
                            "Remove",
                            "/providers/remove",
                            {"name": name},
                            kind="danger",
                            confirm=f"Remove the server {name}?",
                        ),
                    ]
                    for name, one in custom.items()
                ]
                or show_empty("None yet", "Any server that speaks the protocol of Anthropic or OpenAI."),
                count=len(custom),
            ),
            dialog("#new-server", aria_label="Add a server")[
                form(".inside", method="post", action="/providers/add")[
                    h2["Add a server"],
                    text_field("name", "Name", placeholder="local", required=True),
                    choice_field(
                        "harness",
                        "Used through",
                        [("claude", "claude"), ("codex", "codex"), ("api", "an HTTP API")],
                    ),
                    text_field("base_url", "Address", placeholder="http://127.0.0.1:8080", required=True),
                    text_field("api_key", "Key", type="password", autocomplete="off"),
                    text_field("model", "Model"),
                    div(".acts")[button(type="button", data_do="close")["Cancel"], button(".primary")["Add"]],
                ]
            ],
        ],
    )


async def choose(visit: PortalVisit, form: SentForm) -> ActResult:
    name = await visit.services.providers.choose(
        visit.acting,
        form.word("name"),
        model=form.word("model") or None,
        api_key=form.word("api_key") or None,
    )
    return ActResult(said=f"Agents that name none use {name}.", to="/providers")


async def test(visit: PortalVisit, form: SentForm) -> ActResult:
    """One short turn, as an agent would take it."""
    found = await visit.services.providers.test(
        visit.acting, form.word("provider") or None, model=form.word("model") or None
    )
    if found.problem:
        raise ProviderFailed(provider=found.provider, problem=found.problem)
    return ActResult(
        said=f"{found.provider} answered in {tell_span(found.seconds)}: {cut(found.answer, 120)}"
    )


async def add(visit: PortalVisit, form: SentForm) -> ActResult:
    fields = {
        name: form.word(name) for name in ("harness", "base_url", "api_key", "model") if form.word(name)
    }
    await visit.services.providers.put_custom(visit.acting, form.word("name"), fields)
    return ActResult(said=f"Added. Agents use it as custom:{form.word('name')}.", to="/providers")


async def remove(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.providers.remove_custom(visit.acting, form.word("name"))
    return ActResult(said="Removed.", to="/providers")


PART = PortalPart(
    {"/providers": show_providers},
    {
        "/providers/choose": choose,
        "/providers/test": test,
        "/providers/add": add,
        "/providers/remove": remove,
    },
)
