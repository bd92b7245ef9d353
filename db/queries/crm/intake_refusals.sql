-- name: IntakeRefusalInsert :one
-- Counts every refusal, and keeps the first @most of an hour. One statement, so one transaction. It says whether it was kept.
WITH counted AS (
    INSERT INTO intake_refusal_hours AS h (tenant_id, hour, refused)
    VALUES (@tenant_id, date_trunc('hour', now(), 'UTC'), 1)
    ON CONFLICT ON CONSTRAINT intake_refusal_hours_pkey DO UPDATE SET refused = h.refused + 1
    RETURNING h.refused
), kept AS (
    INSERT INTO intake_refusals (tenant_id, channel, source, order_id, problem, detail, pointers, reasons, body, body_size,
                                 request_id, actor, import_id)
    SELECT @tenant_id, @channel, @source, @order_id, @problem, @detail, @pointers::text[], @reasons::text[], @body::bytea,
           @body_size, @request_id, @actor, sqlc.narg(import_id)::uuid
    FROM counted
    WHERE counted.refused <= @most::bigint
    RETURNING id
)
SELECT EXISTS (SELECT FROM kept)::boolean AS kept;

-- name: IntakeRefusalListNewest :many
SELECT id, received_at, channel, source, order_id, problem, detail, pointers, reasons, body_size, request_id, actor, import_id
FROM intake_refusals
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(problem)::text IS NULL OR problem = sqlc.narg(problem)::text)
  AND (sqlc.narg(channel)::text IS NULL OR channel = sqlc.narg(channel)::text)
  AND (sqlc.narg(source)::text IS NULL OR source = sqlc.narg(source)::text)
  AND (sqlc.narg(order_id)::text IS NULL OR order_id = sqlc.narg(order_id)::text)
  AND (sqlc.narg(received_from)::timestamptz IS NULL OR received_at >= sqlc.narg(received_from)::timestamptz)
  AND (sqlc.narg(received_to)::timestamptz IS NULL OR received_at < sqlc.narg(received_to)::timestamptz)
  AND (sqlc.narg(beyond_at)::timestamptz IS NULL
       OR (received_at, id) < (sqlc.narg(beyond_at)::timestamptz, sqlc.narg(beyond_id)::bigint))
ORDER BY received_at DESC, id DESC
LIMIT @max_items;

-- name: IntakeRefusalListOldest :many
SELECT id, received_at, channel, source, order_id, problem, detail, pointers, reasons, body_size, request_id, actor, import_id
FROM intake_refusals
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(problem)::text IS NULL OR problem = sqlc.narg(problem)::text)
  AND (sqlc.narg(channel)::text IS NULL OR channel = sqlc.narg(channel)::text)
  AND (sqlc.narg(source)::text IS NULL OR source = sqlc.narg(source)::text)
  AND (sqlc.narg(order_id)::text IS NULL OR order_id = sqlc.narg(order_id)::text)
  AND (sqlc.narg(received_from)::timestamptz IS NULL OR received_at >= sqlc.narg(received_from)::timestamptz)
  AND (sqlc.narg(received_to)::timestamptz IS NULL OR received_at < sqlc.narg(received_to)::timestamptz)
  AND (sqlc.narg(beyond_at)::timestamptz IS NULL
       OR (received_at, id) > (sqlc.narg(beyond_at)::timestamptz, sqlc.narg(beyond_id)::bigint))
ORDER BY received_at, id
LIMIT @max_items;

-- name: IntakeRefusalGet :one
SELECT id, received_at, channel, source, order_id, problem, detail, pointers, reasons, body, body_size, request_id, actor, import_id
FROM intake_refusals
WHERE tenant_id = @tenant_id AND id = @id;

-- name: IntakeRefusalListFullHours :many
-- The last hours in which more were refused than are kept.
SELECT hour, refused
FROM intake_refusal_hours
WHERE tenant_id = @tenant_id AND hour >= now() - interval '24 hours' AND refused > @most::bigint
ORDER BY hour DESC;

-- name: IntakeRefusalListExpired :many
-- For the retention.
SELECT id, received_at,
       extract(epoch FROM now() - received_at - make_interval(secs => @keep_seconds::float8))::float8 AS overdue_seconds
FROM intake_refusals
WHERE received_at <= now() - make_interval(secs => @keep_seconds::float8)
  AND (received_at, id) > (@after_at::timestamptz, @after_id::bigint)
ORDER BY received_at, id
LIMIT @max_items;

-- name: IntakeRefusalDelete :execrows
-- With the counts of hours that are as old.
WITH hours AS (
    DELETE FROM intake_refusal_hours WHERE hour <= now() - make_interval(secs => @keep_seconds::float8)
)
DELETE FROM intake_refusals
WHERE id IN (SELECT x.id FROM intake_refusals AS x
             WHERE x.id = ANY (@ids::bigint[]) AND x.received_at <= now() - make_interval(secs => @keep_seconds::float8)
             FOR UPDATE SKIP LOCKED);
