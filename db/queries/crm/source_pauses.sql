-- name: SourcePauseInsert :one
-- No row: it is paused already.
INSERT INTO source_pauses (tenant_id, source, paused_by, reason)
VALUES (@tenant_id, @source, @paused_by, @reason)
ON CONFLICT ON CONSTRAINT source_pauses_pkey DO NOTHING
RETURNING paused_at;

-- name: SourcePauseDelete :execrows
DELETE FROM source_pauses WHERE tenant_id = @tenant_id AND source = @source;

-- name: SourcePauseGet :one
SELECT paused_at, paused_by, reason
FROM source_pauses
WHERE tenant_id = @tenant_id AND source = @source;

-- name: SourcePauseListDue :many
-- What a resumed source's pause has held back: open, not with an operator, and due, or due so soon that its job may have
-- ended during the pause.
SELECT id
FROM operations
WHERE tenant_id = @tenant_id AND source = @source AND flagged_at IS NULL
  AND status IN ('pending', 'processing', 'unknown')
  AND coalesce(next_attempt_at, lease_until) <= now() + interval '1 minute'
ORDER BY coalesce(next_attempt_at, lease_until), id
LIMIT @max_items;

-- name: SourceList :many
-- Every source that the tenant has orders from, or has paused. Sources are few and orders many: orders_pkey is skipped
-- through from one source to the next.
WITH RECURSIVE named (source) AS (
    (SELECT o.source FROM orders AS o WHERE o.tenant_id = @tenant_id ORDER BY o.source LIMIT 1)
    UNION ALL
    SELECT (SELECT o.source FROM orders AS o WHERE o.tenant_id = @tenant_id AND o.source > named.source ORDER BY o.source LIMIT 1)
    FROM named
    WHERE named.source IS NOT NULL
), open AS (
    SELECT p.source,
           count(*) FILTER (WHERE p.status = 'pending')        AS pending,
           count(*) FILTER (WHERE p.status = 'processing')     AS processing,
           count(*) FILTER (WHERE p.status = 'unknown')        AS unknown,
           count(*) FILTER (WHERE p.flagged_at IS NOT NULL)    AS flagged
    FROM operations AS p
    WHERE p.tenant_id = @tenant_id AND p.status IN ('pending', 'processing', 'unknown')
    GROUP BY p.source
), every AS (
    SELECT named.source FROM named WHERE named.source IS NOT NULL
    UNION
    SELECT q.source FROM source_pauses AS q WHERE q.tenant_id = @tenant_id
)
SELECT every.source::text AS source, pause.paused_at, pause.paused_by, pause.reason,
       coalesce(open.pending, 0)::bigint AS pending, coalesce(open.processing, 0)::bigint AS processing,
       coalesce(open.unknown, 0)::bigint AS unknown, coalesce(open.flagged, 0)::bigint AS flagged
FROM every
LEFT JOIN source_pauses AS pause ON pause.tenant_id = @tenant_id AND pause.source = every.source
LEFT JOIN open ON open.source = every.source
ORDER BY every.source;
