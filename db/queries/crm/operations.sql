-- name: OperationInsert :exec
-- By arrays, one statement for all: COPY is not for tables with row-level security.
INSERT INTO operations (id, tenant_id, key, kind, source, order_id, role, sequence, order_version, request,
                        request_hash, status, next_attempt_at, supersedes_id, trace_context)
SELECT n.id, @tenant_id, n.key, @kind, n.source, n.order_id, n.role, n.sequence, n.order_version, n.request,
       n.request_hash, n.status, @next_attempt_at::timestamptz, nullif(n.supersedes_id, '')::uuid, nullif(n.trace_context, '')
FROM (SELECT unnest(@ids::uuid[])             AS id,
             unnest(@keys::text[])            AS key,
             unnest(@sources::text[])         AS source,
             unnest(@order_ids::text[])       AS order_id,
             unnest(@roles::text[])           AS role,
             unnest(@sequences::integer[])    AS sequence,
             unnest(@order_versions::bigint[]) AS order_version,
             unnest(@requests::bytea[])       AS request,
             unnest(@request_hashes::bytea[]) AS request_hash,
             unnest(@statuses::text[])        AS status,
             unnest(@supersedes_ids::text[])  AS supersedes_id,
             unnest(@trace_contexts::text[])  AS trace_context) AS n;

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
-- All of them, also the cancelled and the superseded, oldest first. Each of the two has its index.
SELECT id, key, kind, status, source, order_id, role, sequence, order_version, invoice_id, invoice_number, attempt, waits,
       reason, detail, changed_after_delivery_version, superseded_at, flagged_at, next_attempt_at, first_sent_at,
       finished_at, created_at
FROM operations
WHERE id IN (SELECT live.id
             FROM operations AS live
             WHERE live.tenant_id = @tenant_id AND live.source = @source AND live.order_id = @order_id
               AND live.superseded_at IS NULL AND live.status <> 'cancelled'
             UNION ALL
             SELECT ended.id
             FROM operations AS ended
             WHERE ended.tenant_id = @tenant_id AND ended.source = @source AND ended.order_id = @order_id
               AND (ended.superseded_at IS NOT NULL OR ended.status = 'cancelled'))
ORDER BY created_at, id;

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

-- name: OperationCancelByHand :execrows
-- Of which nothing has left; the trigger refuses the others, too.
UPDATE operations
SET status = 'cancelled', finished_at = now(), next_attempt_at = NULL, flagged_at = NULL, reason = 'cancelled_by_hand', detail = @detail
WHERE id = @id AND status = 'pending'
  AND attempt = (SELECT count(*) FROM attempts AS a WHERE a.operation_id = operations.id AND a.outcome = 'not_sent');

-- name: OperationListCancelledByHand :many
-- Of each business claim of these orders: the request of its newest operation, where a person cancelled that. The live ones
-- are in no one's way here: a claim that has one is not asked about.
SELECT w.source::text AS source, w.order_id::text AS order_id, o.role, o.sequence, o.request_hash
FROM (SELECT unnest(@sources::text[]) AS source, unnest(@order_ids::text[]) AS order_id) AS w
CROSS JOIN LATERAL (
    SELECT DISTINCT ON (p.role, p.sequence) p.role, p.sequence, p.request_hash, p.status, p.reason
    FROM operations AS p
    WHERE p.tenant_id = @tenant_id AND p.source = w.source AND p.order_id = w.order_id
      AND (p.superseded_at IS NOT NULL OR p.status = 'cancelled')
    ORDER BY p.role, p.sequence, p.id DESC
) AS o
WHERE o.status = 'cancelled' AND o.reason = 'cancelled_by_hand';
