-- name: AuditEntryInsert :exec
INSERT INTO audit_entries (tenant_id, actor, action, subject, reason, via, address, request_id, account_id)
VALUES (@tenant_id, @actor, @action, @subject, @reason, @via, @address, @request_id, sqlc.narg(account_id));

-- name: AuditEntryList :many
-- Newest first, from behind the id on.
SELECT id, occurred_at, actor, action, subject, reason, via, address, request_id
FROM audit_entries
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(actor)::text IS NULL OR actor = sqlc.narg(actor)::text)
  AND (sqlc.narg(action)::text IS NULL OR action = sqlc.narg(action)::text)
  AND (sqlc.narg(subject)::text IS NULL OR subject = sqlc.narg(subject)::text)
  AND (sqlc.narg(occurred_from)::timestamptz IS NULL OR occurred_at >= sqlc.narg(occurred_from)::timestamptz)
  AND (sqlc.narg(occurred_to)::timestamptz IS NULL OR occurred_at < sqlc.narg(occurred_to)::timestamptz)
  AND (sqlc.narg(before_id)::bigint IS NULL OR id < sqlc.narg(before_id)::bigint)
ORDER BY id DESC
LIMIT @max_items;

-- name: AuditEntryListNewer :many
-- Oldest first, from behind the id on: the way back through the same list.
SELECT id, occurred_at, actor, action, subject, reason, via, address, request_id
FROM audit_entries
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(actor)::text IS NULL OR actor = sqlc.narg(actor)::text)
  AND (sqlc.narg(action)::text IS NULL OR action = sqlc.narg(action)::text)
  AND (sqlc.narg(subject)::text IS NULL OR subject = sqlc.narg(subject)::text)
  AND (sqlc.narg(occurred_from)::timestamptz IS NULL OR occurred_at >= sqlc.narg(occurred_from)::timestamptz)
  AND (sqlc.narg(occurred_to)::timestamptz IS NULL OR occurred_at < sqlc.narg(occurred_to)::timestamptz)
  AND id > @after_id
ORDER BY id
LIMIT @max_items;
