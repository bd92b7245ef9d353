-- What has been kept long enough. The lists read without locks, from behind a position on; the statements that change
-- something look again at what they are given, and leave what somebody has locked. Nothing that belongs to an operation
-- that is unfinished, unknown or with an operator is in any list. OFFSET 0 makes of each EXISTS one index look-up a row; as
-- a join, a generic plan reads the other table whole.

-- name: RetentionListOperations :many
SELECT id, finished_at::timestamptz AS finished_at,
       extract(epoch FROM now() - finished_at - make_interval(secs => @keep_seconds::float8))::float8 AS overdue_seconds
FROM operations
WHERE minimised_at IS NULL AND finished_at IS NOT NULL AND flagged_at IS NULL
  AND finished_at <= now() - make_interval(secs => @keep_seconds::float8)
  AND (finished_at, id) > (@after_at::timestamptz, @after_id::uuid)
ORDER BY finished_at, id
LIMIT @max_items;

-- name: RetentionMinimiseOperations :execrows
-- The detail goes as well: it holds what the ERP said, and that may quote the request. The reason stays.
UPDATE operations
SET request = without_personal_data(request), detail = '', minimised_at = now()
WHERE id IN (SELECT x.id FROM operations AS x
             WHERE x.id = ANY (@ids::uuid[]) AND x.minimised_at IS NULL AND x.flagged_at IS NULL
               AND x.status IN ('succeeded', 'failed', 'cancelled')
               AND x.finished_at <= now() - make_interval(secs => @keep_seconds::float8)
             FOR NO KEY UPDATE SKIP LOCKED);

-- name: RetentionListOrders :many
-- An order is as old as the newest thing about it: its last version, or the end of the last of its live operations.
-- (A cancelled one ended with a version; a superseded one has a live revision.)
SELECT o.tenant_id, o.source, o.order_id, o.updated_at,
       extract(epoch FROM now() - o.updated_at - make_interval(secs => @keep_seconds::float8))::float8 AS overdue_seconds
FROM orders AS o
WHERE o.minimised_at IS NULL AND o.updated_at <= now() - make_interval(secs => @keep_seconds::float8)
  AND (o.updated_at, o.tenant_id, o.source, o.order_id)
      > (@after_at::timestamptz, @after_tenant_id::text, @after_source::text, @after_order_id::text)
  AND NOT EXISTS (SELECT FROM operations AS p
                  WHERE p.tenant_id = o.tenant_id AND p.source = o.source AND p.order_id = o.order_id
                    AND p.superseded_at IS NULL AND p.status <> 'cancelled'
                    AND (p.finished_at IS NULL OR p.flagged_at IS NOT NULL
                         OR p.finished_at > now() - make_interval(secs => @keep_seconds::float8))
                  OFFSET 0)
ORDER BY o.updated_at, o.tenant_id, o.source, o.order_id
LIMIT @max_items;

-- name: RetentionMinimiseOrders :execrows
-- The content's hash stays: by it a repeat is still told from a change.
UPDATE orders AS o
SET content = without_personal_data(o.content), minimised_at = now()
FROM (SELECT x.tenant_id, x.source, x.order_id
      FROM (SELECT unnest(@tenant_ids::text[]) AS tenant_id,
                   unnest(@sources::text[])    AS source,
                   unnest(@order_ids::text[])  AS order_id) AS w
      JOIN orders AS x ON x.tenant_id = w.tenant_id AND x.source = w.source AND x.order_id = w.order_id
      WHERE x.minimised_at IS NULL AND x.updated_at <= now() - make_interval(secs => @keep_seconds::float8)
        AND NOT EXISTS (SELECT FROM operations AS p
                        WHERE p.tenant_id = x.tenant_id AND p.source = x.source AND p.order_id = x.order_id
                          AND p.superseded_at IS NULL AND p.status <> 'cancelled'
                          AND (p.finished_at IS NULL OR p.flagged_at IS NOT NULL
                               OR p.finished_at > now() - make_interval(secs => @keep_seconds::float8))
                        OFFSET 0)
      FOR NO KEY UPDATE OF x SKIP LOCKED) AS due
