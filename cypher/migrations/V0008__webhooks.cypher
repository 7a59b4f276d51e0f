// Webhooks of tenants, and how far each of them has delivered the changes of each user.
CREATE CONSTRAINT graphmem_webhook IF NOT EXISTS FOR (w:Webhook) REQUIRE w.id IS UNIQUE;
CREATE INDEX graphmem_webhook_tenant IF NOT EXISTS FOR (w:Webhook) ON (w.tenant);
CREATE CONSTRAINT graphmem_webhook_cursor IF NOT EXISTS FOR (c:WebhookCursor) REQUIRE (c.webhook_id, c.group_id) IS UNIQUE;
CREATE INDEX graphmem_webhook_cursor_group IF NOT EXISTS FOR (c:WebhookCursor) ON (c.group_id);
CREATE INDEX graphmem_webhook_cursor_webhook IF NOT EXISTS FOR (c:WebhookCursor) ON (c.webhook_id);
// Users by when their memories were last written, for what a webhook has yet to deliver.
CREATE INDEX graphmem_user_written IF NOT EXISTS FOR (u:User) ON (u.tenant, u.last_write_at);
