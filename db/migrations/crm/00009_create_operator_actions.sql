-- +goose Up

-- Sources whose deliveries are held back. A row is there for as long as that lasts; who did it when and why, also later on,
-- is in the audit. Small, and looked at when an attempt begins.
CREATE TABLE source_pauses (
    tenant_id  text        NOT NULL,
    source     text        NOT NULL,
    paused_at  timestamptz NOT NULL DEFAULT now(),
    paused_by  text        NOT NULL,
    reason     text        NOT NULL,
    CONSTRAINT source_pauses_pkey PRIMARY KEY (tenant_id, source),
    CONSTRAINT source_pauses_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT source_pauses_source_given CHECK (source <> '')
);

-- One replay of many operations: what was asked for, by whom, and how far it has come. The list of operations is frozen in
-- replay_items when it begins.
CREATE TABLE replay_runs (
    id                uuid        NOT NULL,
    tenant_id         text        NOT NULL,
    -- the filter; an empty text and 0 leave a criterion out
    status            text        NOT NULL,
    reason            text        NOT NULL,
    source            text        NOT NULL,
    min_age_seconds   bigint      NOT NULL,
    -- how many matched, and how many of them the run took
    matched           bigint      NOT NULL,
    total             integer     NOT NULL,
    queued            integer     NOT NULL DEFAULT 0,
    refused           integer     NOT NULL DEFAULT 0,
    stopped           integer     NOT NULL DEFAULT 0,
    -- who acts; the audit entry of each operation names the same
    started_by        text        NOT NULL,
    started_because   text        NOT NULL,
    started_via       text        NOT NULL,
    started_address   text        NOT NULL,
    started_request   text        NOT NULL,
    started_account   uuid,
    started_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now(),
    finished_at       timestamptz,
    stopped_by        text,
    CONSTRAINT replay_runs_pkey PRIMARY KEY (id),
    CONSTRAINT replay_runs_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT replay_runs_counts CHECK (queued >= 0 AND refused >= 0 AND stopped >= 0
                                         AND queued + refused + stopped <= total AND total <= matched),
    CONSTRAINT replay_runs_stopped_when_finished CHECK (stopped_by IS NULL OR finished_at IS NOT NULL)
);
-- One at a time, so that a second press finds the first.
CREATE UNIQUE INDEX replay_runs_one_open_key ON replay_runs (tenant_id) WHERE finished_at IS NULL;
CREATE INDEX replay_runs_started_at_idx ON replay_runs (tenant_id, started_at DESC, id DESC);

CREATE TABLE replay_items (
    run_id       uuid    NOT NULL,
    position     integer NOT NULL,
    operation_id uuid    NOT NULL,
    result       text    NOT NULL DEFAULT 'waiting',
    detail       text    NOT NULL DEFAULT '',
    done_at      timestamptz,
    CONSTRAINT replay_items_pkey PRIMARY KEY (run_id, position),
    CONSTRAINT replay_items_run_id_fkey FOREIGN KEY (run_id) REFERENCES replay_runs (id),
    CONSTRAINT replay_items_operation_id_fkey FOREIGN KEY (operation_id) REFERENCES operations (id),
    CONSTRAINT replay_items_operation_key UNIQUE (run_id, operation_id),
    CONSTRAINT replay_items_result_known CHECK (result IN ('waiting', 'queued', 'refused', 'stopped')),
    CONSTRAINT replay_items_done_with_result CHECK ((result = 'waiting') = (done_at IS NULL))
);
CREATE INDEX replay_items_waiting_idx ON replay_items (run_id, position) WHERE result = 'waiting';

