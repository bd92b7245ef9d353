-- +goose Up

-- One business intention: "invoice this order in this role". Its key is made here, once, before the first attempt;
-- the request's bytes are frozen with it, and every attempt sends exactly these.
CREATE TABLE operations (
    id              uuid        NOT NULL,
    tenant_id       text        NOT NULL,
    key             text        NOT NULL,
    kind            text        NOT NULL,
    source          text        NOT NULL,
    order_id        text        NOT NULL,
    role            text        NOT NULL,
    sequence        integer     NOT NULL,
    order_version   bigint      NOT NULL,
    request         bytea       NOT NULL,
    request_hash    bytea       NOT NULL,
    status          text        NOT NULL,
    -- the newest attempt's number, and how many of the attempts so far were told to wait (those use up none)
    attempt         integer     NOT NULL DEFAULT 0,
    waits           integer     NOT NULL DEFAULT 0,
    -- while processing: until when the newest attempt may still be running, by the database's clock
    lease_until     timestamptz,
    next_attempt_at timestamptz,
    invoice_id      uuid,
    invoice_number  text,
    -- why it failed, or what the newest attempt met: a code of the decision table, and its text
    reason          text        NOT NULL DEFAULT '',
    detail          text        NOT NULL DEFAULT '',
    -- the newest order version that differs from what was sent; never sent silently
    changed_after_delivery_version bigint,
    supersedes_id   uuid,
    superseded_at   timestamptz,
    flagged_at      timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now(),
    first_sent_at   timestamptz,
    finished_at     timestamptz,
    CONSTRAINT operations_pkey PRIMARY KEY (id),
    CONSTRAINT operations_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT operations_order_fkey FOREIGN KEY (tenant_id, source, order_id)
        REFERENCES orders (tenant_id, source, order_id),
    CONSTRAINT operations_supersedes_id_fkey FOREIGN KEY (supersedes_id) REFERENCES operations (id),
    CONSTRAINT operations_key_key UNIQUE (tenant_id, key),
    CONSTRAINT operations_supersedes_id_key UNIQUE (supersedes_id),
    CONSTRAINT operations_key_length CHECK (octet_length(key) BETWEEN 1 AND 255),
    CONSTRAINT operations_kind_known CHECK (kind IN ('invoice')),
    CONSTRAINT operations_role_known CHECK (role IN ('advance', 'partial', 'final', 'credit_note', 'correction')),
    CONSTRAINT operations_sequence_positive CHECK (sequence >= 1),
    CONSTRAINT operations_request_not_empty CHECK (octet_length(request) > 0),
    CONSTRAINT operations_request_hash_length CHECK (octet_length(request_hash) = 32),
    CONSTRAINT operations_status_known CHECK (status IN
        ('pending', 'processing', 'succeeded', 'failed', 'unknown', 'cancelled')),
    CONSTRAINT operations_lease_while_processing CHECK ((status = 'processing') = (lease_until IS NOT NULL)),
    CONSTRAINT operations_next_attempt_while_waiting
        CHECK ((status IN ('pending', 'unknown')) = (next_attempt_at IS NOT NULL)),
    CONSTRAINT operations_finished_when_final
        CHECK ((status IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
    CONSTRAINT operations_invoice_when_succeeded
        CHECK ((status = 'succeeded') = (invoice_id IS NOT NULL) AND (invoice_id IS NULL) = (invoice_number IS NULL)),
    CONSTRAINT operations_sent_when_attempted CHECK ((attempt > 0) = (first_sent_at IS NOT NULL)),
    CONSTRAINT operations_never_sent_when_cancelled CHECK (status <> 'cancelled' OR attempt = 0)
);
-- One live operation per business claim; a superseded one makes room for its revision.
CREATE UNIQUE INDEX operations_business_claim_key
    ON operations (tenant_id, source, order_id, role, sequence) WHERE superseded_at IS NULL AND status <> 'cancelled';
-- What the sweep looks for: open and due.
CREATE INDEX operations_open_idx
    ON operations (coalesce(next_attempt_at, lease_until)) WHERE status IN ('pending', 'processing', 'unknown');
CREATE INDEX operations_created_at_idx ON operations (tenant_id, created_at DESC, id DESC);

-- One try at delivering an operation. The row is committed before the request leaves.
CREATE TABLE attempts (
    operation_id uuid        NOT NULL,
    number       integer     NOT NULL,
    started_at   timestamptz NOT NULL DEFAULT now(),
    finished_at  timestamptz,
    outcome      text        NOT NULL DEFAULT 'sent',
    http_status  integer,
    problem_type text        NOT NULL DEFAULT '',
    detail       text        NOT NULL DEFAULT '',
    worker       text        NOT NULL,
    CONSTRAINT attempts_pkey PRIMARY KEY (operation_id, number),
    CONSTRAINT attempts_operation_id_fkey FOREIGN KEY (operation_id) REFERENCES operations (id),
    CONSTRAINT attempts_number_positive CHECK (number >= 1),
    -- 'sent': no outcome yet; 'overtaken': a newer attempt began before this one told its outcome
    CONSTRAINT attempts_outcome_known CHECK (outcome IN
        ('sent', 'delivered', 'replayed', 'lost', 'wrong_answer', 'not_sent', 'wait', 'conflict', 'rejected',
         'not_authorised', 'overtaken')),
    CONSTRAINT attempts_finished_with_outcome CHECK ((outcome = 'sent') = (finished_at IS NULL))
);

-- +goose StatementBegin
-- DESIGN invariant 8 and 2, told to the database: a finished operation never goes back, and its key and its
-- request never change.
CREATE FUNCTION guard_operation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status IN ('succeeded', 'failed', 'cancelled') AND NEW.status <> OLD.status THEN
        RAISE EXCEPTION 'operation % is % and stays so', OLD.id, OLD.status USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.key <> OLD.key THEN
        RAISE EXCEPTION 'the key of operation % never changes', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.attempt > 0 AND NEW.request <> OLD.request THEN
        RAISE EXCEPTION 'the request of operation % has been sent and never changes', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER operations_guarded BEFORE UPDATE ON operations
    FOR EACH ROW EXECUTE FUNCTION guard_operation();

-- +goose Down
DROP TABLE attempts;
DROP TABLE operations;
DROP FUNCTION guard_operation();
