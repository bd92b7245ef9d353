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

-- name: ReplayItemListPage :many
SELECT i.position, i.result, i.detail, i.done_at, o.key, o.status
FROM replay_items AS i
JOIN operations AS o ON o.id = i.operation_id
WHERE i.run_id = @run_id AND i.position > @after_position
  AND (sqlc.narg(result)::text IS NULL OR i.result = sqlc.narg(result)::text)
ORDER BY i.position
LIMIT @max_items;