WHERE o.tenant_id = due.tenant_id AND o.source = due.source AND o.order_id = due.order_id;

-- name: RetentionListAttempts :many
-- Counted from the end of the operation: until then each may be the one that had the effect.
SELECT a.operation_id, a.number, a.started_at,
       extract(epoch FROM now() - p.finished_at - make_interval(secs => @keep_seconds::float8))::float8 AS overdue_seconds
FROM attempts AS a
JOIN operations AS p ON p.id = a.operation_id
WHERE a.started_at <= now() - make_interval(secs => @keep_seconds::float8)
  AND (a.started_at, a.operation_id, a.number) > (@after_at::timestamptz, @after_id::uuid, @after_number::integer)
  AND p.finished_at <= now() - make_interval(secs => @keep_seconds::float8) AND p.flagged_at IS NULL
ORDER BY a.started_at, a.operation_id, a.number
LIMIT @max_items;

-- name: RetentionDeleteAttempts :execrows
DELETE FROM attempts AS a
USING (SELECT x.operation_id, x.number
       FROM (SELECT unnest(@operation_ids::uuid[]) AS operation_id, unnest(@numbers::integer[]) AS number) AS w
       JOIN attempts AS x ON x.operation_id = w.operation_id AND x.number = w.number
       JOIN operations AS p ON p.id = x.operation_id
       WHERE p.finished_at <= now() - make_interval(secs => @keep_seconds::float8) AND p.flagged_at IS NULL
       FOR UPDATE OF x SKIP LOCKED) AS due
WHERE a.operation_id = due.operation_id AND a.number = due.number;

-- name: RetentionListInboxMessages :many
SELECT m.id, m.received_at,
       extract(epoch FROM now() - m.received_at - make_interval(secs => @keep_seconds::float8))::float8 AS overdue_seconds
FROM inbox_messages AS m
WHERE m.received_at <= now() - make_interval(secs => @keep_seconds::float8)
  AND (m.received_at, m.id) > (@after_at::timestamptz, @after_id::bigint)
  AND NOT EXISTS (SELECT FROM operations AS p
                  WHERE p.tenant_id = m.tenant_id AND p.source = m.source AND p.order_id = m.order_id
                    AND p.superseded_at IS NULL AND p.status <> 'cancelled'
                    AND (p.finished_at IS NULL OR p.flagged_at IS NOT NULL)
                  OFFSET 0)
ORDER BY m.received_at, m.id
LIMIT @max_items;

-- name: RetentionDeleteInboxMessages :execrows
DELETE FROM inbox_messages
WHERE id IN (SELECT m.id FROM inbox_messages AS m
             WHERE m.id = ANY (@ids::bigint[]) AND m.received_at <= now() - make_interval(secs => @keep_seconds::float8)
               AND NOT EXISTS (SELECT FROM operations AS p
                               WHERE p.tenant_id = m.tenant_id AND p.source = m.source AND p.order_id = m.order_id
                                 AND p.superseded_at IS NULL AND p.status <> 'cancelled'
                                 AND (p.finished_at IS NULL OR p.flagged_at IS NOT NULL)
                               OFFSET 0)
             FOR UPDATE OF m SKIP LOCKED);

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

-- name: RetentionListReplayItems :many
-- Of runs that have come to their end, and of operations that have: what was done with one that is open belongs to its story.
-- By the runs, the longest ended first; they are few.
SELECT r.finished_at::timestamptz AS finished_at, i.run_id, i.position,
       extract(epoch FROM now() - r.finished_at - make_interval(secs => @keep_seconds::float8))::float8 AS overdue_seconds
