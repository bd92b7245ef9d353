-- +goose Up

-- What has been kept long enough, the longest overdue first. The second column tells apart what ends at one time (a
-- group's reservations do) and rises with the first, so that an insert only ever appends.
CREATE INDEX idempotency_records_expires_at_idx
    ON idempotency_records (expires_at, resource_id) WHERE status = 'succeeded';
CREATE INDEX key_conflicts_occurred_at_idx ON key_conflicts (occurred_at, id);
CREATE INDEX divergences_resolved_at_idx ON divergences (resolved_at, id) WHERE resolved_at IS NOT NULL;

-- A row that is infinitely old or young has no age that could be compared, and no place in a list.
ALTER TABLE key_conflicts ADD CONSTRAINT key_conflicts_occurred_at_finite CHECK (isfinite(occurred_at));
ALTER TABLE divergences
    ADD CONSTRAINT divergences_resolved_at_finite CHECK (isfinite(resolved_at)),
    ADD CONSTRAINT divergences_seen_at_finite CHECK (isfinite(first_seen_at) AND isfinite(last_seen_at));
ALTER TABLE idempotency_records ADD CONSTRAINT idempotency_records_first_seen_finite CHECK (isfinite(first_seen_at));
ALTER TABLE registrations ADD CONSTRAINT registrations_times_finite CHECK (
    isfinite(created_at) AND isfinite(first_sent_at) AND isfinite(last_sent_at) AND isfinite(tried_since)
    AND isfinite(next_attempt_at) AND isfinite(lease_until) AND isfinite(flagged_at) AND isfinite(finished_at));
ALTER TABLE registration_attempts
    ADD CONSTRAINT registration_attempts_times_finite CHECK (isfinite(started_at) AND isfinite(finished_at));

-- +goose Down
ALTER TABLE registration_attempts DROP CONSTRAINT registration_attempts_times_finite;
ALTER TABLE registrations DROP CONSTRAINT registrations_times_finite;
ALTER TABLE idempotency_records DROP CONSTRAINT idempotency_records_first_seen_finite;
ALTER TABLE divergences DROP CONSTRAINT divergences_seen_at_finite, DROP CONSTRAINT divergences_resolved_at_finite;
ALTER TABLE key_conflicts DROP CONSTRAINT key_conflicts_occurred_at_finite;
DROP INDEX divergences_resolved_at_idx;
DROP INDEX key_conflicts_occurred_at_idx;
DROP INDEX idempotency_records_expires_at_idx;
