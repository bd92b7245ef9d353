-- What reconciliation reads of the CRM side's books, and the repairs that it makes there. Times are compared here and
-- not handed out: an infinite one in a row must not stop the others.

-- name: ReconciliationListOperations :many
-- The operations that have these keys, and those that are live under these business claims; an operation that has both
-- comes once, by its key. LATERAL: see OperationListLive.
SELECT w.position::integer AS position, true AS by_key, o.id, o.key, o.source, o.order_id, o.role, o.sequence, o.request, o.request_hash,
       (o.minimised_at IS NOT NULL)::boolean AS minimised, o.status, o.attempt, o.reason, o.invoice_id, o.invoice_number,
       (o.flagged_at IS NOT NULL)::boolean AS flagged,
       (o.status = 'processing' AND o.lease_until > now())::boolean AS leased
FROM (SELECT unnest(@positions::integer[]) AS position, unnest(@keys::text[]) AS key) AS w
CROSS JOIN LATERAL (
    SELECT p.id, p.key, p.source, p.order_id, p.role, p.sequence, p.request, p.request_hash, p.minimised_at,
           p.status, p.attempt, p.reason, p.invoice_id, p.invoice_number, p.flagged_at, p.lease_until
    FROM operations AS p
    WHERE p.tenant_id = @tenant_id AND p.key = w.key
    OFFSET 0
) AS o
UNION ALL
SELECT w.position::integer, false, o.id, o.key, o.source, o.order_id, o.role, o.sequence, o.request, o.request_hash,
       (o.minimised_at IS NOT NULL)::boolean, o.status, o.attempt, o.reason, o.invoice_id, o.invoice_number,
       (o.flagged_at IS NOT NULL)::boolean,
       (o.status = 'processing' AND o.lease_until > now())::boolean
FROM (SELECT unnest(@positions::integer[])  AS position,
             unnest(@keys::text[])          AS key,
             unnest(@sources::text[])       AS source,
             unnest(@order_ids::text[])     AS order_id,
             unnest(@roles::text[])         AS role,
             unnest(@sequences::bigint[])   AS sequence) AS w
CROSS JOIN LATERAL (
    SELECT p.id, p.key, p.source, p.order_id, p.role, p.sequence, p.request, p.request_hash, p.minimised_at,
           p.status, p.attempt, p.reason, p.invoice_id, p.invoice_number, p.flagged_at, p.lease_until
    FROM operations AS p
    WHERE p.tenant_id = @tenant_id AND p.source = w.source AND p.order_id = w.order_id
      AND p.role = w.role AND p.sequence = w.sequence AND p.key <> w.key
      AND p.superseded_at IS NULL AND p.status <> 'cancelled'
    OFFSET 0
) AS o;

-- name: ReconciliationGetOperation :one
-- quiet: nothing that was sent can still be on its way or at work at the ERP.
SELECT o.id, o.key, o.source, o.order_id, o.role, o.sequence, o.request, o.request_hash,
       (o.minimised_at IS NOT NULL)::boolean AS minimised, o.status, o.attempt, o.reason, o.invoice_id, o.invoice_number,
       (o.flagged_at IS NOT NULL)::boolean AS flagged,
       (o.status = 'processing' AND o.lease_until > now())::boolean AS leased,
       (o.superseded_at IS NULL AND o.status <> 'cancelled')::boolean AS live,
       (NOT EXISTS (SELECT FROM attempts AS a
                    WHERE a.operation_id = o.id
                      AND coalesce(a.finished_at, o.lease_until, a.started_at) > now() - make_interval(secs => @settle_seconds::float8)))::boolean
           AS quiet
FROM operations AS o
WHERE o.tenant_id = @tenant_id AND o.key = @key;

-- name: ReconciliationListWindow :many
-- One page of the window's operations, newest first, with whether the run has seen each one's invoice. The page is read
-- whole, matched or not, so that no query is longer than a page. It begins behind the position, which for the first page is the
-- window's end: with a position that may be missing, a plan that is kept reads every page from the window's end on. OFFSET 0 makes of the
-- EXISTS one look-up a row; else it may read all that the run has seen, for each page.
SELECT o.id, o.key, o.status, o.created_at,
       EXISTS (SELECT FROM reconciliation_matches AS m WHERE m.run_id = @run_id AND m.operation_id = o.id OFFSET 0) AS matched
FROM operations AS o
WHERE o.tenant_id = @tenant_id AND o.created_at >= @window_from
  AND (o.created_at, o.id) < (@before_created_at::timestamptz, @before_id::uuid)
ORDER BY o.created_at DESC, o.id DESC
LIMIT @max_items;

-- name: ReconciliationListOpen :many
-- Sent, open, and in nobody's hands right now, however old: unknown, left behind by a process that died, or with an
-- operator.
SELECT o.id, o.key
FROM operations AS o
WHERE o.tenant_id = @tenant_id AND o.id > @after_id AND o.attempt > 0
  AND o.status IN ('pending', 'processing', 'unknown')
  AND (o.status = 'unknown' OR o.status = 'processing' AND o.lease_until <= now() OR o.flagged_at IS NOT NULL)
ORDER BY o.id
LIMIT @max_items;

-- name: ReconciliationGetOrder :one
SELECT status, version
FROM orders
WHERE tenant_id = @tenant_id AND source = @source AND order_id = @order_id;

-- name: ReconciliationMatchInsert :exec
INSERT INTO reconciliation_matches (run_id, operation_id)
SELECT @run_id, unnest(@operation_ids::uuid[])
ON CONFLICT ON CONSTRAINT reconciliation_matches_pkey DO NOTHING;

-- name: ReconciliationMatchDelete :exec
DELETE FROM reconciliation_matches WHERE run_id = @run_id;

-- name: ReconciliationSettle :execrows
-- The ERP has the invoice of an operation that is open here. Guarded as an attempt's own outcome is: by status and
-- attempt, and never while an attempt may be running. An attempt that has not told its outcome tells none after this.
WITH settled AS (
    UPDATE operations
    SET status = 'succeeded', finished_at = now(), lease_until = NULL, next_attempt_at = NULL, flagged_at = NULL,
        invoice_id = @invoice_id, invoice_number = @invoice_number, reason = @reason, detail = @detail
    WHERE operations.id = @id AND operations.attempt = @attempt AND operations.attempt > 0
      AND (operations.status IN ('pending', 'unknown') OR operations.status = 'processing' AND operations.lease_until <= now())
    RETURNING operations.id
), told AS (
    UPDATE attempts
    SET outcome = 'overtaken', finished_at = now()
    FROM settled
    WHERE attempts.operation_id = settled.id AND attempts.outcome = 'sent'
)
SELECT id FROM settled;

-- name: ReconciliationTakeNumber :execrows
-- Numbers are the ERP's to give: an operation that has succeeded takes over the one its invoice has there.
UPDATE operations
SET invoice_id = @invoice_id, invoice_number = @invoice_number
WHERE id = @id AND status = 'succeeded' AND invoice_number = @old_number;