-- What somebody says became of an operation that is unknown. It counts when a second person has approved it.
CREATE TABLE resolutions (
    id               uuid        NOT NULL,
    tenant_id        text        NOT NULL,
    operation_id     uuid        NOT NULL,
    -- the operation's newest attempt when this was proposed
    attempt          integer     NOT NULL,
    verdict          text        NOT NULL,
    invoice_id       uuid,
    invoice_number   text,
    evidence         text        NOT NULL,
    reason           text        NOT NULL,
    status           text        NOT NULL DEFAULT 'open',
    proposed_at      timestamptz NOT NULL DEFAULT now(),
    proposed_by      text        NOT NULL,
    -- null: a machine's token
    proposer_account uuid,
    decided_at       timestamptz,
    decided_by       text,
    decider_account  uuid,
    decision_reason  text,
    -- what the ERP answered when it was asked before the approval, or why it could not be asked
    erp_said         text        NOT NULL DEFAULT '',
    CONSTRAINT resolutions_pkey PRIMARY KEY (id),
    CONSTRAINT resolutions_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT resolutions_operation_id_fkey FOREIGN KEY (operation_id) REFERENCES operations (id),
    CONSTRAINT resolutions_verdict_known CHECK (verdict IN ('applied', 'not_applied')),
    CONSTRAINT resolutions_invoice_when_applied
        CHECK ((verdict = 'applied') = (invoice_id IS NOT NULL) AND (invoice_id IS NULL) = (invoice_number IS NULL)),
    CONSTRAINT resolutions_evidence_given CHECK (evidence <> '' AND reason <> ''),
    CONSTRAINT resolutions_status_known CHECK (status IN ('open', 'approved', 'declined', 'withdrawn')),
    CONSTRAINT resolutions_decided_when_closed CHECK ((status = 'open') = (decided_at IS NULL)
        AND (decided_at IS NULL) = (decided_by IS NULL) AND (decided_at IS NULL) = (decision_reason IS NULL)),
    -- Two people: who approves or declines is known, and is not who proposed.
    CONSTRAINT resolutions_second_person CHECK (status NOT IN ('approved', 'declined')
        OR decider_account IS NOT NULL AND decider_account IS DISTINCT FROM proposer_account)
);
CREATE UNIQUE INDEX resolutions_one_open_key ON resolutions (operation_id) WHERE status = 'open';
CREATE INDEX resolutions_proposed_at_idx ON resolutions (tenant_id, proposed_at DESC, id DESC);

-- Known and all right, or closed by hand: who said so, and why.
ALTER TABLE divergences
    ADD COLUMN accepted_at     timestamptz,
    ADD COLUMN decided_by      text NOT NULL DEFAULT '',
    ADD COLUMN decision_reason text NOT NULL DEFAULT '',
    ADD CONSTRAINT divergences_accepted_at_tellable CHECK (is_tellable(accepted_at));

-- Who asked for the run; empty: the schedule.
ALTER TABLE reconciliation_runs ADD COLUMN requested_by text NOT NULL DEFAULT '';

-- NOT VALID: what is there has kept to the narrower one, and need not be read again under a lock.
ALTER TABLE inbox_messages
    DROP CONSTRAINT inbox_messages_channel_known,
    ADD CONSTRAINT inbox_messages_channel_known CHECK (channel IN ('api', 'import', 'generate', 'manual')) NOT VALID;

-- What a replay can take: few rows, and nothing of the hot path.
CREATE INDEX operations_flagged_idx ON operations (tenant_id, id) WHERE flagged_at IS NOT NULL;
-- Whose an invoice is.
CREATE INDEX operations_invoice_id_idx ON operations (tenant_id, invoice_id) WHERE invoice_id IS NOT NULL;

-- +goose Down
DROP INDEX operations_invoice_id_idx;
DROP INDEX operations_flagged_idx;
ALTER TABLE inbox_messages
    DROP CONSTRAINT inbox_messages_channel_known,
    ADD CONSTRAINT inbox_messages_channel_known CHECK (channel IN ('api', 'import', 'generate')) NOT VALID;
ALTER TABLE reconciliation_runs DROP COLUMN requested_by;
ALTER TABLE divergences
    DROP CONSTRAINT divergences_accepted_at_tellable,
    DROP COLUMN decision_reason, DROP COLUMN decided_by, DROP COLUMN accepted_at;
DROP TABLE resolutions;
DROP TABLE replay_items;
DROP TABLE replay_runs;
DROP TABLE source_pauses;
