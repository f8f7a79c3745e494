"""`postroom settings`, `provider` and `model`: how the office is set up. Secrets never show."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from postroom.errors import InvalidField
from postroom.terminal.cli import completion
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.output import Column, facts, table
from postroom.terminal.cli.store_access import CommandContext

if TYPE_CHECKING:
    from postroom.services.office import OfficeServices

app = group("settings", "Settings: read and change them by name. Secrets show as ********.")
providers = group("provider", "Providers: what agents work with, and servers of your own.")

Name = Annotated[
    str, argument("NAME", "Like api.port or agents.coder.model.", autocompletion=completion.settings)
]
ModelOption = Annotated[str | None, option("NAME", "Also for every agent that works with it.", "--model")]
KeyOption = Annotated[str | None, option("TEXT", "Best as env:NAME or file:PATH.", "--api-key")]
TokenOption = Annotated[str | None, option("TEXT", "Best as env:NAME or file:PATH.", "--oauth-token")]


def _value(text: str) -> Any:
    """JSON where it is JSON, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@command(app, "show", store=False, examples=["postroom settings show", "postroom settings show --json"])
async def show(at: CommandContext) -> None:
    """Show everything that is set."""
    async with at.office() as office:
        found = await office.settings.show(at.caller)
    at.out.show(found, json.dumps(found, indent=2, ensure_ascii=False))


@command(
    app,
    "list",
    store=False,
    aliases=["ls"],
    examples=["postroom settings list", "postroom settings list budgets", "postroom settings list --json"],
)
async def list_(
    at: CommandContext,
    part: Annotated[str | None, argument("PART", "Only names that begin so, like api or budgets.")] = None,
) -> None:
    """List every setting: what holds, where it comes from, its default, and what it means."""
    async with at.office() as office:
        found = await office.settings.list_all(at.caller)
    if part is not None:
        found = [one for one in found if f"{one.name}.".startswith(f"{part.rstrip('.')}.")]
        if not found:
            raise InvalidField("part", f"no setting begins with {part!r}; see: postroom settings list")
    rows = [
        (
            one.name,
            _shown(one.value),
            one.variable if one.source == "environment" else one.source,
            "" if one.value == one.default else _shown(one.default),
            one.meaning,
        )
        for one in found
    ]
    columns = ["setting", "value", "from", "default", Column("meaning", free=True)]
    at.out.show([msgspec.structs.asdict(one) for one in found], table(columns, rows))


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@command(app, "get", store=False, examples=["postroom settings get api.port"])
async def get(at: CommandContext, name: Name) -> None:
    """Show what holds of one setting: from the environment, the file, or its default."""
    async with at.office() as office:
        value = await office.settings.get(at.caller, name)
    at.out.show({name: value}, _shown(value))


@command(
    app,
    "set",
    store=False,
    examples=[
        "postroom settings set default_agent lead",
        "postroom settings set monitoring.heartbeat_interval 3600",
        """postroom settings set api.origins '["http://127.0.0.1:3000"]'""",
        "postroom settings set models.anthropic.api_key env:ANTHROPIC_API_KEY",
    ],
)
async def set_(
    at: CommandContext,
    name: Name,
    value: Annotated[str, argument("VALUE", "Text, or JSON.")],
    force: Annotated[bool, flag("Also a name that Postroom does not know.", "--force")] = False,
) -> None:
    """Change one setting; what is not valid is refused, and the field named."""
    async with at.office() as office:
        settings = await office.settings.set(at.caller, name, _value(value), force=force)
    _show_change(at, name, settings, "set")


@command(app, "unset", store=False, examples=["postroom settings unset default_agent"])
async def unset(at: CommandContext, name: Name) -> None:
    """Go back to the default."""
    async with at.office() as office:
        settings = await office.settings.unset(at.caller, name)
    _show_change(at, name, settings, "unset")


