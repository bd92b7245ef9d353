-- What has been kept long enough. The lists read without locks, from behind a position on; the DELETEs look again at
-- what they are given, and leave what somebody has locked. OFFSET 0 makes of each EXISTS one index look-up a row; as a join, a
-- generic plan reads the other table whole.

-- name: RetentionListReservations :many
-- Expired, and the effect is complete: an invoice that is not yet known for sure at each of its targets keeps its
-- reservation, as does one whose registration waits for an operator.
SELECT r.tenant_id, r.operation, r.key, r.expires_at, r.resource_id::uuid AS resource_id,
       extract(epoch FROM now() - r.expires_at)::float8 AS overdue_seconds
FROM idempotency_records AS r
WHERE r.status = 'succeeded' AND r.expires_at <= now()
  AND (r.expires_at, r.resource_id) > (@after_at::timestamptz, @after_id::uuid)
  AND NOT EXISTS (SELECT FROM registrations AS g
                  WHERE g.invoice_id = r.resource_id
                    AND (g.status IN ('pending', 'processing', 'unknown') OR g.flagged_at IS NOT NULL)
                  OFFSET 0)
ORDER BY r.expires_at, r.resource_id
LIMIT @max_items;

-- name: RetentionDeleteReservations :execrows
DELETE FROM idempotency_records AS r
USING (SELECT x.tenant_id, x.operation, x.key
       FROM (SELECT unnest(@tenant_ids::text[]) AS tenant_id,
                    unnest(@operations::text[]) AS operation,
                    unnest(@keys::text[])       AS key) AS w
       JOIN idempotency_records AS x ON x.tenant_id = w.tenant_id AND x.operation = w.operation AND x.key = w.key
       WHERE x.status = 'succeeded' AND x.expires_at <= now()
         AND NOT EXISTS (SELECT FROM registrations AS g
                         WHERE g.invoice_id = x.resource_id
                           AND (g.status IN ('pending', 'processing', 'unknown') OR g.flagged_at IS NOT NULL)
                         OFFSET 0)
       FOR UPDATE OF x SKIP LOCKED) AS due
WHERE r.tenant_id = due.tenant_id AND r.operation = due.operation AND r.key = due.key;

-- name: RetentionListKeyConflicts :many
SELECT id, occurred_at,
       extract(epoch FROM now() - occurred_at - make_interval(secs => @keep_seconds::float8))::float8 AS overdue_seconds
FROM key_conflicts
WHERE occurred_at <= now() - make_interval(secs => @keep_seconds::float8)
  AND (occurred_at, id) > (@after_at::timestamptz, @after_id::bigint)
ORDER BY occurred_at, id
LIMIT @max_items;

-- name: RetentionDeleteKeyConflicts :execrows
DELETE FROM key_conflicts
WHERE id IN (SELECT x.id FROM key_conflicts AS x
             WHERE x.id = ANY (@ids::bigint[]) AND x.occurred_at <= now() - make_interval(secs => @keep_seconds::float8)
             FOR UPDATE SKIP LOCKED);

-- name: RetentionListDivergences :many
-- Only what is resolved: an open divergence is somebody's work.
SELECT id, resolved_at::timestamptz AS resolved_at,
       extract(epoch FROM now() - resolved_at - make_interval(secs => @keep_seconds::float8))::float8 AS overdue_seconds
FROM divergences
WHERE resolved_at IS NOT NULL AND resolved_at <= now() - make_interval(secs => @keep_seconds::float8)
  AND (resolved_at, id) > (@after_at::timestamptz, @after_id::bigint)
ORDER BY resolved_at, id
LIMIT @max_items;

-- name: RetentionDeleteDivergences :execrows
DELETE FROM divergences
WHERE id IN (SELECT x.id FROM divergences AS x
             WHERE x.id = ANY (@ids::bigint[]) AND x.resolved_at <= now() - make_interval(secs => @keep_seconds::float8)
             FOR UPDATE SKIP LOCKED);

-- name: RetentionAudit :exec
-- A run by hand concerns every tenant, so each finds it in its own audit.
INSERT INTO audit_entries (tenant_id, actor, action, subject, reason)
SELECT id, @actor::text, 'retention.purge', @subject::text, @reason::text FROM tenants;
