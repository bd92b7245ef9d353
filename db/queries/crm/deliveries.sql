-- name: DeliveryLock :exec
-- Waits for whoever has the operation. The statements below pass over what is locked.
SELECT FROM operations WHERE id = @id FOR NO KEY UPDATE;

-- name: DeliveryBegin :many
-- One statement, so one commit and one round trip for however many: of each operation the next attempt is recorded before its
-- request leaves, and an attempt that never told its outcome is overtaken. No row: somebody else has its turn or its row, or its
-- source is paused. (An attempt that was about to begin when the pause was committed counts as running.)
-- Only the clock of the database decides: now() for what is due (it is never later than the lock), clock_timestamp() for
-- the lease (the statement may have taken its time).
-- LIMIT, whose value no plan knows that is kept, has the planner reckon with one row: planned for ten on a table that is
-- still empty, each table would be read whole for as long as the plan is kept.
WITH wanted AS (
    SELECT unnest(@ids::uuid[]) AS id LIMIT @members
), due AS (
    SELECT o.id
    FROM wanted
    JOIN operations AS o ON o.id = wanted.id
    WHERE o.flagged_at IS NULL
      AND (o.status IN ('pending', 'unknown') AND o.next_attempt_at <= now()
           OR o.status = 'processing' AND o.lease_until <= now())
      AND NOT EXISTS (SELECT FROM source_pauses AS p WHERE p.tenant_id = o.tenant_id AND p.source = o.source)
    FOR NO KEY UPDATE OF o SKIP LOCKED
), begun AS (
    UPDATE operations
    SET status          = 'processing',
        attempt         = attempt + 1,
        lease_until     = clock_timestamp() + make_interval(secs => @lease_seconds::float8),
        next_attempt_at = NULL,
        first_sent_at   = coalesce(first_sent_at, now())
    FROM due
    WHERE operations.id = due.id
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

-- name: DeliveryEnd :many
-- The outcomes of attempts, and what each makes of its operation. No row: the attempt was overtaken and writes nothing, or
-- somebody has the row. flagged_at is set once: an operation that has it is never begun again. LIMIT: see DeliveryBegin.
WITH told AS (
    SELECT unnest(@ids::uuid[])             AS id,
           unnest(@attempts::int[])         AS attempt,
           unnest(@outcomes::text[])        AS outcome,
           unnest(@statuses::text[])        AS status,
           unnest(@reasons::text[])         AS reason,
           unnest(@details::text[])         AS detail,
           unnest(@problem_types::text[])   AS problem_type,
           unnest(@http_statuses::int[])    AS http_status,
           unnest(@invoice_ids::uuid[])     AS invoice_id,
           unnest(@invoice_numbers::text[]) AS invoice_number,
           unnest(@pause_seconds::float8[]) AS pause_seconds,
           unnest(@attentions::boolean[])   AS attention,
           unnest(@waits::int[])            AS waits
    LIMIT @members
), running AS (
    SELECT o.id
    FROM told
    JOIN operations AS o ON o.id = told.id
    WHERE o.attempt = told.attempt AND o.status = 'processing'
    FOR NO KEY UPDATE OF o SKIP LOCKED
), ended AS (
    UPDATE operations
    SET status          = told.status,
        lease_until     = NULL,
        waits           = operations.waits + told.waits,
        next_attempt_at = CASE WHEN told.status IN ('pending', 'unknown')
                               THEN clock_timestamp() + make_interval(secs => told.pause_seconds) END,
        finished_at     = CASE WHEN told.status IN ('succeeded', 'failed') THEN now() END,
        flagged_at      = CASE WHEN told.status IN ('pending', 'unknown')
                                    AND (told.attention
                                         OR operations.first_sent_at <= now() - make_interval(secs => @total_seconds::float8))
                               THEN now() END,
        invoice_id      = CASE WHEN told.status = 'succeeded' THEN told.invoice_id END,
        invoice_number  = CASE WHEN told.status = 'succeeded' THEN told.invoice_number END,
        reason          = told.reason,
        detail          = told.detail
    FROM running JOIN told ON told.id = running.id
    WHERE operations.id = running.id AND operations.attempt = told.attempt AND operations.status = 'processing'
    RETURNING operations.id, operations.attempt, operations.next_attempt_at, operations.flagged_at,
              told.outcome, told.http_status, told.problem_type, told.detail
), written AS (
    UPDATE attempts
    SET outcome = ended.outcome, finished_at = now(), http_status = nullif(ended.http_status, 0),
        problem_type = ended.problem_type, detail = ended.detail
    FROM ended
    WHERE attempts.operation_id = ended.id AND attempts.number = ended.attempt AND attempts.outcome = 'sent'
)
SELECT id, attempt, coalesce(next_attempt_at, now())::timestamptz AS due_at, (flagged_at IS NOT NULL)::boolean AS flagged FROM ended;

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
