"""`postroom settings`, `provider` and `model`: how the office is set up. Secrets never show."""

import json
import re
from typing import Annotated, Any

import typer

from postroom.errors import Conflict, Invalid, InvalidField
from postroom.settings.names import check_id
from postroom.settings.warnings import PROVIDERS
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.connection import Answered, OfficeClient, shown
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.office import ask, part
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.output import facts, table
from postroom.terminal.cli.setting_names import meant, unknown
from postroom.terminal.cli.store_access import CommandContext

app = group("settings", "Settings: read and change them by name. Secrets show as ********.")
providers = group("provider", "Providers: what agents work with, and servers of your own.")

Name = Annotated[str, argument("NAME", "Like api.port or agents.coder.model.")]
ModelOption = Annotated[str | None, option("NAME", "Also for every agent that works with it.", "--model")]
KeyOption = Annotated[str | None, option("TEXT", "Best as env:NAME or file:PATH.", "--api-key")]
TokenOption = Annotated[str | None, option("TEXT", "Best as env:NAME or file:PATH.", "--oauth-token")]


HARNESSES = ("claude", "codex", "api")


def check_provider(name: str) -> None:
    """Whether a server of one's own is there is for the office to say."""
    if not name.startswith("custom:") and name not in PROVIDERS:
        raise InvalidField(
            "provider", f'"{name}" is not known; there are {", ".join(sorted(PROVIDERS))} and custom:NAME'
        )


class InUse(Conflict):
    """{provider} is in use by {agents}. Choose another there first: postroom agent provider AGENT NAME"""

    code = "PROVIDER_IN_USE"


class ValueRefused(Invalid):
    """{problem} Nothing was changed."""

    code = "SETTINGS_INVALID"


class SettingUnknown(Invalid):
    """unknown setting `{name}`; {hint}"""

    code = "SETTING_UNKNOWN"

    def __init__(self, name: str, *, forced: str = "") -> None:
        near = meant(name)
        hint = f"did you mean `{near}`?" if near else "see docs/reference/settings.md."
        super().__init__(name=name, hint=f"{hint} {forced}".rstrip())


def _found(document: Any, name: str) -> Any:
    for step in name.split("."):
        if not isinstance(document, dict) or step not in document:
            if unknown(name):
                raise SettingUnknown(name)
            raise Unclear(f"{name} is not set; its default holds (see docs/reference/settings.md)")
        document = document[step]
    return document


