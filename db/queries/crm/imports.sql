-- name: ImportInsert :exec
INSERT INTO imports (id, tenant_id, file_name, format, keep_good, actor)
VALUES (@id, @tenant_id, @file_name, @format, @keep_good, @actor);

-- name: ImportFinish :execrows
UPDATE imports
SET finished_at = now(), sha256 = @sha256, size = @size, stored = @stored::boolean, row_count = @row_count,
    blank_rows = @blank_rows, orders = @orders, outcomes = @outcomes::text[], counts = @counts::bigint[],
    refusal = @refusal, failure = @failure, refused_lines = @refused_lines::bigint[],
    refused_orders = @refused_orders::text[], refused_outcomes = @refused_outcomes::text[],
    refused_reasons = @refused_reasons::text[]
WHERE tenant_id = @tenant_id AND id = @id AND finished_at IS NULL;

-- name: ImportGet :one
SELECT id, file_name, format, keep_good, actor, started_at, finished_at, sha256, size, stored, row_count, blank_rows, orders,
       outcomes, counts, refusal, failure, refused_lines, refused_orders, refused_outcomes, refused_reasons, minimised_at
FROM imports
WHERE tenant_id = @tenant_id AND id = @id;

-- name: ImportListNewest :many
SELECT id, file_name, format, keep_good, actor, started_at, finished_at, sha256, size, stored, row_count, blank_rows, orders,
       outcomes, counts, refusal, failure, minimised_at
FROM imports
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(beyond_at)::timestamptz IS NULL
       OR (started_at, id) < (sqlc.narg(beyond_at)::timestamptz, sqlc.narg(beyond_id)::uuid))
ORDER BY started_at DESC, id DESC
LIMIT @max_items;

-- name: ImportListOldest :many
SELECT id, file_name, format, keep_good, actor, started_at, finished_at, sha256, size, stored, row_count, blank_rows, orders,
       outcomes, counts, refusal, failure, minimised_at
FROM imports
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(beyond_at)::timestamptz IS NULL
       OR (started_at, id) > (sqlc.narg(beyond_at)::timestamptz, sqlc.narg(beyond_id)::uuid))
ORDER BY started_at, id
LIMIT @max_items;

-- name: ImportListToMinimise :many
-- For the retention: what rows said is forgotten, that the file was imported is not.
SELECT id, started_at,
       extract(epoch FROM now() - started_at - make_interval(secs => @keep_seconds::float8))::float8 AS overdue_seconds
FROM imports
WHERE minimised_at IS NULL AND started_at <= now() - make_interval(secs => @keep_seconds::float8)
  AND (started_at, id) > (@after_at::timestamptz, @after_id::uuid)
ORDER BY started_at, id
LIMIT @max_items;

-- name: ImportMinimise :execrows
UPDATE imports
SET refused_lines = '{}', refused_orders = '{}', refused_outcomes = '{}', refused_reasons = '{}', refusal = '', failure = '',
    minimised_at = now()
WHERE id IN (SELECT x.id FROM imports AS x
             WHERE x.id = ANY (@ids::uuid[]) AND x.minimised_at IS NULL
               AND x.started_at <= now() - make_interval(secs => @keep_seconds::float8)
             FOR NO KEY UPDATE SKIP LOCKED);
