-- name: AuditEntryInsert :exec
INSERT INTO audit_entries (tenant_id, actor, action, subject, reason, via, address, request_id, account_id)
VALUES (@tenant_id, @actor, @action, @subject, @reason, @via, @address, @request_id, sqlc.narg(account_id));

-- name: AuditEntryListNewest :many
SELECT id, occurred_at, actor, action, subject, reason, via, address, request_id
FROM audit_entries
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(actor)::text IS NULL OR actor = sqlc.narg(actor)::text)
  AND (sqlc.narg(action)::text IS NULL OR action = sqlc.narg(action)::text)
  AND (sqlc.narg(subject)::text IS NULL OR subject = sqlc.narg(subject)::text)
  AND (sqlc.narg(occurred_from)::timestamptz IS NULL OR occurred_at >= sqlc.narg(occurred_from)::timestamptz)
  AND (sqlc.narg(occurred_to)::timestamptz IS NULL OR occurred_at < sqlc.narg(occurred_to)::timestamptz)
  AND (sqlc.narg(beyond_at)::timestamptz IS NULL
       OR (occurred_at, id) < (sqlc.narg(beyond_at)::timestamptz, sqlc.narg(beyond_id)::bigint))
ORDER BY occurred_at DESC, id DESC
LIMIT @max_items;

-- name: AuditEntryListOldest :many
SELECT id, occurred_at, actor, action, subject, reason, via, address, request_id
FROM audit_entries
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(actor)::text IS NULL OR actor = sqlc.narg(actor)::text)
  AND (sqlc.narg(action)::text IS NULL OR action = sqlc.narg(action)::text)
  AND (sqlc.narg(subject)::text IS NULL OR subject = sqlc.narg(subject)::text)
  AND (sqlc.narg(occurred_from)::timestamptz IS NULL OR occurred_at >= sqlc.narg(occurred_from)::timestamptz)
  AND (sqlc.narg(occurred_to)::timestamptz IS NULL OR occurred_at < sqlc.narg(occurred_to)::timestamptz)
  AND (sqlc.narg(beyond_at)::timestamptz IS NULL
       OR (occurred_at, id) > (sqlc.narg(beyond_at)::timestamptz, sqlc.narg(beyond_id)::bigint))
ORDER BY occurred_at, id
LIMIT @max_items;