@command(app, "edit", store=False, examples=["postroom settings edit", "EDITOR=nano postroom settings edit"])
async def edit(at: CommandContext) -> None:
    """Change everything that is set in your editor. Secrets show as ********, and stay as they are."""
    from postroom.services.settings import fingerprint
    from postroom.terminal.cli.editor import edit_text

    async with at.office() as office:
        shown = await office.settings.show(at.caller)
        before = json.dumps(shown, indent=2, ensure_ascii=False) + "\n"
        with edit_text(before, at.home.run / "settings-edited.json", at.out.note) as text:
            if text == before:
                at.out.show(shown, "Nothing was changed.")
                return
            document = _document(text)
            saved = await office.settings.replace(at.caller, document, seen=fingerprint(shown), whole=True)
    at.out.show(saved, "The settings are saved.")


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InvalidField("settings", f"are no JSON: {error}") from None
    if not isinstance(document, dict):
        raise InvalidField("settings", "must be an object in {braces}")
    return document


def _show_change(at: CommandContext, name: str, settings: dict[str, Any], what: str) -> None:
    at.out.show(settings, f"{name} is {what}.")
    if name.startswith(("api.", "store.", "logs.")):
        at.out.note("takes effect with the next start: postroom restart")


@command(providers, "show", store=False, examples=["postroom provider show"])
async def show_provider(at: CommandContext) -> None:
    """Show the provider and model of agents that name none, and those of all agents."""
    from postroom.services.office_documents import agent_document

    async with at.office() as office:
        models = (await office.settings.show(at.caller)).get("models") or {}
        agents = await office.agents.list_all(at.caller)
    rows = [(key, one.provider, one.model) for key, one in agents.items()]
    at.out.show(
        {"models": models, "agents": {key: agent_document(one) for key, one in agents.items()}},
        facts([("default", models.get("provider") or "anthropic")]),
        table(["agent", "provider", "model"], rows),
    )


@command(
    providers,
    "set",
    store=False,
    examples=["postroom provider set anthropic --model opus --api-key env:ANTHROPIC_API_KEY"],
)
async def set_provider(
    at: CommandContext,
    name: Annotated[
        str,
        argument(
            "NAME",
            "anthropic, openai, opencode, anthropic_api, openai_api, script or custom:NAME.",
            autocompletion=completion.providers,
        ),
    ],
    model: ModelOption = None,
    api_key: KeyOption = None,
    oauth_token: TokenOption = None,
) -> None:
    """Choose the provider of agents that name none."""
    async with at.office() as office:
        await office.providers.choose(at.caller, name, model=model, api_key=api_key, oauth_token=oauth_token)
    told = f"The provider is {name}{f' with {model}' if model else ''}."
    at.out.show({"provider": name, "model": model}, told)


def _by_name(name: str) -> None:
    """`postroom provider anthropic …`, as people know it from TinyAGI."""

    async def choose(
        at: CommandContext,
        model: ModelOption = None,
        api_key: KeyOption = None,
        oauth_token: TokenOption = None,
    ) -> None:
        await set_provider(at, name, model, api_key, oauth_token)

    choose.__doc__ = f"Choose {name} for agents that name no provider."
    example = f"postroom provider {name} --model opus"
    command(providers, name, store=False, hidden=True, examples=[example])(choose)


for each in ("anthropic", "openai", "opencode"):
    _by_name(each)


@command(providers, "list", store=False, aliases=["ls"], examples=["postroom provider list"])
async def list_custom(at: CommandContext) -> None:
    """List servers of your own."""
    async with at.office() as office:
        found = await office.providers.list_custom(at.caller)
    rows = [
        (f"custom:{key}", one.get("harness"), one.get("base_url"), one.get("model"))
        for key, one in found.items()
    ]
    at.out.show(found, table(["name", "harness", "address", "model"], rows) if rows else "None.")


