"""What a business sends over the Cloud API, checked against WhatsApp's limits."""

from dataclasses import dataclass

from postroom.testing.platforms.http import CallParameters, NotImplementedByFake, Refusal
from postroom.testing.platforms.transcript import Attachment, OfferedButton
from postroom.testing.platforms.whatsapp.media import MediaStore

TEXT_LIMIT = 4096
CAPTION_LIMIT = 1024
BUTTON_BODY_LIMIT = 1024
BUTTONS = 3
BUTTON_TITLE_LIMIT = 20
BUTTON_ID_LIMIT = 256
LIST_ROWS = 10
ROW_TITLE_LIMIT = 24
MEDIA_KINDS = ("image", "document", "audio", "video", "sticker")


@dataclass(frozen=True)
class MessageDraft:
    text: str
    buttons: tuple[OfferedButton, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    # Only templates may begin a conversation, or take it up again after a day.
    template: str | None = None


@dataclass(frozen=True)
class MessageTemplate:
    """A text approved beforehand; `{{1}}`, `{{2}}` stand for what each message fills in."""

    name: str
    body: str
    language: str = "en_US"


def graph_error(status: int, code: int, message: str, details: str = "") -> Refusal:
    return Refusal(status, f"(#{code}) {message}", code=code, details=details)


def read_draft(
    parameters: CallParameters, media: MediaStore, templates: dict[str, MessageTemplate]
) -> MessageDraft:
    kind = parameters.text("type", "text")
    content = CallParameters(parameters.structure(kind, {}))
    match kind:
        case "text":
            draft = MessageDraft(_check_length(content.text("body"), TEXT_LIMIT, "text.body"))
            content.ignore("preview_url")
        case "interactive":
            draft = _read_interactive(content)
        case "template":
            draft = _read_template(content, templates)
        case kind if kind in MEDIA_KINDS:
            draft = _read_media(content, media)
        case _:
            raise NotImplementedByFake(f"messages of type {kind}")
    content.check_read(f"a message of type {kind}")
    return draft


def _check_length(text: str, limit: int, field: str) -> str:
    if not 1 <= len(text) <= limit:
        raise graph_error(400, 100, f"Param {field} must be between 1 and {limit} characters")
    return text


def _read_media(content: CallParameters, media: MediaStore) -> MessageDraft:
    if "link" in content:
        raise NotImplementedByFake("media by link")
    stored = media.find(content.text("id"))
    caption = content.text("caption")
    name = content.text("filename")
    content.ignore("voice")
    if len(caption) > CAPTION_LIMIT:
        raise graph_error(400, 100, f"Param caption must be at most {CAPTION_LIMIT} characters")
    attachment = stored.attachment
    if name:
        attachment = Attachment(name, attachment.content, attachment.media_type)
    return MessageDraft(caption, attachments=(attachment,))


def _read_interactive(content: CallParameters) -> MessageDraft:
    kind, action = content.text("type"), CallParameters(content.structure("action", {}))
    for part in ("header", "footer"):
        if content.get(part):
            raise NotImplementedByFake(f"interactive messages with a {part}")
    limit = BUTTON_BODY_LIMIT if kind == "button" else TEXT_LIMIT
    text = _check_length(content.structure("body", {}).get("text", ""), limit, "interactive.body.text")
    match kind:
        case "button":
            replies = [button["reply"] for button in action.get("buttons", [])]
            if not 1 <= len(replies) <= BUTTONS:
                raise graph_error(
                    400, 131009, "Parameter value is not valid", "Invalid buttons count. Min 1, max 3."
                )
            title_limit = BUTTON_TITLE_LIMIT
        case "list":
            _check_length(action.text("button"), BUTTON_TITLE_LIMIT, "interactive.action.button")
            replies = [row for section in action.get("sections", []) for row in section["rows"]]
            if not 1 <= len(replies) <= LIST_ROWS:
                raise graph_error(400, 131009, "Parameter value is not valid", "Total row count exceeds 10.")
            title_limit = ROW_TITLE_LIMIT
        case _:
            raise NotImplementedByFake(f"interactive messages of type {kind}")
    action.check_read("an interactive message")
    for reply in replies:
        _check_length(reply["title"], title_limit, "title")
        _check_length(reply["id"], BUTTON_ID_LIMIT, "id")
    if len({reply["id"] for reply in replies}) < len(replies):
        raise graph_error(400, 131009, "Parameter value is not valid", "Duplicated id in buttons")
    return MessageDraft(text, tuple(OfferedButton(reply["title"], reply["id"]) for reply in replies))


def _read_template(content: CallParameters, templates: dict[str, MessageTemplate]) -> MessageDraft:
    name, language = content.text("name"), content.structure("language", {}).get("code")
    template = templates.get(name)
    if template is None or template.language != language:
        details = f"template name ({name}) does not exist in {language}"
        raise graph_error(404, 132001, "Template name does not exist in the translation", details)
    values: list[str] = []
    for component in content.structure("components", []):
        if component["type"].lower() != "body":
            raise NotImplementedByFake(f"template components of type {component['type']}")
        values += [parameter["text"] for parameter in component.get("parameters", [])]
    expected = template.body.count("{{")
    if len(values) != expected:
        details = f"body: number of localizable_params ({len(values)}) does not match ({expected})"
        raise graph_error(
            400, 132000, "Number of parameters does not match the expected number of params", details
        )
    text = template.body
    for number, value in enumerate(values, 1):
        text = text.replace(f"{{{{{number}}}}}", value)
    return MessageDraft(text, template=name)
