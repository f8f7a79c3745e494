"""What the client does with the places of messages: scopes, queues, and what holds in them."""

from typing import Any, Unpack

from postroom.client.calls import Call, PageOptions, path_step, queue_path, scope_path
from postroom.client.model import Page, Queue, Rule, Scope
from postroom.client.verb import Verb


class PlaceVerbs:
    # scopes

    @Verb
    def create_scope(self, slug: str, *, display_name: str = "", description: str = "") -> Call[Scope]:
        body = {"slug": slug, "display_name": display_name, "description": description}
        return Call("POST", "/scopes", Scope, body=body)

    @Verb
    def scopes(self, cursor: str | None = None, *, limit: int | None = None) -> Call[Page[Scope]]:
        return Call("GET", "/scopes", (Scope,), query={"cursor": cursor, "limit": limit})

    @Verb
    def scope(self, scope: str) -> Call[Scope]:
        return Call("GET", scope_path(scope), Scope)

    @Verb
    def update_scope(self, scope: str, **changes: str) -> Call[Scope]:
        """Changes are `display_name` and `description`."""
        return Call("PATCH", scope_path(scope), Scope, body=changes)

    @Verb
    def delete_scope(self, scope: str) -> Call[None]:
        return Call("DELETE", scope_path(scope))

    @Verb
    def pause_scope(self, scope: str) -> Call[Scope]:
        """Nothing new is taken until it is resumed."""
        return Call("POST", scope_path(scope, "pause"), Scope)

    @Verb
    def resume_scope(self, scope: str) -> Call[Scope]:
        return Call("POST", scope_path(scope, "resume"), Scope)

    @Verb
    def drain_scope(self, scope: str) -> Call[Scope]:
        """Nothing new is taken, and what is there is worked off."""
        return Call("POST", scope_path(scope, "drain"), Scope)

    @Verb
    def archive_scope(self, scope: str) -> Call[Scope]:
        return Call("POST", scope_path(scope, "archive"), Scope)

    @Verb
    def unarchive_scope(self, scope: str) -> Call[Scope]:
        return Call("POST", scope_path(scope, "unarchive"), Scope)

    # queues

    @Verb
    def create_queue(self, queue: str, **settings: Any) -> Call[Queue]:
        """`queue` is `scope/queue`; settings are those of the service."""
        scope, _, slug = queue.partition("/")
        return Call("POST", scope_path(scope, "queues"), Queue, body={"slug": slug, **settings})

    @Verb
    def queues(self, scope: str, cursor: str | None = None, *, limit: int | None = None) -> Call[Page[Queue]]:
        return Call("GET", scope_path(scope, "queues"), (Queue,), query={"cursor": cursor, "limit": limit})

    @Verb
    def queue(self, queue: str) -> Call[Queue]:
        return Call("GET", queue_path(queue), Queue)

    @Verb
    def update_queue(self, queue: str, **settings: Any) -> Call[Queue]:
        return Call("PATCH", queue_path(queue), Queue, body=settings)

    @Verb
    def delete_queue(self, queue: str) -> Call[None]:
        return Call("DELETE", queue_path(queue))

    @Verb
    def pause_queue(self, queue: str) -> Call[Queue]:
        return Call("POST", queue_path(queue, "pause"), Queue)

    @Verb
    def resume_queue(self, queue: str) -> Call[Queue]:
        return Call("POST", queue_path(queue, "resume"), Queue)

    @Verb
    def drain_queue(self, queue: str) -> Call[Queue]:
        return Call("POST", queue_path(queue, "drain"), Queue)

    @Verb
    def archive_queue(self, queue: str) -> Call[Queue]:
        return Call("POST", queue_path(queue, "archive"), Queue)

    @Verb
    def unarchive_queue(self, queue: str) -> Call[Queue]:
        return Call("POST", queue_path(queue, "unarchive"), Queue)

    # schemas

    @Verb
    def create_schema(
        self, scope: str, name: str, schema: dict[str, Any], version: str | None = None
    ) -> Call[dict[str, Any]]:
        """What the bodies of a queue must look like."""
        body = {"name": name, "schema": schema, **({} if version is None else {"version": version})}
        return Call("POST", scope_path(scope, "schemas"), dict[str, Any], body=body)

    @Verb
    def schemas(
        self, scope: str, name: str | None = None, **page: Unpack[PageOptions]
    ) -> Call[Page[dict[str, Any]]]:
        return Call("GET", scope_path(scope, "schemas"), (dict[str, Any],), query={"name": name, **page})

    @Verb
    def schema(self, scope: str, name: str, version: str | int) -> Call[dict[str, Any]]:
        steps = (path_step(name, "name"), path_step(str(version), "version"))
        return Call("GET", scope_path(scope, "schemas", *steps), dict[str, Any])

    # schedules

    @Verb
    def put_schedule(self, scope: str, name: str, queue: str, **schedule: Any) -> Call[dict[str, Any]]:
        """What is published by itself: one of `cron` (with `zone`), `every_s` and `at`, and the `body`."""
        return Call("PUT", _schedule(scope, name), dict[str, Any], body={"queue_id": queue, **schedule})

    @Verb
    def schedules(self, scope: str, **page: Unpack[PageOptions]) -> Call[Page[dict[str, Any]]]:
        return Call("GET", scope_path(scope, "schedules"), (dict[str, Any],), query=page)

    @Verb
    def schedule(self, scope: str, name: str) -> Call[dict[str, Any]]:
        return Call("GET", _schedule(scope, name), dict[str, Any])

    @Verb
    def run_schedule(self, scope: str, name: str) -> Call[dict[str, Any]]:
        """Publish its message now; when it is due next does not change. Its `id` and `state`."""
        return Call("POST", _schedule(scope, name) + "/run", dict[str, Any])

    @Verb
    def delete_schedule(self, scope: str, name: str) -> Call[None]:
        return Call("DELETE", _schedule(scope, name))

    # rules

    @Verb
    def create_rule(self, scope: str, **rule: Any) -> Call[Rule]:
        return Call("POST", scope_path(scope, "routing-rules"), Rule, body=rule)

    @Verb
    def rules(self, scope: str, **page: Unpack[PageOptions]) -> Call[Page[Rule]]:
        return Call("GET", scope_path(scope, "routing-rules"), (Rule,), query=page)

    @Verb
    def rule(self, scope: str, rule_id: str) -> Call[Rule]:
        return Call("GET", _rule(scope, rule_id), Rule)

    @Verb
    def update_rule(self, scope: str, rule_id: str, **changes: Any) -> Call[Rule]:
        return Call("PATCH", _rule(scope, rule_id), Rule, body=changes)

    @Verb
    def delete_rule(self, scope: str, rule_id: str) -> Call[None]:
        return Call("DELETE", _rule(scope, rule_id))

    @Verb
    def reset_rule(self, scope: str, rule_id: str) -> Call[Rule]:
        """Let a rule that was stopped for acting too often act again."""
        return Call("POST", _rule(scope, rule_id) + "/reset", Rule)

    @Verb
    def test_rules(self, scope: str, **trial: Any) -> Call[dict[str, Any]]:
        """What would happen; nothing does."""
        path = scope_path(scope, "routing-rules", "test")
        return Call("POST", path, dict[str, Any], body=trial, again=True)

    # patterns of reviews

    @Verb
    def create_pattern(
        self, scope: str, name: str, spec: dict[str, Any], version: str = "1.0"
    ) -> Call[dict[str, Any]]:
        body = {"name": name, "version": version, "spec": spec}
        return Call("POST", scope_path(scope, "hitl-patterns"), dict[str, Any], body=body)

    @Verb
    def patterns(self, scope: str, **page: Unpack[PageOptions]) -> Call[Page[dict[str, Any]]]:
        return Call("GET", scope_path(scope, "hitl-patterns"), (dict[str, Any],), query=page)

    @Verb
    def pattern(self, scope: str, pattern_id: str) -> Call[dict[str, Any]]:
        """`pattern_id` is its id, or `name@version`."""
        return Call("GET", _pattern(scope, pattern_id), dict[str, Any])

    @Verb
    def preview_pattern(self, scope: str, pattern_id: str, **parameters: Any) -> Call[dict[str, Any]]:
        """The review as a person would see it."""
        path = _pattern(scope, pattern_id) + "/preview"
        return Call("POST", path, dict[str, Any], body={"parameters": parameters}, again=True)

    @Verb
    def delete_pattern(self, scope: str, pattern_id: str) -> Call[None]:
        return Call("DELETE", _pattern(scope, pattern_id))


def _schedule(scope: str, name: str) -> str:
    return scope_path(scope, "schedules", path_step(name, "name"))


def _rule(scope: str, rule_id: str) -> str:
    return scope_path(scope, "routing-rules", path_step(rule_id, "rule_id"))


def _pattern(scope: str, pattern_id: str) -> str:
    return scope_path(scope, "hitl-patterns", path_step(pattern_id, "pattern_id"))