@command(
    providers,
    "add",
    store=False,
    examples=[
        "postroom provider add local --url http://127.0.0.1:8080 --key env:LOCAL_KEY --harness claude",
        "postroom provider add lab --url http://127.0.0.1:11434/v1 --harness api --model qwen3",
        "postroom agent provider coder custom:lab",
    ],
)
async def add_custom(
    at: CommandContext,
    name: Annotated[str, argument("NAME", "Agents then use it as custom:NAME.")],
    url: Annotated[str, option("URL", "Where it is.", "--url")],
    key: Annotated[str, option("TEXT", "Its key; best as env:NAME or file:PATH.", "--key")] = "none",
    harness: Annotated[
        str, option("NAME", "claude or codex, or api: without a program. Default claude.", "--harness")
    ] = "claude",
    wire: Annotated[
        str | None, option("NAME", "With --harness api: openai or anthropic. Default openai.", "--wire")
    ] = None,
    model: Annotated[str | None, option("NAME", "Its model.", "--model")] = None,
) -> None:
    """Add a server of your own."""
    fields = {"name": name, "harness": harness, "base_url": url, "api_key": key, "model": model, "wire": wire}
    async with at.office() as office:
        made = await office.providers.put_custom(at.caller, name, fields)
    at.out.show(made, f"custom:{name} is there.")


@command(providers, "remove", store=False, aliases=["rm"], examples=["postroom provider remove local --yes"])
async def remove_custom(
    at: CommandContext, name: Annotated[str, argument("NAME", "Which.")], yes: Yes = False
) -> None:
    """Remove a server of your own, with its key."""
    if not yes:
        confirm(f"Remove custom:{name} and its key?")
    async with at.office() as office:
        await office.providers.remove_custom(at.caller, name)
    at.out.show({"ok": True}, f"custom:{name} is removed.")


@command(
    providers,
    "test",
    store=False,
    examples=[
        "postroom provider test",
        "postroom provider test anthropic_api --model haiku",
        "postroom provider test custom:lab --json",
    ],
)
async def try_provider(
    at: CommandContext,
    names: Annotated[
        list[str] | None,
        argument(
            "NAME",
            "Which; without it, every provider that an agent works with.",
            autocompletion=completion.providers,
        ),
    ] = None,
    model: Annotated[str | None, option("NAME", "With this model.", "--model")] = None,
) -> None:
    """Ask a provider for one short answer, as an agent would. Ends with 1 when there was none."""
    async with at.office(patience_s=None) as office:
        tests = []
        for name, its_model in await _wanted(at, office, names or [], model):
            at.out.note(f"asking {name or 'the provider of agents that name none'} …")
            tests.append(await office.providers.test(at.caller, name, model=its_model))
    rows = [
        (
            "failed" if one.problem else "answered",
            one.provider,
            one.model,
            f"{one.seconds:.1f} s",
            one.problem or one.answer,
        )
        for one in tests
    ]
    columns = ["", "provider", "model", "after", Column("answer or problem", free=True)]
    at.out.show([msgspec.structs.asdict(one) for one in tests], table(columns, rows))
    if any(one.problem for one in tests):
        raise typer.Exit(1)


async def _wanted(
    at: CommandContext, office: "OfficeServices", names: list[str], model: str | None
) -> list[tuple[str | None, str | None]]:
    """Those named, or each that an agent works with, once."""
    if names:
        return [(name, model) for name in names]
    agents = await office.agents.list_all(at.caller)
    found = dict.fromkeys((one.provider or None, model or one.model or None) for one in agents.values())
    return list(found) or [(None, model)]


def register(root: typer.Typer, panel: str) -> None:
    for each in (app, providers):
        root.add_typer(each, rich_help_panel=panel)
    command(root, "model", panel=panel, store=False, examples=["postroom model", "postroom model opus"])(
        model
    )


async def model(
    at: CommandContext,
    name: Annotated[str | None, argument("MODEL", "The new one; without it, show.")] = None,
) -> None:
    """Show the models, or set the one of the chosen provider and of every agent that works with it."""
    if name is None:
        await show_provider(at)
        return
    async with at.office() as office:
        provider = await office.providers.choose(at.caller, model=name)
    at.out.show({"provider": provider, "model": name}, f"The provider is {provider} with {name}.")
