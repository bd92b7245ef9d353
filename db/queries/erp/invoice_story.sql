-- The story of one invoice, told from all tables that know a part of it.

-- name: InvoiceStoryGet :one
SELECT i.document, i.created_at, i.operation_key, t.name AS tenant_name, i.corrects_id, c.number AS corrects_number,
       r.first_seen_at, r.expires_at
FROM invoices AS i
JOIN tenants AS t ON t.id = i.tenant_id
LEFT JOIN invoices AS c ON c.id = i.corrects_id AND c.tenant_id = i.tenant_id
LEFT JOIN idempotency_records AS r
       ON r.tenant_id = i.tenant_id AND r.operation = @operation AND r.key = i.operation_key
WHERE i.tenant_id = @tenant_id AND i.id = @id;

-- name: InvoiceStoryCorrections :many
-- What corrects it, or credits a part of it, oldest first.
SELECT id, number, role, currency, gross::text AS gross, created_at
FROM invoices
WHERE tenant_id = @tenant_id AND corrects_id = @id::uuid
ORDER BY created_at, id
LIMIT @max_items;

-- name: InvoiceStoryRegistrations :many
SELECT r.id, r.target_id, r.status, r.reference, r.attempt, r.reason, r.detail, r.warnings, r.created_at, r.finished_at,
       r.flagged_at, r.next_attempt_at
FROM registrations AS r
WHERE r.tenant_id = @tenant_id AND r.invoice_id = @id
ORDER BY r.target_id;

-- name: InvoiceStoryAttempts :many
-- The newest attempts of all its registrations.
SELECT a.registration_id, r.target_id, a.number, a.action, a.started_at, a.finished_at, a.outcome, a.http_status, a.detail
FROM registrations AS r
JOIN registration_attempts AS a ON a.registration_id = r.id
WHERE r.tenant_id = @tenant_id AND r.invoice_id = @id
ORDER BY a.started_at DESC, a.number DESC
LIMIT @max_items;

-- name: InvoiceStoryConflicts :many
-- Requests that came with its key and other content, newest first.
SELECT k.id, k.occurred_at, k.caller, k.differences, coalesce(t.label, '') AS caller_label
FROM key_conflicts AS k
LEFT JOIN tokens AS t ON t.id = k.caller AND t.tenant_id = k.tenant_id
WHERE k.tenant_id = @tenant_id AND k.operation = @operation AND k.key = @key
ORDER BY k.id DESC
LIMIT @max_items;

-- name: InvoiceStoryAudit :many
-- What people did to it or to its registrations, newest first.
SELECT id, occurred_at, actor, action, subject, reason, via, address, request_id
FROM audit_entries
WHERE tenant_id = @tenant_id AND subject = ANY (@subjects::text[])
ORDER BY id DESC
LIMIT @max_items;
