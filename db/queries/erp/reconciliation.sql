-- What reconciliation reads of the registrations, to hold them against what their targets know.

-- name: ReconciliationListRegistrations :many
-- One page of the window's registrations that have come to an end, newest first, at targets that can be asked. It begins behind the
-- position, which for the first page is the window's end: with a position that may be missing, a plan that is kept reads every page
-- from the window's end on.
SELECT r.id, r.created_at
FROM registrations AS r
JOIN targets AS t ON t.tenant_id = r.tenant_id AND t.id = r.target_id
WHERE r.tenant_id = @tenant_id AND r.created_at >= @window_from
  AND (r.created_at, r.id) < (@before_created_at::timestamptz, @before_id::uuid)
  AND r.status IN ('succeeded', 'failed') AND t.locatable
ORDER BY r.created_at DESC, r.id DESC
LIMIT @max_items;

-- name: ReconciliationListOpenRegistrations :many
-- Unknown, or left behind by a worker that died, however old, at targets that can be asked.
SELECT r.id
FROM registrations AS r
JOIN targets AS t ON t.tenant_id = r.tenant_id AND t.id = r.target_id
WHERE r.tenant_id = @tenant_id AND r.id > @after_id AND t.locatable
  AND (r.status = 'unknown' OR r.status = 'processing' AND r.lease_until <= now())
ORDER BY r.id
LIMIT @max_items;

-- name: ReconciliationGetRegistration :one
-- What the standing (RegistrationGetStanding) does not have. asked_to_wait: the newest answer was that the target is busy,
-- and the pause that it asked for is not over.
SELECT r.reference,
       (coalesce(r.next_attempt_at > now(), false) -- null where it is final
        AND EXISTS (SELECT FROM registration_attempts AS a
                    WHERE a.registration_id = r.id AND a.number = r.attempt
                      AND (a.outcome = 'wait' OR a.http_status IN (429, 503))))::boolean AS asked_to_wait,
       coalesce(extract(epoch FROM now() - r.last_sent_at), 0)::float8 AS last_sent_seconds,
       coalesce(extract(epoch FROM now() - r.tried_since), 0)::float8 AS tried_seconds, i.source, i.order_id
FROM registrations AS r
JOIN invoices AS i ON i.id = r.invoice_id
WHERE r.tenant_id = @tenant_id AND r.id = @id;

-- name: ReconciliationMakeDue :execrows
-- The pause before the next question is not waited for. Only as it was seen; the flag and the limits stay.
UPDATE registrations
SET next_attempt_at = now()
WHERE id = @id AND attempt = @seen_attempt AND status = 'unknown' AND next_attempt_at > now();
