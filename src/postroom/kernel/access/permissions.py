"""The four permissions, and which of them each role brings."""

from enum import StrEnum


class Permission(StrEnum):
    VIEW = "view"
    PUBLISH = "publish"
    CONSUME = "consume"
    MANAGE = "manage"


ALL = frozenset(Permission)
PREFIX = "scaiqueue:"
# Documents that say what somebody may do: roles of a tenant's own, users, and the tenants themselves.
ROLES = "custom_role"
USERS = "user_permissions"
TENANTS = "tenant"


class Role(StrEnum):
    SUPER_ADMIN = "super_admin"
    PARTNER_ADMIN = "partner_admin"
    TENANT_ADMIN = "tenant_admin"
    TENANT_USER = "tenant_user"
    TENANT_VIEWER = "tenant_viewer"


ROLE_PERMISSIONS: dict[str, frozenset[Permission]] = {
    Role.SUPER_ADMIN: ALL,
    Role.PARTNER_ADMIN: ALL,
    Role.TENANT_ADMIN: ALL,
    Role.TENANT_USER: frozenset(),
    Role.TENANT_VIEWER: frozenset({Permission.VIEW}),
}
ADMINS = frozenset({Role.SUPER_ADMIN, Role.PARTNER_ADMIN, Role.TENANT_ADMIN})


def parsed(name: str) -> Permission | None:
    """`view` or `scaiqueue:view`; None when there is no such permission."""
    try:
        return Permission(name.removeprefix(PREFIX))
    except ValueError:
        return None
