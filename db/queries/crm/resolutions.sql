-- name: ResolutionInsert :one
-- No row: the operation is not unknown. Its row is locked, so that it stays so until the commit; a second open proposal
-- violates resolutions_one_open_key.
WITH subject AS (
    SELECT o.id, o.attempt
    FROM operations AS o
    WHERE o.tenant_id = @tenant_id AND o.key = @key AND o.status = 'unknown'
    FOR NO KEY UPDATE
)
INSERT INTO resolutions (id, tenant_id, operation_id, attempt, verdict, invoice_id, invoice_number, evidence, reason,
                         proposed_by, proposer_account)
SELECT @id, @tenant_id, subject.id, subject.attempt, @verdict, sqlc.narg(invoice_id)::uuid, sqlc.narg(invoice_number)::text,
       @evidence, @reason, @proposed_by, sqlc.narg(proposer_account)::uuid
FROM subject
RETURNING id;

-- name: ResolutionGet :one
SELECT r.id, r.attempt, r.verdict, r.invoice_id, r.invoice_number, r.evidence, r.reason, r.status, r.proposed_at, r.proposed_by,
       r.proposer_account, r.decided_at, r.decided_by, r.decision_reason, r.erp_said,
       o.key, o.source, o.order_id, o.role, o.sequence, o.status AS operation_status, o.attempt AS operation_attempt,
       r.operation_id
FROM resolutions AS r
JOIN operations AS o ON o.id = r.operation_id
WHERE r.tenant_id = @tenant_id AND r.id = @id;

-- name: ResolutionGetOpenOf :one
SELECT r.id
FROM resolutions AS r
JOIN operations AS o ON o.id = r.operation_id
WHERE o.tenant_id = @tenant_id AND o.key = @key AND r.status = 'open';

-- name: ResolutionListNewest :many
-- Newest first, from behind the position on.
SELECT r.id, r.attempt, r.verdict, r.invoice_id, r.invoice_number, r.evidence, r.reason, r.status, r.proposed_at, r.proposed_by,
       r.proposer_account, r.decided_at, r.decided_by, r.decision_reason, r.erp_said,
       o.key, o.source, o.order_id, o.role, o.sequence, o.status AS operation_status, o.attempt AS operation_attempt,
       r.operation_id
FROM resolutions AS r
JOIN operations AS o ON o.id = r.operation_id
WHERE r.tenant_id = @tenant_id
  AND (sqlc.narg(status)::text IS NULL OR r.status = sqlc.narg(status)::text)
  AND (sqlc.narg(beyond_at)::timestamptz IS NULL
       OR (r.proposed_at, r.id) < (sqlc.narg(beyond_at)::timestamptz, sqlc.narg(beyond_id)::uuid))
ORDER BY r.proposed_at DESC, r.id DESC
LIMIT @max_items;

-- name: ResolutionListOldest :many
-- Oldest first, from behind the position on.
SELECT r.id, r.attempt, r.verdict, r.invoice_id, r.invoice_number, r.evidence, r.reason, r.status, r.proposed_at, r.proposed_by,
       r.proposer_account, r.decided_at, r.decided_by, r.decision_reason, r.erp_said,
       o.key, o.source, o.order_id, o.role, o.sequence, o.status AS operation_status, o.attempt AS operation_attempt,
       r.operation_id
FROM resolutions AS r
JOIN operations AS o ON o.id = r.operation_id
WHERE r.tenant_id = @tenant_id
  AND (sqlc.narg(status)::text IS NULL OR r.status = sqlc.narg(status)::text)
  AND (sqlc.narg(beyond_at)::timestamptz IS NULL
       OR (r.proposed_at, r.id) > (sqlc.narg(beyond_at)::timestamptz, sqlc.narg(beyond_id)::uuid))
ORDER BY r.proposed_at, r.id
LIMIT @max_items;

-- name: ResolutionDecide :execrows
-- Of several who decide at once, one does.
UPDATE resolutions
SET status = @status, decided_at = now(), decided_by = @decided_by, decider_account = sqlc.narg(decider_account)::uuid,
    decision_reason = @decision_reason, erp_said = @erp_said
WHERE tenant_id = @tenant_id AND id = @id AND status = 'open';

-- name: ResolutionLockInvoice :exec
-- Until the end of the transaction: of two approvals that give one invoice to two operations, the second sees what the
-- first has done.
SELECT pg_advisory_xact_lock(hashtextextended('resolution ' || @tenant_id::text || ' ' || @invoice_id::text, 0));

-- name: ResolutionOwnerOfInvoice :one
-- Which operation of the tenant has the invoice already.
SELECT key FROM operations
WHERE tenant_id = @tenant_id AND invoice_id = @invoice_id AND id <> @operation_id
LIMIT 1;

-- name: ResolutionApply :execrows
-- Guarded as an attempt's own outcome is, by status and attempt: with an attempt running it is not unknown.
UPDATE operations
SET status = @status, finished_at = now(), next_attempt_at = NULL, flagged_at = NULL,
    invoice_id = sqlc.narg(invoice_id)::uuid, invoice_number = sqlc.narg(invoice_number)::text, reason = @reason, detail = @detail
WHERE id = @id AND status = 'unknown' AND attempt = @attempt;
