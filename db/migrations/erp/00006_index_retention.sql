-- +goose Up

-- What has been kept long enough, the longest overdue first. The second column tells apart what ends at one time (a
-- group's reservations do) and rises with the first, so that an insert only ever appends.
CREATE INDEX idempotency_records_expires_at_idx
    ON idempotency_records (expires_at, resource_id) WHERE status = 'succeeded';
CREATE INDEX key_conflicts_occurred_at_idx ON key_conflicts (occurred_at, id);
CREATE INDEX divergences_resolved_at_idx ON divergences (resolved_at, id) WHERE resolved_at IS NOT NULL;

-- A row that is infinitely old or young has no age that could be compared.
ALTER TABLE key_conflicts ADD CONSTRAINT key_conflicts_occurred_at_finite CHECK (isfinite(occurred_at));
ALTER TABLE divergences ADD CONSTRAINT divergences_resolved_at_finite CHECK (isfinite(resolved_at));

-- +goose Down
ALTER TABLE divergences DROP CONSTRAINT divergences_resolved_at_finite;
ALTER TABLE key_conflicts DROP CONSTRAINT key_conflicts_occurred_at_finite;
DROP INDEX divergences_resolved_at_idx;
DROP INDEX key_conflicts_occurred_at_idx;
DROP INDEX idempotency_records_expires_at_idx;
