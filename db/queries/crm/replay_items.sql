-- name: ReplayItemListWaiting :many
-- The next of a run, under its lock.
SELECT i.position, o.id, o.key
FROM replay_items AS i
JOIN operations AS o ON o.id = i.operation_id
WHERE i.run_id = @run_id AND i.result = 'waiting'
ORDER BY i.position
LIMIT @max_items;

-- name: ReplayItemDone :execrows
UPDATE replay_items AS i
SET result = n.result, detail = n.detail, done_at = now()
FROM (SELECT unnest(@positions::integer[]) AS position,
             unnest(@results::text[])      AS result,
             unnest(@details::text[])      AS detail) AS n
WHERE i.run_id = @run_id AND i.position = n.position AND i.result = 'waiting';

-- name: ReplayItemListForward :many
-- In the order of their turns, from behind the position on.
SELECT i.position, i.result, i.detail, i.done_at, o.key, o.status
FROM replay_items AS i
JOIN operations AS o ON o.id = i.operation_id
WHERE i.run_id = @run_id
  AND (sqlc.narg(result)::text IS NULL OR i.result = sqlc.narg(result)::text)
  AND (sqlc.narg(beyond_position)::integer IS NULL OR i.position > sqlc.narg(beyond_position)::integer)
ORDER BY i.position
LIMIT @max_items;

-- name: ReplayItemListBack :many
SELECT i.position, i.result, i.detail, i.done_at, o.key, o.status
FROM replay_items AS i
JOIN operations AS o ON o.id = i.operation_id
WHERE i.run_id = @run_id
  AND (sqlc.narg(result)::text IS NULL OR i.result = sqlc.narg(result)::text)
  AND (sqlc.narg(beyond_position)::integer IS NULL OR i.position < sqlc.narg(beyond_position)::integer)
ORDER BY i.position DESC
LIMIT @max_items;
