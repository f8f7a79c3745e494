"""Wrong inputs, each as every entrance would say it, and the one code that it must get everywhere."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from postroom.kernel.erasure.subject import Subject
from postroom.kernel.model import NewMessage
from postroom.services.callers import Caller
from postroom.services.container import Services
from postroom.services.keys import KeyDraft

S = "/scopes/default"
JOBS = S + "/queues/jobs"
INVALID = "VALIDATION_ERROR"
YEAR_S = 366 * 86_400
QUESTION = {"sections": [{"type": "decision", "field": "decision", "options": ["yes", "no"]}]}
RULE = {"name": "r", "action": {"type": "archive"}}

Ask = Callable[[Services, Caller, dict[str, str]], Awaitable[Any]]


@dataclass(frozen=True)
class WrongInput:
    """What a command line cannot even say (a duration below 0) has no `cli`: there it is a matter of usage.

    `{waiting}`, `{claimed}`, `{review}` and `{done}` stand for the ids of messages that are there."""

    name: str
    code: str
    python: Ask
    http: tuple[str, str, Any] | None = None
    cli: str | tuple[str, ...] | None = None
    mcp: dict[str, Any] | None = None
    stdin: Any = field(default=None)
    """What the command reads as a file."""


def publish(body: Any = 1, *, queue: str = "jobs", scope: str = "default", **more: Any) -> Ask:
    return lambda services, caller, ids: services.messages.publish(
        caller, scope, queue, [NewMessage(body=body, **more)]
    )


def wrong_publish(
    name: str, code: str, cli: str | None, *, http: dict[str, Any] | None = None, **more: Any
) -> WrongInput:
    body = http if http is not None else more
    words = None if cli is None else ("publish", "jobs", "1", *cli.split())
    return WrongInput(name, code, publish(**more), ("POST", JOBS + "/messages", {"body": 1, **body}), words)


def wrong_queue(name: str, cli: str, **settings: Any) -> WrongInput:
    return WrongInput(
        name,
        INVALID,
        lambda services, caller, ids: services.queues.create(caller, "default", "new", settings),
        ("POST", S + "/queues", {"slug": "new", **settings}),
        f"queue create new {cli}",
    )


def wrong_rule(name: str, /, code: str = INVALID, *, scope: str = "default", **parts: Any) -> WrongInput:
    document = {**RULE, **parts}
    return WrongInput(
        name,
        code,
        lambda services, caller, ids: services.rules.create(caller, scope, document),
        ("POST", f"/scopes/{scope}/routing-rules", document),
        f"rule add - --scope {scope}",
        stdin=document,
    )


def wrong_key(
    name: str, cli: str | tuple[str, ...], code: str = INVALID, /, *, scope: str | None = None, **parts: Any
) -> WrongInput:
    draft = {"name": "k", "permissions": ["view"], **parts}
    path = "/api-keys" if scope is None else f"/scopes/{scope}/api-keys"
    return WrongInput(
        name,
        code,
        lambda services, caller, ids: services.keys.create(caller, KeyDraft(**draft), scope=scope),
        ("POST", path, draft),
        cli if isinstance(cli, tuple) else f"key create {cli}",
    )


def wrong_message(
    verb: str, code: str, about: str, *, token: str | None = None, cli: str = "", name: str = "", **parts: Any
) -> WrongInput:
    """One of the verbs of a claim."""
    body = parts if token is None else {"claim_token": token, **parts}
    mcp = None
    if verb in ("complete", "fail") and token is not None:
        mcp = {"tool": verb, "id": about, "claim_token": token}
        mcp |= {"reason": "no"} if verb == "fail" else {}

    def ask(services: Services, caller: Caller, ids: dict[str, str]) -> Awaitable[Any]:
        service = services.dead_letters if verb in ("replay", "discard") else services.claims
        words = () if token is None else (token,)
        return getattr(service, verb)(caller, about.format(**ids), *words, **parts)

    http_verb = "release" if verb == "release" else verb
    command = (
        f"dead {verb} {about}{' --yes' if verb == 'discard' else ''}"
        if verb in ("replay", "discard")
        else f"{verb} {about} {token or ''} {cli}"
    )
    return WrongInput(
        name or f"{verb} {about.strip('{}')}",
        code,
        ask,
        ("POST", f"{S}/messages/{about}/{http_verb}", body),
        command,
        mcp,
    )


LABELS = {f"l{number}": "x" for number in range(200)}
WRONG: list[WrongInput] = [
    # publish
    WrongInput(
        "publish into no queue",
        "QUEUE_NOT_FOUND",
        publish(queue="nope"),
        ("POST", S + "/queues/nope/messages", {"body": 1}),
        "publish nope 1",
        {"tool": "publish", "queue": "nope", "body": 1},
    ),
    WrongInput(
        "publish into no scope",
        "SCOPE_NOT_FOUND",
        publish(scope="nowhere"),
        ("POST", "/scopes/nowhere/queues/jobs/messages", {"body": 1}),
        "publish nowhere/jobs 1",
        {"tool": "publish", "queue": "nowhere/jobs", "body": 1},
    ),
    WrongInput(
        "publish into a system queue",
        "SYSTEM_QUEUE",
        publish(queue="_dead_letter"),
        ("POST", S + "/queues/_dead_letter/messages", {"body": 1}),
        "publish _dead_letter 1",
        {"tool": "publish", "queue": "_dead_letter", "body": 1},
    ),
    WrongInput(
        "publish into an archived queue",
        "QUEUE_PAUSED",
        publish(queue="closed"),
        ("POST", S + "/queues/closed/messages", {"body": 1}),
        "publish closed 1",
        {"tool": "publish", "queue": "closed", "body": 1},
    ),
    WrongInput(
        "publish what does not fit the queue's schema",
        "SCHEMA_VIOLATION",
        publish("text", queue="strict"),
        ("POST", S + "/queues/strict/messages", {"body": "text"}),
        "publish strict text",
        {"tool": "publish", "queue": "strict", "body": "text"},
    ),
    wrong_publish("no life", INVALID, "--ttl 0", http={"ttl_seconds": 0}, ttl_s=0.0),
    wrong_publish(
        "a life of more than a year",
        INVALID,
        f"--ttl {YEAR_S + 1}",
        http={"ttl_seconds": YEAR_S + 1},
        ttl_s=YEAR_S + 1.0,
    ),
    wrong_publish("a negative delay", INVALID, None, http={"delay_seconds": -5}, delay_s=-5.0),
    wrong_publish(
        "a delay of more than a year",
        INVALID,
        f"--delay {YEAR_S + 1}",
        http={"delay_seconds": YEAR_S + 1},
        delay_s=YEAR_S + 1.0,
    ),
    wrong_publish("a score over 1000", INVALID, "--score 1001", priority_score=1001),
    wrong_publish("an empty type", INVALID, "--type=", message_type=""),
    wrong_publish("a label of a list", INVALID, "--label a:=[1]", labels={"a": [1]}),
    wrong_publish("a label without a name", INVALID, None, labels={"": "x"}),
    wrong_publish(
        "too many labels", INVALID, " ".join(f"--label {name}=x" for name in LABELS), labels=LABELS
    ),
    wrong_publish("an empty key", INVALID, "--key=", idempotency_key=""),
    wrong_publish("a key of another body", "IDEMPOTENCY_CONFLICT", "--key used", idempotency_key="used"),
    wrong_publish(
        "a review without sections",
        "HITL_INVALID",
        '--hitl-spec {"sections":[]}',
        hitl_spec={"sections": []},
    ),
    wrong_publish(
        "a review of an unknown kind",
        "HITL_INVALID",
        '--hitl-spec {"sections":[{"type":"dance"}]}',
        hitl_spec={"sections": [{"type": "dance"}]},
    ),
    wrong_publish(
        "a review of no pattern",
        "PATTERN_NOT_FOUND",
        '--hitl-spec {"pattern":"nope"}',
        hitl_spec={"pattern": "nope"},
    ),
    # claims
    WrongInput(
        "claim nothing",
        INVALID,
        lambda services, caller, ids: services.claims.claim(caller, [("default", "jobs")], limit=0),
        ("POST", JOBS + "/claim", {"batch_size": 0}),
        "claim jobs --limit 0",
        {"tool": "claim", "queue": "jobs", "limit": 0},
    ),
    WrongInput(
        "claim from no queue",
        "QUEUE_NOT_FOUND",
        lambda services, caller, ids: services.claims.claim(caller, [("default", "nope")]),
        ("POST", S + "/queues/nope/claim", {}),
        "claim nope",
        {"tool": "claim", "queue": "nope"},
    ),
    WrongInput(
        "claim for no time",
        INVALID,
        lambda services, caller, ids: services.claims.claim(caller, [("default", "jobs")], lease_s=0),
        ("POST", JOBS + "/claim", {"visibility_timeout_s": 0}),
        "claim jobs --lease 0",
    ),
    WrongInput(
        "claim of a broadcast queue as nobody",
        INVALID,
        lambda services, caller, ids: services.claims.claim(caller, [("default", "news")]),
        ("POST", S + "/queues/news/claim", {}),
        "claim news",
        {"tool": "claim", "queue": "news"},
    ),
    WrongInput(
        "claim as a subscriber that is none",
        "SUBSCRIPTION_NOT_FOUND",
        lambda services, caller, ids: services.claims.claim(
            caller, [("default", "news")], subscription="nobody"
        ),
        ("POST", S + "/queues/news/claim", {"subscription": "nobody"}),
        "claim news --subscription nobody",
    ),
    wrong_message("complete", "CLAIM_LOST", "{claimed}", token="wrong"),
    wrong_message("complete", "MESSAGE_NOT_FOUND", "nope", token="wrong"),
    wrong_message("fail", "CLAIM_LOST", "{claimed}", token="wrong", cli="no", reason="no"),
    wrong_message("release", "CLAIM_LOST", "{claimed}", token="wrong"),
    wrong_message("extend", "CLAIM_LOST", "{claimed}", token="wrong"),
    WrongInput(
        "extend by nothing",
        INVALID,
        lambda services, caller, ids: services.claims.extend(caller, ids["claimed"], ids["token"], lease_s=0),
        ("POST", S + "/messages/{claimed}/extend", {"claim_token": "{token}", "extend_s": 0}),
        "extend {claimed} {token} --lease 0",
    ),
    WrongInput(
        "snooze into the past",
        INVALID,
        lambda services, caller, ids: services.claims.snooze(
            caller, ids["claimed"], ids["token"], seconds=-1
        ),
        ("POST", S + "/messages/{claimed}/snooze", {"claim_token": "{token}", "seconds": -1}),
    ),
    wrong_message("replay", "INVALID_STATE", "{waiting}"),
    wrong_message("discard", "INVALID_STATE", "{waiting}"),
    wrong_message("replay", "MESSAGE_NOT_FOUND", "nope"),
    WrongInput(
        "cancel what is done",
        "INVALID_STATE",
        lambda services, caller, ids: services.messages.cancel(caller, ids["done"]),
        ("POST", S + "/messages/{done}/cancel", {}),
        "cancel {done}",
    ),
    WrongInput(
        "read no message",
        "MESSAGE_NOT_FOUND",
        lambda services, caller, ids: services.messages.read(caller, "nope"),
        ("GET", S + "/messages/nope", None),
        "show nope",
    ),
    # reviews
    WrongInput(
        "an answer that is no option",
        "HITL_INVALID",
        lambda services, caller, ids: services.reviews.answer(caller, ids["review"], {"decision": "perhaps"}),
        ("POST", S + "/messages/{review}/review", {"answer": {"decision": "perhaps"}}),
        "review answer {review} decision=perhaps",
    ),
    WrongInput(
        "an answer to what was not asked",
        "HITL_INVALID",
        lambda services, caller, ids: services.reviews.answer(
            caller, ids["review"], {"decision": "yes", "other": "x"}
        ),
        ("POST", S + "/messages/{review}/review", {"answer": {"decision": "yes", "other": "x"}}),
        "review answer {review} decision=yes other=x",
    ),
    WrongInput(
        "an answer to no review",
        "MESSAGE_NOT_FOUND",
        lambda services, caller, ids: services.reviews.answer(caller, "nope", {"decision": "yes"}),
        ("POST", S + "/messages/nope/review", {"answer": {"decision": "yes"}}),
        "review answer nope decision=yes",
    ),
    # scopes and queues
    WrongInput(
        "a scope with a bad name",
        INVALID,
        lambda services, caller, ids: services.scopes.create(caller, "No Such!"),
        ("POST", "/scopes", {"slug": "No Such!"}),
        ("scope", "create", "No Such!"),
    ),
    WrongInput(
        "a scope that is there",
        "SLUG_CONFLICT",
        lambda services, caller, ids: services.scopes.create(caller, "full"),
        ("POST", "/scopes", {"slug": "full"}),
        "scope create full",
    ),
    WrongInput(
        "a queue that is there",
        "SLUG_CONFLICT",
        lambda services, caller, ids: services.queues.create(caller, "default", "jobs", {}),
        ("POST", S + "/queues", {"slug": "jobs"}),
        "queue create jobs",
    ),
    WrongInput(
        "the 501st queue",
        INVALID,
        lambda services, caller, ids: services.queues.create(caller, "full", "more", {}),
        ("POST", "/scopes/full/queues", {"slug": "more"}),
        "queue create full/more",
    ),
    WrongInput(
        "a queue of the system by hand",
        "SYSTEM_QUEUE",
        lambda services, caller, ids: services.queues.create(caller, "default", "_mine", {}),
        ("POST", S + "/queues", {"slug": "_mine"}),
        "queue create _mine",
    ),
    wrong_queue("retries below none", "--max-retries -1", max_retries=-1),
    wrong_queue("no lease", "--lease 0", visibility_timeout_s=0),
    wrong_queue("no room", "--max-depth -1", max_depth=-1),
    wrong_queue("no consumer", "--concurrency 0", concurrency=0),
    wrong_queue("a default life of more than a year", f"--ttl {YEAR_S + 1}", default_ttl_s=YEAR_S + 1),
    WrongInput(
        "a schema that is none",
        "SCHEMA_NOT_FOUND",
        lambda services, caller, ids: services.queues.create(caller, "default", "new", {"schema": "nope"}),
        ("POST", S + "/queues", {"slug": "new", "schema": "nope"}),
        "queue create new --schema nope",
    ),
    WrongInput(
        "delete a queue with messages",
        "NOT_EMPTY",
        lambda services, caller, ids: services.queues.delete(caller, "default", "jobs"),
        ("DELETE", JOBS, None),
        "queue delete jobs",
    ),
    WrongInput(
        "delete a queue of the system",
        "SYSTEM_QUEUE",
        lambda services, caller, ids: services.queues.delete(caller, "default", "_dead_letter"),
        ("DELETE", S + "/queues/_dead_letter", None),
        "queue delete _dead_letter",
    ),
    WrongInput(
        "pause no queue",
        "QUEUE_NOT_FOUND",
        lambda services, caller, ids: services.queues.set_state(caller, "default", "nope", "pause"),
        ("POST", S + "/queues/nope/pause", None),
        "queue pause nope",
    ),
    # schemas and subscriptions
    WrongInput(
        "a schema of no type",
        INVALID,
        lambda services, caller, ids: services.schemas.register(caller, "default", "s", {"type": "dance"}),
        ("POST", S + "/schemas", {"name": "s", "schema": {"type": "dance"}}),
        "schema add s -",
        stdin={"type": "dance"},
    ),
    WrongInput(
        "version 0 of a schema",
        INVALID,
        lambda services, caller, ids: services.schemas.register(caller, "default", "s", {}, version=0),
        ("POST", S + "/schemas", {"name": "s", "version": 0, "schema": {}}),
        "schema add s - --version 0",
        stdin={},
    ),
    WrongInput(
        "subscribe where consumers compete",
        INVALID,
        lambda services, caller, ids: services.subscriptions.subscribe(caller, "default", "jobs", "me"),
        ("POST", S + "/subscriptions", {"queue_id": "jobs", "name": "me"}),
        "subscribe jobs me",
    ),
    # rules
    wrong_rule("the 201st rule", scope="full"),
    wrong_rule("a rule in no scope", "SCOPE_NOT_FOUND", scope="nowhere"),
    wrong_rule("a rule from no queue", source_queue_id="nope"),
    wrong_rule("a rule to no queue", action={"type": "route", "target_queue_id": "nope"}),
    wrong_rule("a rule without a name", name=""),
    wrong_rule("a rule that does nothing known", action={"type": "dance"}),
    wrong_rule("a rule that cannot be read", expression="1 +"),
    wrong_rule("a rule of an unknown moment", trigger="sometimes"),
    WrongInput(
        "try rules on no message",
        "MESSAGE_NOT_FOUND",
        lambda services, caller, ids: services.rules.test(caller, "default", message_id="nope"),
        ("POST", S + "/routing-rules/test", {"message_id": "nope"}),
        "rule test --message nope",
    ),
    WrongInput(
        "try rules on the last none",
        INVALID,
        lambda services, caller, ids: services.rules.test(caller, "default", last=0),
        ("POST", S + "/routing-rules/test", {"last": 0}),
        "rule test --last 0",
    ),
    # keys
    wrong_key("a key with an unknown right", "k --permission dance", permissions=["dance"]),
    wrong_key("a key with an unknown role", "k --role dancer", permissions=[], role="dancer"),
    wrong_key("a key without a name", ("key", "create", "", "--permission", "view"), name=""),
    wrong_key("a key of no scope", "k --permission view --scope nowhere", "SCOPE_NOT_FOUND", scope="nowhere"),
    WrongInput(
        "rotate no key",
        "API_KEY_NOT_FOUND",
        lambda services, caller, ids: services.keys.rotate(caller, "nope"),
        ("POST", "/api-keys/nope/rotate", None),
        "key rotate nope",
    ),
    WrongInput(
        "revoke no key",
        "API_KEY_NOT_FOUND",
        lambda services, caller, ids: services.keys.revoke(caller, "nope"),
        ("DELETE", "/api-keys/nope", None),
        "key revoke nope",
    ),
    # erasure and audit
    WrongInput(
        "erase by what is no field",
        INVALID,
        lambda services, caller, ids: services.erasures.create(
            caller, "default", Subject(field="dance", value="x")
        ),
        ("POST", S + "/gdpr-jobs", {"subject": {"field": "dance", "value": "x"}}),
        "erase dance x --yes",
    ),
    WrongInput(
        "erase in no scope",
        "SCOPE_NOT_FOUND",
        lambda services, caller, ids: services.erasures.create(
            caller, "nowhere", Subject(field="sender_id", value="x")
        ),
        ("POST", "/scopes/nowhere/gdpr-jobs", {"subject": {"field": "sender_id", "value": "x"}}),
        "erase sender_id x --scope nowhere --yes",
    ),
    WrongInput(
        "no entries of the audit",
        INVALID,
        lambda services, caller, ids: services.audit.list_page(caller, "default", limit=0),
        ("GET", S + "/audit?limit=0", None),
        "audit list --scope default --limit 0",
    ),
    WrongInput(
        "messages of an unknown state",
        INVALID,
        lambda services, caller, ids: services.messages.list_page(
            caller, "default", "jobs", states=("dancing",)
        ),
        ("GET", JOBS + "/messages?state=dancing", None),
    ),
]
