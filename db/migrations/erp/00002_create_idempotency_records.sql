-- +goose Up

-- One row per reservation of an operation key. The primary key is what decides between two requests that carry
-- the same key: the second INSERT waits for the first transaction, and then fails or succeeds with it.
--
-- Where the whole effect is one local transaction the row is inserted already 'succeeded': nobody can see it
-- before that transaction commits, and an UPDATE afterwards would only double its write-ahead log.
-- The stored answer of such a row is the immutable document of the resource that resource_id names.
CREATE TABLE idempotency_records (
    tenant_id           text        NOT NULL,
    operation           text        NOT NULL,
    key                 text        NOT NULL,
    fingerprint_version smallint    NOT NULL,
    fingerprint         bytea       NOT NULL,
    status              text        NOT NULL,
    answer_status       smallint,
    resource_id         uuid,
    first_seen_at       timestamptz NOT NULL DEFAULT now(),
    completed_at        timestamptz,
    expires_at          timestamptz NOT NULL,
    CONSTRAINT idempotency_records_pkey PRIMARY KEY (tenant_id, operation, key),
    CONSTRAINT idempotency_records_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT idempotency_records_key_length CHECK (octet_length(key) BETWEEN 1 AND 255),
    CONSTRAINT idempotency_records_fingerprint_length CHECK (octet_length(fingerprint) = 32),
    CONSTRAINT idempotency_records_status_known CHECK (status IN ('processing', 'succeeded', 'failed', 'unknown')),
    CONSTRAINT idempotency_records_completed_when_final
        CHECK ((status IN ('succeeded', 'failed')) = (completed_at IS NOT NULL)),
    CONSTRAINT idempotency_records_answer_when_succeeded
        CHECK ((status = 'succeeded') = (answer_status IS NOT NULL AND resource_id IS NOT NULL)),
    CONSTRAINT idempotency_records_expires_after_first_seen
        CHECK (expires_at > first_seen_at AND isfinite(expires_at))
);

-- A key that came back with other content. Kept as evidence: which members differed, never their values.
CREATE TABLE key_conflicts (
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    tenant_id   text        NOT NULL,
    operation   text        NOT NULL,
    key         text        NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT now(),
    caller      text        NOT NULL,
    differences text[]      NOT NULL,
    CONSTRAINT key_conflicts_pkey PRIMARY KEY (id),
    CONSTRAINT key_conflicts_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id)
);
CREATE INDEX key_conflicts_tenant_id_idx ON key_conflicts (tenant_id, id);

-- +goose Down
DROP TABLE key_conflicts;
DROP TABLE idempotency_records;
