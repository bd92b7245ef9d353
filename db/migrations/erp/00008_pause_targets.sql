-- +goose Up

-- A person has paused a target: no new attempt begins there until somebody resumes it.
ALTER TABLE targets
    ADD COLUMN paused_at    timestamptz,
    ADD COLUMN paused_by    text NOT NULL DEFAULT '',
    ADD COLUMN pause_reason text NOT NULL DEFAULT '',
    ADD CONSTRAINT targets_paused_by_somebody CHECK (paused_at IS NULL OR paused_by <> '' AND pause_reason <> ''),
    ADD CONSTRAINT targets_times_tellable
        CHECK (is_tellable(created_at) AND is_tellable(disabled_at) AND is_tellable(paused_at));

-- A difference that a person has accepted stays so when it is found again, and no longer counts as open. One that was
-- closed by hand and is found again opens anew, as a row of its own.
ALTER TABLE divergences
    ADD COLUMN accepted_at     timestamptz,
    ADD COLUMN decided_by      text NOT NULL DEFAULT '',
    ADD COLUMN decision_reason text NOT NULL DEFAULT '',
    ADD CONSTRAINT divergences_accepted_at_tellable CHECK (is_tellable(accepted_at)),
    ADD CONSTRAINT divergences_accepted_by_somebody CHECK (accepted_at IS NULL OR decided_by <> '');

-- Who asked for the run; empty: the schedule.
ALTER TABLE reconciliation_runs ADD COLUMN requested_by text NOT NULL DEFAULT '';

-- What a person types into a search: the beginning of an order's id or of a customer's name, in any case. (Numbers and keys
-- have their unique indexes.) In byte order, so that LIKE 'x%' reads a range whatever the database's collation is. The tenant
-- is part of the expression and no column of its own: a new index that fits "tenant_id = ..." is what the planner takes for the
-- look-ups of issuing while the table is nearly empty (see 00003), and then each reads all of a tenant's invoices.
CREATE INDEX invoices_customer_search_idx ON invoices ((tenant_id || '/' || lower(customer_name)) text_pattern_ops);
CREATE INDEX invoices_order_search_idx ON invoices ((tenant_id || '/' || lower(order_id)) text_pattern_ops);

-- The story of one invoice.
CREATE INDEX key_conflicts_key_idx ON key_conflicts (tenant_id, key, id);

-- Lists show these times, and an infinite one has no place there.
ALTER TABLE audit_entries ADD CONSTRAINT audit_entries_occurred_at_tellable CHECK (is_tellable(occurred_at));
ALTER TABLE tokens ADD CONSTRAINT tokens_times_tellable CHECK (is_tellable(created_at) AND is_tellable(revoked_at));

-- +goose Down
ALTER TABLE tokens DROP CONSTRAINT tokens_times_tellable;
ALTER TABLE audit_entries DROP CONSTRAINT audit_entries_occurred_at_tellable;
DROP INDEX key_conflicts_key_idx;
DROP INDEX invoices_order_search_idx;
DROP INDEX invoices_customer_search_idx;
ALTER TABLE reconciliation_runs DROP COLUMN requested_by;
ALTER TABLE divergences
    DROP CONSTRAINT divergences_accepted_by_somebody, DROP CONSTRAINT divergences_accepted_at_tellable,
    DROP COLUMN decision_reason, DROP COLUMN decided_by, DROP COLUMN accepted_at;
ALTER TABLE targets
    DROP CONSTRAINT targets_times_tellable, DROP CONSTRAINT targets_paused_by_somebody,
    DROP COLUMN pause_reason, DROP COLUMN paused_by, DROP COLUMN paused_at;
