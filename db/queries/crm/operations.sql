-- name: OperationCopy :copyfrom
INSERT INTO operations (id, tenant_id, key, kind, source, order_id, role, sequence, order_version, request,
                        request_hash, status, next_attempt_at, supersedes_id)
VALUES (@id, @tenant_id, @key, @kind, @source, @order_id, @role, @sequence, @order_version, @request,
        @request_hash, @status, @next_attempt_at, @supersedes_id);

-- name: OperationListLive :many
-- Under the lock of their orders: no operation joins them meanwhile, but the deliverer may be moving each on.
-- LATERAL makes it one look-up in operations_business_claim_key an order; as a plain join, a table without
-- statistics (a new database, a big import) is read whole for each of them.
SELECT p.id, p.key, p.source, p.order_id, p.role, p.sequence, p.request_hash, p.status, p.attempt, p.reason,
       p.changed_after_delivery_version
FROM (SELECT unnest(@sources::text[]) AS source, unnest(@order_ids::text[]) AS order_id) AS w
CROSS JOIN LATERAL (
    SELECT id, key, source, order_id, role, sequence, request_hash, status, attempt, reason,
           changed_after_delivery_version
    FROM operations
    WHERE tenant_id = @tenant_id AND source = w.source AND order_id = w.order_id
      AND superseded_at IS NULL AND status <> 'cancelled'
    OFFSET 0
) AS p;

-- name: OperationLock :many
-- Against the deliverer's "attempt n is being sent": whoever has the row first decides whether the request may
-- still change. nothing_left: not one of its attempts reached the ERP. Where the statement had to wait for the row, it
-- has the newest attempt's number and the attempts from before; then the count falls short, and something may have left.
SELECT id, status, attempt, reason,
       (attempt = (SELECT count(*) FROM attempts AS a WHERE a.operation_id = operations.id AND a.outcome = 'not_sent'))::boolean
           AS nothing_left
FROM operations
WHERE id = ANY (@ids::uuid[])
ORDER BY id
FOR NO KEY UPDATE;

-- name: OperationReviseUnsent :execrows
UPDATE operations AS p
SET request = n.request, request_hash = n.request_hash, order_version = n.order_version
FROM (SELECT unnest(@ids::uuid[])             AS id,
             unnest(@requests::bytea[])       AS request,
             unnest(@request_hashes::bytea[]) AS request_hash,
             unnest(@order_versions::bigint[]) AS order_version) AS n
WHERE p.id = n.id AND p.attempt = 0 AND p.status = 'pending';

-- name: OperationCancelUnsent :execrows
-- Of which nothing has left; the trigger refuses the others, too.
UPDATE operations
SET status = 'cancelled', finished_at = now(), next_attempt_at = NULL, reason = 'cancelled', detail = @detail
WHERE id = ANY (@ids::uuid[]) AND status = 'pending'
  AND attempt = (SELECT count(*) FROM attempts AS a WHERE a.operation_id = operations.id AND a.outcome = 'not_sent');

-- name: OperationSetChangedAfterDelivery :execrows
-- Version 0 takes the mark away: the order wants again just what was sent.
UPDATE operations AS p
SET changed_after_delivery_version = nullif(n.version, 0)
FROM (SELECT unnest(@ids::uuid[]) AS id, unnest(@versions::bigint[]) AS version) AS n
WHERE p.id = n.id;

-- name: OperationSupersedeFailed :execrows
UPDATE operations
SET superseded_at = now()
WHERE id = ANY (@ids::uuid[]) AND status = 'failed' AND superseded_at IS NULL;

-- name: OperationGetByKey :one
SELECT id, key, kind, status, source, order_id, role, sequence, order_version, invoice_id, invoice_number, attempt, waits,
       reason, detail, changed_after_delivery_version, superseded_at, flagged_at, next_attempt_at, first_sent_at,
       finished_at, created_at
FROM operations
WHERE tenant_id = @tenant_id AND key = @key;

-- name: OperationListOfOrder :many
-- All of them, also the cancelled and the superseded, oldest first.
SELECT id, key, kind, status, source, order_id, role, sequence, order_version, invoice_id, invoice_number, attempt, waits,
       reason, detail, changed_after_delivery_version, superseded_at, flagged_at, next_attempt_at, first_sent_at,
       finished_at, created_at
FROM operations
WHERE tenant_id = @tenant_id AND source = @source AND order_id = @order_id
ORDER BY created_at, id;

-- name: OperationListPage :many
-- Newest first, from behind the cursor (created_at, id) on.
SELECT id, key, kind, status, source, order_id, role, sequence, order_version, invoice_id, invoice_number, attempt, waits,
       reason, detail, changed_after_delivery_version, superseded_at, flagged_at, next_attempt_at, first_sent_at,
       finished_at, created_at
FROM operations
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(status)::text IS NULL OR status = sqlc.narg(status)::text)
  AND (sqlc.narg(after_created_at)::timestamptz IS NULL
       OR (created_at, id) < (sqlc.narg(after_created_at)::timestamptz, sqlc.narg(after_id)::uuid))
ORDER BY created_at DESC, id DESC
LIMIT @max_items;

-- name: OperationListAttempts :many
SELECT operation_id, number, started_at, finished_at, outcome, http_status, problem_type, detail, worker
FROM attempts
WHERE operation_id = ANY (@operation_ids::uuid[])
ORDER BY operation_id, number;

-- name: OperationReplay :one
-- An operator hands an open operation back to the deliverer: due at once, under the key and with the bytes it has.
UPDATE operations
SET flagged_at = NULL, next_attempt_at = now()
WHERE tenant_id = @tenant_id AND key = @key AND status IN ('pending', 'unknown') AND flagged_at IS NOT NULL
RETURNING id;
