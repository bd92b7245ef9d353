-- +goose Up

-- What came in and was turned away, with the reason. Written in a transaction of its own after the refusal; what the caller
-- is told does not depend on it.
CREATE TABLE intake_refusals (
    id           bigint      GENERATED ALWAYS AS IDENTITY,
    tenant_id    text        NOT NULL,
    received_at  timestamptz NOT NULL DEFAULT now(),
    channel      text        NOT NULL,
    -- where they could be read
    source       text        NOT NULL DEFAULT '',
    order_id     text        NOT NULL DEFAULT '',
    -- the type of the problem, as its caller was told
    problem      text        NOT NULL,
    detail       text        NOT NULL DEFAULT '',
    -- what is wrong, and where: the same number of each
    pointers     text[]      NOT NULL DEFAULT '{}',
    reasons      text[]      NOT NULL DEFAULT '{}',
    -- the beginning of what came, and how long the whole of it was
    body         bytea       NOT NULL DEFAULT '',
    body_size    bigint      NOT NULL DEFAULT 0,
    request_id   text        NOT NULL DEFAULT '',
    actor        text        NOT NULL DEFAULT '',
    import_id    uuid,
    CONSTRAINT intake_refusals_pkey PRIMARY KEY (id),
    CONSTRAINT intake_refusals_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT intake_refusals_channel_known CHECK (channel IN ('api', 'import', 'manual')),
    CONSTRAINT intake_refusals_errors_whole CHECK (cardinality(pointers) = cardinality(reasons)),
    CONSTRAINT intake_refusals_body_bounded CHECK (octet_length(body) <= 8192 AND body_size >= octet_length(body)),
    CONSTRAINT intake_refusals_received_at_tellable CHECK (is_tellable(received_at))
);
CREATE INDEX intake_refusals_received_at_idx ON intake_refusals (tenant_id, received_at DESC, id DESC);
-- For the retention, over all tenants.
CREATE INDEX intake_refusals_age_idx ON intake_refusals (received_at, id);

-- How many were refused in an hour. So many of them are kept whole, and no more, that a flood does not fill the disk.
CREATE TABLE intake_refusal_hours (
    tenant_id text        NOT NULL,
    hour      timestamptz NOT NULL,
    refused   bigint      NOT NULL,
    CONSTRAINT intake_refusal_hours_pkey PRIMARY KEY (tenant_id, hour),
    CONSTRAINT intake_refusal_hours_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id)
);

-- Files that were imported, with what became of their rows. A row is written when the import begins.
CREATE TABLE imports (
    id          uuid        NOT NULL,
    tenant_id   text        NOT NULL,
    file_name   text        NOT NULL,
    format      text        NOT NULL,
    keep_good   boolean     NOT NULL,
    actor       text        NOT NULL,
    started_at  timestamptz NOT NULL DEFAULT now(),
    -- null: it is still running, or its process died
    finished_at timestamptz,
    -- of the file's bytes as they were read
    sha256      bytea,
    size        bigint,
    -- whether anything of it is stored
    stored      boolean,
    row_count   integer     NOT NULL DEFAULT 0,
    blank_rows  integer     NOT NULL DEFAULT 0,
    orders      integer     NOT NULL DEFAULT 0,
    -- rows by outcome: the same number of each
    outcomes    text[]      NOT NULL DEFAULT '{}',
    counts      bigint[]    NOT NULL DEFAULT '{}',
    -- why the whole file was refused, or why it could not be taken to its end
    refusal     text        NOT NULL DEFAULT '',
    failure     text        NOT NULL DEFAULT '',
    -- the first of the rows that were not taken: the same number of each
    refused_lines    bigint[] NOT NULL DEFAULT '{}',
    refused_orders   text[]   NOT NULL DEFAULT '{}',
    refused_outcomes text[]   NOT NULL DEFAULT '{}',
    refused_reasons  text[]   NOT NULL DEFAULT '{}',
    -- when those were removed: they may quote what the rows said
    minimised_at timestamptz,
    CONSTRAINT imports_pkey PRIMARY KEY (id),
    CONSTRAINT imports_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT imports_sha256_length CHECK (octet_length(sha256) = 32),
    CONSTRAINT imports_counts_whole CHECK (cardinality(outcomes) = cardinality(counts)),
    CONSTRAINT imports_refused_whole CHECK (cardinality(refused_lines) = cardinality(refused_orders)
        AND cardinality(refused_lines) = cardinality(refused_outcomes)
        AND cardinality(refused_lines) = cardinality(refused_reasons)),
    CONSTRAINT imports_report_when_finished CHECK ((finished_at IS NULL) = (stored IS NULL)),
    CONSTRAINT imports_times_tellable CHECK (is_tellable(started_at) AND is_tellable(finished_at) AND is_tellable(minimised_at))
);
CREATE INDEX imports_started_at_idx ON imports (tenant_id, started_at DESC, id DESC);
CREATE INDEX imports_to_minimise_idx ON imports (started_at, id) WHERE minimised_at IS NULL;

-- The lists of the console. Most operations have succeeded: they are found in the list of all, and are in no index of
-- their own, so that reaching the usual end adds to none.
CREATE INDEX operations_status_idx
    ON operations (tenant_id, status, created_at DESC, id DESC) WHERE status <> 'succeeded';
CREATE INDEX operations_reason_idx
    ON operations (tenant_id, reason, created_at DESC, id DESC) WHERE reason <> '';
-- What needs a person: with an operator, refused and not mended, or sent before its order changed.
CREATE INDEX operations_attention_idx
    ON operations (tenant_id, created_at DESC, id DESC)
    WHERE flagged_at IS NOT NULL OR status = 'failed' AND superseded_at IS NULL
          OR changed_after_delivery_version IS NOT NULL;
-- Beside operations_business_claim_key, which has the live ones: together they find all operations of an order.
CREATE INDEX operations_ended_claim_idx
    ON operations (tenant_id, source, order_id) WHERE superseded_at IS NOT NULL OR status = 'cancelled';
-- An order by its number alone, or the beginning of it, whatever its source.
CREATE INDEX orders_order_id_idx ON orders (tenant_id, order_id text_pattern_ops, source);

CREATE INDEX audit_entries_occurred_at_idx ON audit_entries (tenant_id, occurred_at DESC, id DESC);
CREATE INDEX divergences_key_idx ON divergences (tenant_id, key) WHERE key <> '';
CREATE INDEX divergences_order_idx ON divergences (tenant_id, source, order_id) WHERE order_id <> '';
CREATE INDEX reconciliation_runs_started_at_idx ON reconciliation_runs (tenant_id, started_at DESC, id DESC);

-- +goose Down
DROP INDEX reconciliation_runs_started_at_idx;
DROP INDEX divergences_order_idx;
DROP INDEX divergences_key_idx;
DROP INDEX audit_entries_occurred_at_idx;
DROP INDEX orders_order_id_idx;
DROP INDEX operations_ended_claim_idx;
DROP INDEX operations_attention_idx;
DROP INDEX operations_reason_idx;
DROP INDEX operations_status_idx;
DROP TABLE imports;
DROP TABLE intake_refusal_hours;
DROP TABLE intake_refusals;