def _value(text: str) -> Any:
    """JSON where it is JSON, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _changed(document: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """The top-level field with one value in it changed; None takes it away."""
    first, *rest = name.split(".")
    if not rest:
        return {first: value}
    whole = dict(document.get(first) or {})
    at = whole
    for step in rest[:-1]:
        below = at.get(step)
        at[step] = dict(below) if isinstance(below, dict) else {}
        at = at[step]
    if value is None:
        at.pop(rest[-1], None)
    else:
        at[rest[-1]] = value
    return {first: whole}


@command(app, "show", store=False, examples=["postroom settings show", "postroom settings show --json"])
def show(at: CommandContext) -> None:
    """Show everything that is set."""
    found = ask(lambda office: office.get("/api/settings"))
    at.out.show(found, json.dumps(found, indent=2, ensure_ascii=False))


@command(app, "get", store=False, examples=["postroom settings get api.port"])
def get(at: CommandContext, name: Name) -> None:
    """Show one setting."""
    value = _found(ask(lambda office: office.get("/api/settings")), name)
    at.out.show({name: value}, shown(value))


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
def set_(
    at: CommandContext,
    name: Name,
    value: Annotated[str, argument("VALUE", "Text, or JSON.")],
    force: Annotated[bool, flag("Also a name that Postroom does not know.", "--force")] = False,
) -> None:
    """Change one setting; what is not valid is refused, and the field named."""
    new = _value(value)
    strange = unknown(name, new)
    if strange and not force:
        raise SettingUnknown(strange[0], forced="To write it all the same, as for another program: --force")
    _write(at, name, new)


@command(app, "unset", store=False, examples=["postroom settings unset default_agent"])
def unset(at: CommandContext, name: Name) -> None:
    """Go back to the default."""
    if unknown(name):
        _found(ask(lambda office: office.get("/api/settings")), name)
    _write(at, name, None)


def _write(at: CommandContext, name: str, value: Any) -> None:
    async def question(office: OfficeClient) -> Any:
        document = await office.get("/api/settings")
        return await office.put("/api/settings", _changed(document, name, value))

    try:
        settings = ask(question)["settings"]
    except Answered as error:
        if error.code == "SETTINGS_INVALID" and "are not valid. " in str(error):
            # The file is well; it is the new value that is not.
            raise ValueRefused(problem=str(error).partition("are not valid. ")[2]) from None
        raise
    at.out.show(settings, f"{name} is {'unset' if value is None else 'set'}.")
    if name.startswith(("api.", "store.", "logs.")):
        at.out.note("takes effect with the next start: postroom restart")


@command(providers, "show", store=False, examples=["postroom provider show"])
def show_provider(at: CommandContext) -> None:
    """Show the provider and model of agents that name none, and those of all agents."""

    async def question(office: OfficeClient) -> tuple[Any, Any]:
        return (await office.get("/api/settings")).get("models") or {}, await office.get("/api/agents")

    models, agents = ask(question)
    rows = [(key, one["provider"], one["model"]) for key, one in agents.items()]
    at.out.show(
        {"models": models, "agents": agents},
        facts([("default", models.get("provider") or "anthropic")]),
        table(["agent", "provider", "model"], rows),
    )


@command(
    providers,
    "set",
    store=False,
    examples=["postroom provider set anthropic --model opus --api-key env:ANTHROPIC_API_KEY"],
)
def set_provider(
    at: CommandContext,
    name: Annotated[
        str,
        argument("NAME", "anthropic, openai, opencode, anthropic_api, openai_api, script or custom:NAME."),
    ],
    model: ModelOption = None,
    api_key: KeyOption = None,
    oauth_token: TokenOption = None,
) -> None:
    """Choose the provider of agents that name none."""
    own_server = name.partition("custom:")[2]
    if (api_key or oauth_token) and (own_server or name == "script"):
        raise Unclear("Keys of your own servers are given with: postroom provider add")
    check_provider(name)

    async def question(office: OfficeClient) -> Any:
        document = await office.get("/api/settings")
        if own_server and own_server not in (document.get("custom_providers") or {}):
            raise InvalidField(
                "provider", f'there is no server "{own_server}"; add it: postroom provider add'
            )
        models = dict(document.get("models") or {})
        section = name.removesuffix("_api")
        own = dict(models.get(section) or {})
        for field, value in (("model", model), ("api_key", api_key), ("oauth_token", oauth_token)):
            if value:
                own[field] = value
        models |= {"provider": name, **({section: own} if own else {})}
        changes: dict[str, Any] = {"models": models}
        if model:
            agents = document.get("agents") or {}
            changes["agents"] = {
                key: {**one, "model": model} if one.get("provider") == name else one
                for key, one in agents.items()
            }
        return await office.put("/api/settings", changes)

    ask(question)
    at.out.show(
        {"provider": name, "model": model}, f"The provider is {name}{f' with {model}' if model else ''}."
    )


def _by_name(name: str) -> None:
    """`postroom provider anthropic …`, as people know it from TinyAGI."""

    def chosen(
        at: CommandContext,
        model: ModelOption = None,
        api_key: KeyOption = None,
        oauth_token: TokenOption = None,
    ) -> None:
        set_provider(at, name, model, api_key, oauth_token)

    chosen.__doc__ = f"Choose {name} for agents that name no provider."
    command(providers, name, store=False, hidden=True, examples=[f"postroom provider {name} --model opus"])(
        chosen
    )


for each in ("anthropic", "openai", "opencode"):
    _by_name(each)


@command(providers, "list", store=False, aliases=["ls"], examples=["postroom provider list"])
def list_custom(at: CommandContext) -> None:
    """List servers of your own."""
    found = ask(lambda office: office.get("/api/custom-providers"))
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
def add_custom(
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
    check_id("custom_providers", name)
    if not re.match(r"https?://[^/\s]", url):
        raise InvalidField("--url", f"{url!r} is no address; write one like http://127.0.0.1:8080")
    if harness not in HARNESSES:
        raise InvalidField("--harness", f"{harness!r} is none of {', '.join(HARNESSES)}")
    body = {"name": name, "harness": harness, "base_url": url, "api_key": key}
    body |= {field: value for field, value in (("model", model), ("wire", wire)) if value}
    done = ask(lambda office: office.put(f"/api/custom-providers/{part(name)}", body))
    at.out.show(done["provider"], f"custom:{name} is there.")


@command(providers, "remove", store=False, aliases=["rm"], examples=["postroom provider remove local --yes"])
def remove_custom(
    at: CommandContext, name: Annotated[str, argument("NAME", "Which.")], yes: Yes = False
) -> None:
    """Remove a server of your own, with its key."""
    if not yes:
        confirm(f"Remove custom:{name} and its key?")

    async def question(office: OfficeClient) -> Any:
        agents = await office.get("/api/agents")
        users = [key for key, one in agents.items() if one["provider"] == f"custom:{name}"]
        if users:
            raise InUse(provider=f"custom:{name}", agents=", ".join(f"@{key}" for key in users))
        return await office.delete(f"/api/custom-providers/{part(name)}")

    done = ask(question)
    at.out.show(done, f"custom:{name} is removed.")


def register(root: typer.Typer, panel: str) -> None:
    for each in (app, providers):
        root.add_typer(each, rich_help_panel=panel)
    command(root, "model", panel=panel, store=False, examples=["postroom model", "postroom model opus"])(
        model
    )


def model(
    at: CommandContext,
    name: Annotated[str | None, argument("MODEL", "The new one; without it, show.")] = None,
) -> None:
    """Show the models, or set the one of the chosen provider and of every agent that works with it."""
    if name is None:
        show_provider(at)
        return
    models = ask(lambda office: office.get("/api/settings")).get("models") or {}
    set_provider(at, models.get("provider") or "anthropic", model=name)
