"""Telling others over HTTP: events become deliveries in a queue, and deliveries become signed requests."""

from postroom.webhooks.service import WebhookService

__all__ = ["WebhookService"]
