-- name: KeyConflictInsert :exec
INSERT INTO key_conflicts (tenant_id, operation, key, caller, differences)
VALUES (@tenant_id, @operation, @key, @caller, @differences);

-- name: KeyConflictList :many
-- Newest first, from behind the id on, each with the invoice that has the key.
SELECT k.id, k.occurred_at, k.operation, k.key, k.caller, k.differences, coalesce(t.label, '') AS caller_label,
       i.id AS invoice_id, i.number AS invoice_number
FROM key_conflicts AS k
LEFT JOIN tokens AS t ON t.id = k.caller AND t.tenant_id = k.tenant_id
LEFT JOIN invoices AS i ON i.operation_key = k.key AND i.tenant_id = k.tenant_id
WHERE k.tenant_id = @tenant_id
  AND (sqlc.narg(key)::text IS NULL OR k.key = sqlc.narg(key)::text)
  AND (sqlc.narg(before_id)::bigint IS NULL OR k.id < sqlc.narg(before_id)::bigint)
ORDER BY k.id DESC
LIMIT @max_items;

-- name: KeyConflictListNewer :many
-- Oldest first, from behind the id on: the way back through the same list, each with the invoice that has the key.
SELECT k.id, k.occurred_at, k.operation, k.key, k.caller, k.differences, coalesce(t.label, '') AS caller_label,
       i.id AS invoice_id, i.number AS invoice_number
FROM key_conflicts AS k
LEFT JOIN tokens AS t ON t.id = k.caller AND t.tenant_id = k.tenant_id
LEFT JOIN invoices AS i ON i.operation_key = k.key AND i.tenant_id = k.tenant_id
WHERE k.tenant_id = @tenant_id
  AND (sqlc.narg(key)::text IS NULL OR k.key = sqlc.narg(key)::text)
  AND k.id > @after_id
ORDER BY k.id
LIMIT @max_items;
