-- name: IdempotencyRecordReserve :batchmany
-- The primary key decides: the INSERT waits for a transaction that holds one of the keys, at most lock_timeout, and
-- then fails if that one has committed. They come sorted by tenant and key, so that two reservations never wait for each other.
-- The sub-select is evaluated once, before the first row; the setting lasts until the next statement that waits
-- states its own, or the transaction ends.
INSERT INTO idempotency_records (
    tenant_id, operation, key, fingerprint_version, fingerprint, status, answer_status, resource_id,
    completed_at, expires_at)
SELECT r.tenant_id, @operation, r.key, r.fingerprint_version, r.fingerprint, 'succeeded', @answer_status::smallint,
       r.resource_id, now(), now() + sqlc.arg(retention_seconds)::bigint * interval '1 second'
FROM (SELECT unnest(@tenant_ids::text[]) AS tenant_id,
             unnest(@keys::text[]) AS key,
             unnest(@fingerprint_versions::smallint[]) AS fingerprint_version,
             unnest(@fingerprints::bytea[]) AS fingerprint,
             unnest(@resource_ids::uuid[]) AS resource_id) AS r
WHERE (SELECT set_config('lock_timeout', @lock_timeout::text, true)) IS NOT NULL
RETURNING first_seen_at, expires_at;
