"""What the client does about who may do what: keys, grants, trusts, roles, tenants; about what is told to
others by webhooks, and about what was done and must be forgotten."""

from typing import Any, Unpack

from postroom.client.calls import Call, PageOptions, drop_missing, path_step, queue_path, scope_path
from postroom.client.model import Key, Page
from postroom.client.verb import Verb

Entry = dict[str, Any]


class AccessVerbs:
    # keys

    @Verb
    def create_key(self, name: str, scope: str | None = None, **options: Any) -> Call[Key]:
        """Of the whole tenant without a scope. The secret is in this answer and nowhere else."""
        return Call("POST", _keys(scope), Key, body={"name": name, **options})

    @Verb
    def keys(self, scope: str | None = None, **page: Unpack[PageOptions]) -> Call[Page[Key]]:
        return Call("GET", _keys(scope), (Key,), query=page)

    @Verb
    def rotate_key(self, key_id: str, scope: str | None = None, *, grace_s: float | None = None) -> Call[Key]:
        """A new secret; the old one works for `grace_s` seconds more."""
        path = f"{_keys(scope)}/{path_step(key_id, 'key_id')}/rotate"
        return Call("POST", path, Key, body=drop_missing(grace_s=grace_s))

    @Verb
    def revoke_key(self, key_id: str, scope: str | None = None) -> Call[Key]:
        return Call("DELETE", f"{_keys(scope)}/{path_step(key_id, 'key_id')}", Key)

    # grants, access lists, trusts

    @Verb
    def create_grant(
        self, scope: str, principal_type: str, principal_id: str, permissions: list[str], **options: Any
    ) -> Call[Entry]:
        """Options: `expires_at`."""
        body = _entry(principal_type, principal_id, permissions, options)
        return Call("POST", scope_path(scope, "grants"), Entry, body=body)

    @Verb
    def grants(self, scope: str, **page: Unpack[PageOptions]) -> Call[Page[Entry]]:
        return Call("GET", scope_path(scope, "grants"), (Entry,), query=page)

    @Verb
    def delete_grant(self, scope: str, grant_id: str) -> Call[None]:
        return Call("DELETE", scope_path(scope, "grants", path_step(grant_id, "grant_id")))

    @Verb
    def create_acl(
        self, queue: str, principal_type: str, principal_id: str, permissions: list[str], **options: Any
    ) -> Call[Entry]:
        """One line of the access list of a queue. Options: `expires_at`."""
        body = _entry(principal_type, principal_id, permissions, options)
        return Call("POST", queue_path(queue, "acl"), Entry, body=body)

    @Verb
    def acl(self, queue: str, **page: Unpack[PageOptions]) -> Call[Page[Entry]]:
        return Call("GET", queue_path(queue, "acl"), (Entry,), query=page)

    @Verb
    def delete_acl(self, queue: str, entry_id: str) -> Call[None]:
        return Call("DELETE", queue_path(queue, "acl", path_step(entry_id, "entry_id")))

    @Verb
    def create_trust(
        self, scope: str, target_scope: str, permissions: list[str], *, enabled: bool = True
    ) -> Call[Entry]:
        """What this scope may do in another one."""
        body = {"target_scope_id": target_scope, "permissions": permissions, "enabled": enabled}
        return Call("POST", scope_path(scope, "trusts"), Entry, body=body)

    @Verb
    def trusts(self, scope: str, **page: Unpack[PageOptions]) -> Call[Page[Entry]]:
        return Call("GET", scope_path(scope, "trusts"), (Entry,), query=page)

    @Verb
    def change_trust(self, scope: str, trust_id: str, *, enabled: bool) -> Call[Entry]:
        path = scope_path(scope, "trusts", path_step(trust_id, "trust_id"))
        return Call("PATCH", path, Entry, body={"enabled": enabled})

    @Verb
    def delete_trust(self, scope: str, trust_id: str) -> Call[None]:
        return Call("DELETE", scope_path(scope, "trusts", path_step(trust_id, "trust_id")))

    # roles, people, tenants

    @Verb
    def create_role(self, name: str, permissions: list[str]) -> Call[Entry]:
        body = {"name": name, "module_permissions": permissions}
        return Call("POST", "/iam/custom-roles", Entry, body=body)

    @Verb
    def roles(self) -> Call[Page[Entry]]:
        return Call("GET", "/iam/custom-roles", (Entry,))

    @Verb
    def delete_role(self, name: str) -> Call[None]:
        return Call("DELETE", f"/iam/custom-roles/{path_step(name, 'name')}")

    @Verb
    def set_permissions(self, user_id: str, permissions: list[str]) -> Call[Entry]:
        path = f"/users/{path_step(user_id, 'user_id')}/module-permissions"
        return Call("PUT", path, Entry, body={"permissions": permissions})

    @Verb
    def create_tenant(self, slug: str, **options: Any) -> Call[Entry]:
        """Options are `display_name` and `partner`."""
        return Call("POST", "/tenants", Entry, body={"slug": slug, **options})

    @Verb
    def tenants(self) -> Call[Page[Entry]]:
        return Call("GET", "/tenants", (Entry,))

    @Verb
    def set_rates(self, tenant: str, **rates: int) -> Call[Entry]:
        """Requests a minute of each `key`, each `user` and the whole `tenant`."""
        return Call("PUT", f"/tenants/{path_step(tenant, 'tenant')}/rates", Entry, body=rates)

    # the audit, and what must be forgotten

    @Verb
    def audit(self, scope: str, **filters: Any) -> Call[Page[Entry]]:
        """Filters are `event_type`, `actor_id`, `correlation_id`, `message_id`, `allowed`, `since`, `until`,
        `limit` and `cursor`."""
        return Call("GET", scope_path(scope, "audit"), (Entry,), query=filters)

    @Verb
    def create_erasure_job(self, scope: str, subject: dict[str, Any], **options: Any) -> Call[Entry]:
        """What is held about a person. Options are `mode` and `dry_run`."""
        body = {"subject": subject, **options}
        return Call("POST", scope_path(scope, "gdpr-jobs"), Entry, body=body)

    @Verb
    def erasure_jobs(self, scope: str, **page: Unpack[PageOptions]) -> Call[Page[Entry]]:
        return Call("GET", scope_path(scope, "gdpr-jobs"), (Entry,), query=page)

    @Verb
    def erasure_job(self, scope: str, job_id: str) -> Call[Entry]:
        return Call("GET", _job(scope, job_id), Entry)

    @Verb
    def preview_erasure_job(self, scope: str, job_id: str) -> Call[Entry]:
        """What would be erased; nothing is."""
        return Call("POST", _job(scope, job_id, "preview"), Entry, again=True)

    @Verb
    def execute_erasure_job(self, scope: str, job_id: str) -> Call[Entry]:
        return Call("POST", _job(scope, job_id, "execute"), Entry)

    # webhooks

    @Verb
    def create_webhook(self, url: str, **options: Any) -> Call[Entry]:
        """Options are `events`, `secret`, `status`, `max_retries` and `description`."""
        return Call("POST", "/webhooks", Entry, body={"url": url, **options})

    @Verb
    def webhooks(self, **page: Unpack[PageOptions]) -> Call[Page[Entry]]:
        return Call("GET", "/webhooks", (Entry,), query=page)

    @Verb
    def webhook(self, webhook_id: str) -> Call[Entry]:
        return Call("GET", _webhook(webhook_id), Entry)

    @Verb
    def update_webhook(self, webhook_id: str, url: str, **options: Any) -> Call[Entry]:
        """The whole webhook anew, as it is created."""
        return Call("PUT", _webhook(webhook_id), Entry, body={"url": url, **options})

    @Verb
    def delete_webhook(self, webhook_id: str) -> Call[None]:
        return Call("DELETE", _webhook(webhook_id))

    @Verb
    def test_webhook(self, webhook_id: str) -> Call[Entry]:
        """Send it an event that says it is a test."""
        return Call("POST", _webhook(webhook_id, "test"), Entry)

    @Verb
    def deliveries(self, webhook_id: str, **filters: Any) -> Call[Page[Entry]]:
        """Filters are `status`, `since` and `limit`."""
        return Call("GET", _webhook(webhook_id, "deliveries"), (Entry,), query=filters)

    @Verb
    def system_agents(self) -> Call[Page[Entry]]:
        """The housekeepers, and when they last ran."""
        return Call("GET", "/system-agents", (Entry,))


def _keys(scope: str | None) -> str:
    return "/api-keys" if scope is None else scope_path(scope, "api-keys")


def _entry(kind: str, who: str, permissions: list[str], options: dict[str, Any]) -> Entry:
    return {"principal_type": kind, "principal_id": who, "permissions": permissions, **options}


def _job(scope: str, job_id: str, *steps: str) -> str:
    return scope_path(scope, "gdpr-jobs", path_step(job_id, "job_id"), *steps)


def _webhook(webhook_id: str, *steps: str) -> str:
    return "/".join(("/webhooks", path_step(webhook_id, "webhook_id"), *steps))
