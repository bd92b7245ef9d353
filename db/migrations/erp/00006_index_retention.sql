-- +goose Up

-- What has been kept long enough, the longest overdue first. The second column tells apart what ends at one time (a
-- group's reservations do) and rises with the first, so that an insert only ever appends.
CREATE INDEX idempotency_records_expires_at_idx
    ON idempotency_records (expires_at, resource_id) WHERE status = 'succeeded';
CREATE INDEX key_conflicts_occurred_at_idx ON key_conflicts (occurred_at, id);
CREATE INDEX divergences_resolved_at_idx ON divergences (resolved_at, id) WHERE resolved_at IS NOT NULL;

-- +goose StatementBegin
-- A time that everybody can write down: years 1 to 9999. An infinite one, or one beyond, has no age that could be compared,
-- and no place in a list. (The older columns of invoices and reservations are finite, and read with care.)
CREATE FUNCTION is_tellable(t timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN t >= TIMESTAMPTZ '0001-01-01 00:00:00Z' AND t < TIMESTAMPTZ '9999-12-31 00:00:00Z';
-- +goose StatementEnd

ALTER TABLE key_conflicts ADD CONSTRAINT key_conflicts_occurred_at_tellable CHECK (is_tellable(occurred_at));
ALTER TABLE divergences
    ADD CONSTRAINT divergences_resolved_at_tellable CHECK (is_tellable(resolved_at)),
    ADD CONSTRAINT divergences_seen_at_tellable CHECK (is_tellable(first_seen_at) AND is_tellable(last_seen_at));
ALTER TABLE idempotency_records ADD CONSTRAINT idempotency_records_first_seen_tellable CHECK (is_tellable(first_seen_at));
ALTER TABLE registrations ADD CONSTRAINT registrations_times_tellable CHECK (
    is_tellable(created_at) AND is_tellable(first_sent_at) AND is_tellable(last_sent_at) AND is_tellable(tried_since)
    AND is_tellable(next_attempt_at) AND is_tellable(lease_until) AND is_tellable(flagged_at) AND is_tellable(finished_at));
ALTER TABLE registration_attempts
    ADD CONSTRAINT registration_attempts_times_tellable CHECK (is_tellable(started_at) AND is_tellable(finished_at));

-- +goose Down
ALTER TABLE registration_attempts DROP CONSTRAINT registration_attempts_times_tellable;
ALTER TABLE registrations DROP CONSTRAINT registrations_times_tellable;
ALTER TABLE idempotency_records DROP CONSTRAINT idempotency_records_first_seen_tellable;
ALTER TABLE divergences DROP CONSTRAINT divergences_seen_at_tellable, DROP CONSTRAINT divergences_resolved_at_tellable;
ALTER TABLE key_conflicts DROP CONSTRAINT key_conflicts_occurred_at_tellable;
DROP FUNCTION is_tellable(timestamptz);
DROP INDEX divergences_resolved_at_idx;
DROP INDEX key_conflicts_occurred_at_idx;
DROP INDEX idempotency_records_expires_at_idx;
