-- +goose Up

-- An external service that a tenant's invoices must be registered with, and what it can be asked for.
CREATE TABLE targets (
    tenant_id             text        NOT NULL,
    id                    text        NOT NULL,
    kind                  text        NOT NULL,
    base_url              text        NOT NULL,
    -- where the secret is, never the secret: env:NAME or file:/path
    credential_ref        text        NOT NULL,
    -- keyed: honours Idempotency-Key for so long; null: knows no keys
    key_window_seconds    bigint,
    -- locatable: can be asked what it knows of our reference
    locatable             boolean     NOT NULL,
    -- its "absent" may be believed from this age of the newest sending on; null: never
    absent_after_seconds  bigint,
    created_at            timestamptz NOT NULL DEFAULT now(),
    disabled_at           timestamptz,
    CONSTRAINT targets_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT targets_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT targets_id_form CHECK (id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    CONSTRAINT targets_kind_known CHECK (kind IN ('einvoice', 'ledger')),
    CONSTRAINT targets_credential_by_reference CHECK (credential_ref ~ '^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)$'),
    CONSTRAINT targets_key_window_positive CHECK (key_window_seconds > 0),
    CONSTRAINT targets_absent_after_positive CHECK (absent_after_seconds > 0),
    CONSTRAINT targets_absent_needs_locatable CHECK (locatable OR absent_after_seconds IS NULL)
);

-- The duty to make one invoice known at one target, exactly once. Written with the invoice, in its transaction.
CREATE TABLE registrations (
    id              uuid        NOT NULL,
    tenant_id       text        NOT NULL,
    invoice_id      uuid        NOT NULL,
    target_id       text        NOT NULL,
    key             text        NOT NULL,
    status          text        NOT NULL,
    attempt         integer     NOT NULL DEFAULT 0,
    waits           integer     NOT NULL DEFAULT 0,
    lease_until     timestamptz,
    next_attempt_at timestamptz,
    first_sent_at   timestamptz,
    -- when the newest request that may have had an effect left; what "absent" is measured against
    last_sent_at    timestamptz,
    -- when trying began, or was begun anew by an operator; what the limits are measured from
    tried_since     timestamptz,
    -- the target's own id of what it has begun and not finished
    known           text        NOT NULL DEFAULT '',
    reference       text        NOT NULL DEFAULT '',
    warnings        text[]      NOT NULL DEFAULT '{}',
    reason          text        NOT NULL DEFAULT '',
    detail          text        NOT NULL DEFAULT '',
    flagged_at      timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now(),
    finished_at     timestamptz,
    CONSTRAINT registrations_pkey PRIMARY KEY (id),
    CONSTRAINT registrations_invoice_id_fkey FOREIGN KEY (invoice_id) REFERENCES invoices (id),
    CONSTRAINT registrations_target_fkey FOREIGN KEY (tenant_id, target_id) REFERENCES targets (tenant_id, id),
    CONSTRAINT registrations_invoice_target_key UNIQUE (invoice_id, target_id),
    CONSTRAINT registrations_status_known CHECK (status IN
        ('pending', 'processing', 'succeeded', 'failed', 'unknown')),
    CONSTRAINT registrations_lease_while_processing CHECK ((status = 'processing') = (lease_until IS NOT NULL)),
    CONSTRAINT registrations_next_attempt_while_waiting
        CHECK ((status IN ('pending', 'unknown')) = (next_attempt_at IS NOT NULL)),
    CONSTRAINT registrations_finished_when_final
        CHECK ((status IN ('succeeded', 'failed')) = (finished_at IS NOT NULL)),
    CONSTRAINT registrations_reference_when_succeeded CHECK (status <> 'succeeded' OR reference <> ''),
    CONSTRAINT registrations_sent_in_order CHECK (last_sent_at IS NULL OR first_sent_at IS NOT NULL)
);
CREATE INDEX registrations_open_idx
    ON registrations (coalesce(next_attempt_at, lease_until)) WHERE status IN ('pending', 'processing', 'unknown');
CREATE INDEX registrations_created_at_idx ON registrations (tenant_id, created_at DESC, id DESC);

-- One exchange with the target: a sending or a question. Committed before it leaves.
CREATE TABLE registration_attempts (
    registration_id uuid        NOT NULL,
    number          integer     NOT NULL,
    action          text        NOT NULL,
    started_at      timestamptz NOT NULL DEFAULT now(),
    finished_at     timestamptz,
    outcome         text        NOT NULL DEFAULT 'sent',
    http_status     integer,
    detail          text        NOT NULL DEFAULT '',
    worker          text        NOT NULL,
    CONSTRAINT registration_attempts_pkey PRIMARY KEY (registration_id, number),
    CONSTRAINT registration_attempts_registration_id_fkey FOREIGN KEY (registration_id) REFERENCES registrations (id),
    CONSTRAINT registration_attempts_action_known CHECK (action IN ('send', 'locate')),
    CONSTRAINT registration_attempts_outcome_known CHECK (outcome IN
        ('sent', 'accepted', 'rejected', 'already_registered', 'not_sent', 'wait', 'not_authorised', 'wrong_answer', 'lost',
         'landed', 'held', 'absent', 'inconclusive', 'foreign', 'overtaken')),
    CONSTRAINT registration_attempts_finished_with_outcome CHECK ((outcome = 'sent') = (finished_at IS NULL))
);

-- +goose StatementBegin
CREATE FUNCTION guard_registration() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status IN ('succeeded', 'failed') AND NEW.status <> OLD.status THEN
        RAISE EXCEPTION 'registration % is % and stays so', OLD.id, OLD.status USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.key <> OLD.key OR NEW.invoice_id <> OLD.invoice_id THEN
        RAISE EXCEPTION 'the key and the invoice of registration % never change', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER registrations_guarded BEFORE UPDATE ON registrations
    FOR EACH ROW EXECUTE FUNCTION guard_registration();

-- +goose Down
DROP TABLE registration_attempts;
DROP TABLE registrations;
DROP FUNCTION guard_registration();
DROP TABLE targets;
