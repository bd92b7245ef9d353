-- name: DivergenceUpsert :many
-- One open row for each kind and subject: a difference that was found before is seen again, and one that a person has
-- accepted stays accepted. No kind and subject may stand in a call twice.
INSERT INTO divergences (tenant_id, kind, owner, subject, source, order_id, key, ours, theirs, action)
SELECT @tenant_id, n.kind, n.owner, n.subject, n.source, n.order_id, n.key, n.ours, n.theirs, n.action
FROM (SELECT unnest(@kinds::text[])     AS kind,
             unnest(@owners::text[])    AS owner,
             unnest(@subjects::text[])  AS subject,
             unnest(@sources::text[])   AS source,
             unnest(@order_ids::text[]) AS order_id,
             unnest(@keys::text[])      AS key,
             unnest(@ours::text[])      AS ours,
             unnest(@theirs::text[])    AS theirs,
             unnest(@actions::text[])   AS action) AS n
ORDER BY n.kind COLLATE "C", n.subject COLLATE "C"
ON CONFLICT (tenant_id, kind, subject) WHERE resolved_at IS NULL DO UPDATE
SET last_seen_at = now(), owner = excluded.owner, ours = excluded.ours, theirs = excluded.theirs, action = excluded.action
RETURNING id, (first_seen_at = now())::boolean AS is_new;

-- name: DivergenceInsertResolved :exec
-- A difference that was put right when it was found. Where it stood open from before, that row is resolved.
WITH stood AS (
    UPDATE divergences
    SET last_seen_at = now(), resolved_at = now(), ours = @ours, theirs = @theirs, action = @action
    WHERE tenant_id = @tenant_id AND kind = @kind AND subject = @subject AND resolved_at IS NULL
    RETURNING id
)
INSERT INTO divergences (tenant_id, kind, owner, subject, source, order_id, key, ours, theirs, action, resolved_at)
SELECT @tenant_id, @kind, @owner, @subject, @source, @order_id, @key, @ours, @theirs, @action, now()
WHERE NOT EXISTS (SELECT FROM stood);

-- name: DivergenceResolve :execrows
UPDATE divergences
SET resolved_at = now(), action = @action
WHERE tenant_id = @tenant_id AND id = ANY (@ids::bigint[]) AND resolved_at IS NULL AND last_seen_at < @seen_before;

-- name: DivergenceListUnseen :many
-- Open, and not seen since a run began: it has to look at each of them.
SELECT id, kind, subject, source, order_id, key
FROM divergences
WHERE tenant_id = @tenant_id AND resolved_at IS NULL AND last_seen_at < @seen_before AND id > @after_id
  AND kind = ANY (@kinds::text[])
ORDER BY id
LIMIT @max_items;

-- name: DivergenceListPage :many
-- Newest first, from behind the cursor (first_seen_at, id) on.
SELECT id, kind, owner, subject, source, order_id, key, ours, theirs, action, first_seen_at, last_seen_at, resolved_at,
       (extract(epoch FROM coalesce(resolved_at, now()) - first_seen_at))::bigint AS age_seconds
FROM divergences
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(kind)::text IS NULL OR kind = sqlc.narg(kind)::text)
  AND (sqlc.narg(resolved)::boolean IS NULL OR (resolved_at IS NOT NULL) = sqlc.narg(resolved)::boolean)
  AND (sqlc.narg(after_first_seen_at)::timestamptz IS NULL
       OR (first_seen_at, id) < (sqlc.narg(after_first_seen_at)::timestamptz, sqlc.narg(after_id)::bigint))
ORDER BY first_seen_at DESC, id DESC
LIMIT @max_items;

-- name: DivergenceCountOpen :many
-- What a person has accepted is not open.
SELECT kind, count(*) AS divergences
FROM divergences
WHERE resolved_at IS NULL AND accepted_at IS NULL
GROUP BY kind;

-- name: DivergenceSearch :many
-- Newest first, from behind the position (beyond_at, beyond_id) on.
SELECT d.id, d.kind, d.owner, d.subject, d.source, d.order_id, d.key, d.ours, d.theirs, d.action, d.first_seen_at, d.last_seen_at,
       d.resolved_at, d.accepted_at, d.decided_by, d.decision_reason, i.id AS invoice_id, i.number AS invoice_number
FROM divergences AS d
LEFT JOIN invoices AS i ON i.operation_key = d.key AND i.tenant_id = d.tenant_id
WHERE d.tenant_id = @tenant_id
  AND (sqlc.narg(id)::bigint IS NULL OR d.id = sqlc.narg(id)::bigint)
  AND (sqlc.narg(kind)::text IS NULL OR d.kind = sqlc.narg(kind)::text)
  AND (sqlc.narg(state)::text IS NULL
       OR CASE WHEN d.resolved_at IS NOT NULL THEN 'resolved' WHEN d.accepted_at IS NOT NULL THEN 'accepted' ELSE 'open' END
          = sqlc.narg(state)::text)
  AND (sqlc.narg(beyond_at)::timestamptz IS NULL
       OR (d.first_seen_at, d.id) < (sqlc.narg(beyond_at)::timestamptz, sqlc.narg(beyond_id)::bigint))
ORDER BY d.first_seen_at DESC, d.id DESC
LIMIT @max_items;

-- name: DivergenceSearchNewer :many
-- Oldest first, from behind the position (beyond_at, beyond_id) on: the way back through the same list.
SELECT d.id, d.kind, d.owner, d.subject, d.source, d.order_id, d.key, d.ours, d.theirs, d.action, d.first_seen_at, d.last_seen_at,
       d.resolved_at, d.accepted_at, d.decided_by, d.decision_reason, i.id AS invoice_id, i.number AS invoice_number
FROM divergences AS d
LEFT JOIN invoices AS i ON i.operation_key = d.key AND i.tenant_id = d.tenant_id
WHERE d.tenant_id = @tenant_id
  AND (sqlc.narg(kind)::text IS NULL OR d.kind = sqlc.narg(kind)::text)
  AND (sqlc.narg(state)::text IS NULL
       OR CASE WHEN d.resolved_at IS NOT NULL THEN 'resolved' WHEN d.accepted_at IS NOT NULL THEN 'accepted' ELSE 'open' END
          = sqlc.narg(state)::text)
  AND (d.first_seen_at, d.id) > (@beyond_at::timestamptz, @beyond_id::bigint)
ORDER BY d.first_seen_at, d.id
LIMIT @max_items;

-- name: DivergenceLock :one
-- For what a person does: until the end of the transaction no run sees or resolves it.
SELECT accepted_at, resolved_at
FROM divergences
WHERE tenant_id = @tenant_id AND id = @id
FOR NO KEY UPDATE;

-- name: DivergenceAccept :execrows
UPDATE divergences
SET accepted_at = now(), decided_by = @decided_by, decision_reason = @decision_reason
WHERE tenant_id = @tenant_id AND id = @id AND accepted_at IS NULL AND resolved_at IS NULL;

-- name: DivergenceClose :execrows
-- Found again, it opens anew: the unique index is about those that are not resolved.
UPDATE divergences
SET resolved_at = now(), decided_by = @decided_by, decision_reason = @decision_reason
WHERE tenant_id = @tenant_id AND id = @id AND resolved_at IS NULL;
