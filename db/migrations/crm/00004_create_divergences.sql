-- +goose Up

-- What a comparison of two books found. One open row per difference: a later run that finds it again moves
-- last_seen_at, one that does not resolves it.
CREATE TABLE divergences (
    id            bigint      GENERATED ALWAYS AS IDENTITY,
    tenant_id     text        NOT NULL,
    kind          text        NOT NULL,
    -- whose books have to be put right
    owner         text        NOT NULL,
    -- what it is about, e.g. the operation key or the business claim as text; unique with kind while open
    subject       text        NOT NULL,
    source        text        NOT NULL DEFAULT '',
    order_id      text        NOT NULL DEFAULT '',
    key           text        NOT NULL DEFAULT '',
    ours          text        NOT NULL DEFAULT '',
    theirs        text        NOT NULL DEFAULT '',
    action        text        NOT NULL DEFAULT '',
    first_seen_at timestamptz NOT NULL DEFAULT now(),
    last_seen_at  timestamptz NOT NULL DEFAULT now(),
    resolved_at   timestamptz,
    CONSTRAINT divergences_pkey PRIMARY KEY (id),
    CONSTRAINT divergences_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT divergences_kind_known CHECK (kind IN
        ('missing_in_erp', 'missing_in_crm', 'amount_differs', 'customer_differs', 'number_differs', 'status_differs',
         'unknown_resolved', 'order_credited', 'registered_twice', 'registered_but_unknown', 'held_too_long')),
    CONSTRAINT divergences_owner_known CHECK (owner IN ('crm', 'erp', 'target'))
);
CREATE UNIQUE INDEX divergences_open_key ON divergences (tenant_id, kind, subject) WHERE resolved_at IS NULL;
CREATE INDEX divergences_first_seen_idx ON divergences (tenant_id, first_seen_at DESC, id DESC);

-- Where a run stands, so that it goes on after a crash instead of beginning again.
CREATE TABLE reconciliation_runs (
    id          uuid        NOT NULL,
    tenant_id   text        NOT NULL,
    scope       text        NOT NULL,
    window_from timestamptz NOT NULL,
    window_to   timestamptz NOT NULL,
    phase       text        NOT NULL,
    cursor      text        NOT NULL DEFAULT '',
    compared    bigint      NOT NULL DEFAULT 0,
    found       bigint      NOT NULL DEFAULT 0,
    repaired    bigint      NOT NULL DEFAULT 0,
    started_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    CONSTRAINT reconciliation_runs_pkey PRIMARY KEY (id),
    CONSTRAINT reconciliation_runs_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT reconciliation_runs_window CHECK (window_from < window_to)
);
CREATE UNIQUE INDEX reconciliation_runs_one_open_key ON reconciliation_runs (tenant_id, scope) WHERE finished_at IS NULL;

-- +goose Down
DROP TABLE reconciliation_runs;
DROP TABLE divergences;