FROM replay_runs AS r
JOIN replay_items AS i ON i.run_id = r.id
JOIN operations AS p ON p.id = i.operation_id
WHERE r.finished_at IS NOT NULL AND r.finished_at <= now() - make_interval(secs => @keep_seconds::float8)
  AND r.finished_at >= @after_at::timestamptz
  AND (r.finished_at, i.run_id, i.position) > (@after_at::timestamptz, @after_run_id::uuid, @after_position::integer)
  AND p.finished_at IS NOT NULL AND p.flagged_at IS NULL
ORDER BY r.finished_at, i.run_id, i.position
LIMIT @max_items;

-- name: RetentionDeleteReplayItems :execrows
DELETE FROM replay_items AS i
USING (SELECT x.run_id, x.position
       FROM (SELECT unnest(@run_ids::uuid[]) AS run_id, unnest(@positions::integer[]) AS position) AS w
       JOIN replay_items AS x ON x.run_id = w.run_id AND x.position = w.position
       JOIN replay_runs AS r ON r.id = x.run_id
       JOIN operations AS p ON p.id = x.operation_id
       WHERE r.finished_at <= now() - make_interval(secs => @keep_seconds::float8)
         AND p.finished_at IS NOT NULL AND p.flagged_at IS NULL
       FOR UPDATE OF x SKIP LOCKED) AS due
WHERE i.run_id = due.run_id AND i.position = due.position;

-- name: RetentionListReplayRuns :many
-- Those of which no operation is left.
SELECT r.id, r.finished_at::timestamptz AS finished_at,
       extract(epoch FROM now() - r.finished_at - make_interval(secs => @keep_seconds::float8))::float8 AS overdue_seconds
FROM replay_runs AS r
WHERE r.finished_at IS NOT NULL AND r.finished_at <= now() - make_interval(secs => @keep_seconds::float8)
  AND (r.finished_at, r.id) > (@after_at::timestamptz, @after_id::uuid)
  AND NOT EXISTS (SELECT FROM replay_items AS i WHERE i.run_id = r.id OFFSET 0)
ORDER BY r.finished_at, r.id
LIMIT @max_items;

-- name: RetentionDeleteReplayRuns :execrows
DELETE FROM replay_runs
WHERE id IN (SELECT r.id FROM replay_runs AS r
             WHERE r.id = ANY (@ids::uuid[]) AND r.finished_at <= now() - make_interval(secs => @keep_seconds::float8)
               AND NOT EXISTS (SELECT FROM replay_items AS i WHERE i.run_id = r.id OFFSET 0)
             FOR UPDATE OF r SKIP LOCKED);

-- name: RetentionListResolutions :many
-- Only what is decided, of operations that have come to their end.
SELECT x.id, x.decided_at::timestamptz AS decided_at,
       extract(epoch FROM now() - x.decided_at - make_interval(secs => @keep_seconds::float8))::float8 AS overdue_seconds
FROM resolutions AS x
JOIN operations AS p ON p.id = x.operation_id
WHERE x.decided_at IS NOT NULL AND x.status <> 'open' AND x.decided_at <= now() - make_interval(secs => @keep_seconds::float8)
  AND (x.decided_at, x.id) > (@after_at::timestamptz, @after_id::uuid)
  AND p.finished_at IS NOT NULL AND p.flagged_at IS NULL
ORDER BY x.decided_at, x.id
LIMIT @max_items;

-- name: RetentionDeleteResolutions :execrows
DELETE FROM resolutions
WHERE id IN (SELECT x.id FROM resolutions AS x
             JOIN operations AS p ON p.id = x.operation_id
             WHERE x.id = ANY (@ids::uuid[]) AND x.status <> 'open' AND x.decided_at <= now() - make_interval(secs => @keep_seconds::float8)
               AND p.finished_at IS NOT NULL AND p.flagged_at IS NULL
             FOR UPDATE OF x SKIP LOCKED);
