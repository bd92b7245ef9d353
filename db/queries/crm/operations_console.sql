-- What the console lists. It is planned anew each time (ConsolePlan), so that a condition that is not asked for is not
-- there for the planner either, and the partial indexes are seen.

-- name: ConsolePlan :exec
-- Until the end of the transaction.
SELECT set_config('plan_cache_mode', 'force_custom_plan', true);

-- name: OperationSearchNewest :many
-- Newest first, from behind the position on.
SELECT id, key, kind, status, source, order_id, role, sequence, order_version, invoice_id, invoice_number, attempt, waits,
       reason, detail, changed_after_delivery_version, superseded_at, flagged_at, next_attempt_at, first_sent_at,
       finished_at, created_at
FROM operations
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(status)::text IS NULL OR status = sqlc.narg(status)::text)
  AND (NOT @attention::boolean OR flagged_at IS NOT NULL OR status = 'failed' AND superseded_at IS NULL
       OR changed_after_delivery_version IS NOT NULL)
  AND (NOT @due::boolean OR status IN ('pending', 'unknown') AND flagged_at IS NULL AND next_attempt_at <= now())
  AND (sqlc.narg(reason)::text IS NULL OR reason = sqlc.narg(reason)::text)
  AND (sqlc.narg(source)::text IS NULL OR source = sqlc.narg(source)::text)
  AND (sqlc.narg(role)::text IS NULL OR role = sqlc.narg(role)::text)
  AND (sqlc.narg(flagged)::boolean IS NULL OR (flagged_at IS NOT NULL) = sqlc.narg(flagged)::boolean)
  AND (sqlc.narg(ids)::uuid[] IS NULL OR id = ANY (sqlc.narg(ids)::uuid[]))
  AND (sqlc.narg(created_from)::timestamptz IS NULL OR created_at >= sqlc.narg(created_from)::timestamptz)
  AND (sqlc.narg(created_to)::timestamptz IS NULL OR created_at < sqlc.narg(created_to)::timestamptz)
  AND (sqlc.narg(older_than_seconds)::float8 IS NULL
       OR created_at < now() - make_interval(secs => sqlc.narg(older_than_seconds)::float8))
  AND (sqlc.narg(beyond_created_at)::timestamptz IS NULL
       OR (created_at, id) < (sqlc.narg(beyond_created_at)::timestamptz, sqlc.narg(beyond_id)::uuid))
ORDER BY created_at DESC, id DESC
LIMIT @max_items;

-- name: OperationSearchOldest :many
-- Oldest first, from behind the position on.
SELECT id, key, kind, status, source, order_id, role, sequence, order_version, invoice_id, invoice_number, attempt, waits,
       reason, detail, changed_after_delivery_version, superseded_at, flagged_at, next_attempt_at, first_sent_at,
       finished_at, created_at
FROM operations
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(status)::text IS NULL OR status = sqlc.narg(status)::text)
  AND (NOT @attention::boolean OR flagged_at IS NOT NULL OR status = 'failed' AND superseded_at IS NULL
       OR changed_after_delivery_version IS NOT NULL)
  AND (NOT @due::boolean OR status IN ('pending', 'unknown') AND flagged_at IS NULL AND next_attempt_at <= now())
  AND (sqlc.narg(reason)::text IS NULL OR reason = sqlc.narg(reason)::text)
  AND (sqlc.narg(source)::text IS NULL OR source = sqlc.narg(source)::text)
  AND (sqlc.narg(role)::text IS NULL OR role = sqlc.narg(role)::text)
  AND (sqlc.narg(flagged)::boolean IS NULL OR (flagged_at IS NOT NULL) = sqlc.narg(flagged)::boolean)
  AND (sqlc.narg(ids)::uuid[] IS NULL OR id = ANY (sqlc.narg(ids)::uuid[]))
  AND (sqlc.narg(created_from)::timestamptz IS NULL OR created_at >= sqlc.narg(created_from)::timestamptz)
  AND (sqlc.narg(created_to)::timestamptz IS NULL OR created_at < sqlc.narg(created_to)::timestamptz)
  AND (sqlc.narg(older_than_seconds)::float8 IS NULL
       OR created_at < now() - make_interval(secs => sqlc.narg(older_than_seconds)::float8))
  AND (sqlc.narg(beyond_created_at)::timestamptz IS NULL
       OR (created_at, id) > (sqlc.narg(beyond_created_at)::timestamptz, sqlc.narg(beyond_id)::uuid))
ORDER BY created_at, id
LIMIT @max_items;

-- name: OperationFind :many
-- By key, or by the beginning of their order's number, whatever its source: the operations of the first orders that match.
WITH found AS (
    SELECT o.source, o.order_id
    FROM own_orders AS o
    WHERE o.tenant_id = @tenant_id AND o.order_id LIKE @order_pattern
    ORDER BY o.order_id, o.source
    LIMIT @max_orders
)
SELECT p.id, p.key, p.source, p.order_id
FROM operations AS p
WHERE p.tenant_id = @tenant_id AND p.key = @key
UNION
SELECT p.id, p.key, p.source, p.order_id
FROM found AS f
CROSS JOIN LATERAL (
    SELECT live.id, live.key, live.source, live.order_id
    FROM operations AS live
    WHERE live.tenant_id = @tenant_id AND live.source = f.source AND live.order_id = f.order_id
      AND live.superseded_at IS NULL AND live.status <> 'cancelled'
    UNION ALL
    SELECT ended.id, ended.key, ended.source, ended.order_id
    FROM operations AS ended
    WHERE ended.tenant_id = @tenant_id AND ended.source = f.source AND ended.order_id = f.order_id
      AND (ended.superseded_at IS NOT NULL OR ended.status = 'cancelled')
    OFFSET 0 -- one look-up an order in each index, not a join that reads all
) AS p;

-- name: OperationGetDetail :one
-- What only the page of one operation shows.
SELECT p.id, p.source, p.order_id, p.request, p.request_hash, p.minimised_at, p.lease_until, coalesce(former.key, '')::text AS supersedes_key,
       coalesce(later.key, '')::text AS superseded_by_key
FROM operations AS p
LEFT JOIN operations AS former ON former.id = p.supersedes_id
LEFT JOIN operations AS later ON later.supersedes_id = p.id
WHERE p.tenant_id = @tenant_id AND p.key = @key;

-- name: OperationListSources :many
-- For the filter: the sources there are, one index look-up each, however many orders they have.
WITH RECURSIVE s (source) AS (
    (SELECT o.source FROM orders AS o WHERE o.tenant_id = @tenant_id ORDER BY o.source LIMIT 1)
    UNION ALL
    SELECT (SELECT o.source FROM orders AS o WHERE o.tenant_id = @tenant_id AND o.source > s.source ORDER BY o.source LIMIT 1)
    FROM s
    WHERE s.source IS NOT NULL
)
SELECT source::text AS source FROM s WHERE source IS NOT NULL LIMIT @max_items;

-- name: InboxMessageListOfOrder :many
-- Every message that brought the order, newest first.
SELECT id, version, channel, coalesce(message_id, '')::text AS message_id, outcome, detail, received_at
FROM inbox_messages
WHERE tenant_id = @tenant_id AND source = @source AND order_id = @order_id
ORDER BY id DESC
LIMIT @max_items;
