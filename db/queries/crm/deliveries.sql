-- name: DeliveryBegin :one
-- One statement, so one commit and one round trip: the next attempt is recorded before its request leaves, and an
-- attempt that never told its outcome is overtaken. No row: somebody else has its turn, or its source is paused. (An attempt
-- that was about to begin when the pause was committed counts as running.)
-- Only the clock of the database decides: now() for what is due (it is never later than the lock), clock_timestamp() for
-- the lease (the statement may have waited for the lock).
WITH begun AS (
    UPDATE operations
    SET status          = 'processing',
        attempt         = attempt + 1,
        lease_until     = clock_timestamp() + make_interval(secs => @lease_seconds::float8),
        next_attempt_at = NULL,
        first_sent_at   = coalesce(first_sent_at, now())
    WHERE operations.id = @id
      AND flagged_at IS NULL
      AND (status IN ('pending', 'unknown') AND next_attempt_at <= now()
           OR status = 'processing' AND lease_until <= now())
      AND NOT EXISTS (SELECT FROM source_pauses AS p WHERE p.tenant_id = operations.tenant_id AND p.source = operations.source)
    RETURNING operations.id, tenant_id, key, source, order_id, role, sequence, request, request_hash, attempt, waits, reason
), overtaken AS (
    UPDATE attempts
    SET outcome = 'overtaken', finished_at = now()
    FROM begun
    WHERE attempts.operation_id = begun.id AND attempts.outcome = 'sent'
), recorded AS (
    INSERT INTO attempts (operation_id, number, worker)
    SELECT begun.id, begun.attempt, @worker::text FROM begun
)
SELECT begun.id, begun.tenant_id, begun.key, begun.source, begun.order_id, begun.role, begun.sequence,
       begun.request, begun.request_hash, begun.attempt, begun.waits, begun.reason,
       EXISTS (SELECT FROM attempts AS earlier
               WHERE earlier.operation_id = begun.id AND earlier.outcome IN ('sent', 'lost', 'overtaken')) AS may_have_arrived
FROM begun;

-- name: DeliveryGet :one
-- Why somebody else has its turn, and until when.
SELECT tenant_id, key, status, (flagged_at IS NOT NULL)::boolean AS flagged,
       EXISTS (SELECT FROM source_pauses AS p WHERE p.tenant_id = operations.tenant_id AND p.source = operations.source) AS paused,
       coalesce(next_attempt_at, lease_until, now())::timestamptz AS due_at
FROM operations
WHERE id = @id;

-- name: DeliveryEnd :one
-- The outcome of attempt n, and what it makes of the operation. No row: the attempt was overtaken and writes nothing.
-- flagged_at is set once: an operation that has it is never begun again.
WITH ended AS (
    UPDATE operations
    SET status          = @status::text,
        lease_until     = NULL,
        waits           = waits + @waits::int,
        next_attempt_at = CASE WHEN @status::text IN ('pending', 'unknown')
                               THEN clock_timestamp() + make_interval(secs => @pause_seconds::float8) END,
        finished_at     = CASE WHEN @status::text IN ('succeeded', 'failed') THEN now() END,
        flagged_at      = CASE WHEN @status::text IN ('pending', 'unknown')
                                    AND (@attention::boolean
                                         OR first_sent_at <= now() - make_interval(secs => @total_seconds::float8))
                               THEN now() END,
        invoice_id      = sqlc.narg(invoice_id)::uuid,
        invoice_number  = sqlc.narg(invoice_number)::text,
        reason          = @reason::text,
        detail          = @detail::text
    WHERE operations.id = @id AND operations.attempt = @attempt AND operations.status = 'processing'
    RETURNING operations.id, operations.attempt, operations.next_attempt_at, operations.flagged_at
), told AS (
    UPDATE attempts
    SET outcome = @outcome::text, finished_at = now(), http_status = sqlc.narg(http_status)::int,
        problem_type = @problem_type::text, detail = @detail::text
    FROM ended
    WHERE attempts.operation_id = ended.id AND attempts.number = ended.attempt AND attempts.outcome = 'sent'
)
SELECT coalesce(next_attempt_at, now())::timestamptz AS due_at, (flagged_at IS NOT NULL)::boolean AS flagged FROM ended;

-- name: DeliveryListByHash :exec
-- For the list below, until the end of the transaction. Statistics lag behind a queue that fills within seconds; planned for
-- an empty one, the list is read by a nested loop over it, whose time grows with the square: 5 s at 5,000 jobs, minutes at 50,000.
SELECT set_config('enable_nestloop', 'off', true);

-- name: DeliveryListWithoutJob :many
-- Open, due for longer than the margin, not paused, and no job left that could deliver it. A running job counts only as long as
-- its client may be alive; a scheduled one only as long as it is not overdue itself.
SELECT o.id
FROM operations AS o
WHERE o.status IN ('pending', 'processing', 'unknown')
  AND o.flagged_at IS NULL
  AND coalesce(o.next_attempt_at, o.lease_until) < now() - make_interval(secs => @margin_seconds::float8)
  AND NOT EXISTS (SELECT FROM source_pauses AS p WHERE p.tenant_id = o.tenant_id AND p.source = o.source)
  AND NOT EXISTS (
      SELECT FROM river_job AS j
      WHERE j.kind = @job_kind
        AND j.args ->> 'operation_id' = o.id::text
        AND (j.state IN ('available', 'pending')
             OR j.state = 'running' AND j.attempted_at > now() - make_interval(secs => @job_timeout_seconds::float8)
             OR j.state IN ('scheduled', 'retryable')
                AND j.scheduled_at > now() - make_interval(secs => @margin_seconds::float8)))
ORDER BY coalesce(o.next_attempt_at, o.lease_until)
LIMIT @max_items;

-- name: DeliveryAges :one
-- For the metrics: how long the oldest operation has been open, and the oldest job running. 0 if there is none.
SELECT coalesce((SELECT extract(epoch FROM now() - min(created_at))
                 FROM operations
                 WHERE status IN ('pending', 'processing', 'unknown') AND flagged_at IS NULL), 0)::float8 AS oldest_open_seconds,
       coalesce((SELECT extract(epoch FROM now() - min(attempted_at))
                 FROM river_job
                 WHERE state = 'running'), 0)::float8 AS oldest_running_job_seconds;
