-- For the console, planned anew each time (ConsolePlan).

-- name: DivergenceSearchNewest :many
SELECT id, kind, owner, subject, source, order_id, key, ours, theirs, action, first_seen_at, last_seen_at, resolved_at,
       accepted_at, decided_by, decision_reason,
       (extract(epoch FROM coalesce(resolved_at, now()) - first_seen_at))::bigint AS age_seconds
FROM divergences
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(kind)::text IS NULL OR kind = sqlc.narg(kind)::text)
  AND (sqlc.narg(resolved)::boolean IS NULL OR (resolved_at IS NOT NULL) = sqlc.narg(resolved)::boolean)
  AND (sqlc.narg(accepted)::boolean IS NULL OR (accepted_at IS NOT NULL) = sqlc.narg(accepted)::boolean)
  AND (sqlc.narg(key)::text IS NULL OR key = sqlc.narg(key)::text AND key <> '')
  AND (sqlc.narg(source)::text IS NULL OR source = sqlc.narg(source)::text)
  AND (sqlc.narg(order_id)::text IS NULL OR order_id = sqlc.narg(order_id)::text AND order_id <> '')
  AND (sqlc.narg(beyond_at)::timestamptz IS NULL
       OR (first_seen_at, id) < (sqlc.narg(beyond_at)::timestamptz, sqlc.narg(beyond_id)::bigint))
ORDER BY first_seen_at DESC, id DESC
LIMIT @max_items;

-- name: DivergenceSearchOldest :many
SELECT id, kind, owner, subject, source, order_id, key, ours, theirs, action, first_seen_at, last_seen_at, resolved_at,
       accepted_at, decided_by, decision_reason,
       (extract(epoch FROM coalesce(resolved_at, now()) - first_seen_at))::bigint AS age_seconds
FROM divergences
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(kind)::text IS NULL OR kind = sqlc.narg(kind)::text)
  AND (sqlc.narg(resolved)::boolean IS NULL OR (resolved_at IS NOT NULL) = sqlc.narg(resolved)::boolean)
  AND (sqlc.narg(accepted)::boolean IS NULL OR (accepted_at IS NOT NULL) = sqlc.narg(accepted)::boolean)
  AND (sqlc.narg(key)::text IS NULL OR key = sqlc.narg(key)::text AND key <> '')
  AND (sqlc.narg(source)::text IS NULL OR source = sqlc.narg(source)::text)
  AND (sqlc.narg(order_id)::text IS NULL OR order_id = sqlc.narg(order_id)::text AND order_id <> '')
  AND (sqlc.narg(beyond_at)::timestamptz IS NULL
       OR (first_seen_at, id) > (sqlc.narg(beyond_at)::timestamptz, sqlc.narg(beyond_id)::bigint))
ORDER BY first_seen_at, id
LIMIT @max_items;
