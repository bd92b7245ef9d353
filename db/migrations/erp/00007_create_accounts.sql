-- +goose Up

-- People. A log-in name is unique in the whole service, so that nobody has to name their tenant. service_access is for
-- what belongs to all tenants at once, the queue and the figures.
CREATE TABLE accounts (
    id             uuid        NOT NULL,
    tenant_id      text        NOT NULL,
    name           text        NOT NULL,
    display_name   text        NOT NULL,
    role           text        NOT NULL,
    service_access boolean     NOT NULL DEFAULT false,
    -- argon2id in PHC string form; null: logs in by OIDC only
    password_hash  text,
    -- who this is at the OIDC provider; taken over at the first log-in by it
    oidc_issuer    text,
    oidc_subject   text,
    created_at     timestamptz NOT NULL DEFAULT now(),
    disabled_at    timestamptz,
    CONSTRAINT accounts_pkey PRIMARY KEY (id),
    CONSTRAINT accounts_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT accounts_name_key UNIQUE (name),
    CONSTRAINT accounts_oidc_key UNIQUE (oidc_issuer, oidc_subject),
    CONSTRAINT accounts_name_form CHECK (name ~ '^[a-z0-9][a-z0-9._+@-]{0,253}$'),
    CONSTRAINT accounts_display_name_length CHECK (char_length(display_name) BETWEEN 1 AND 200),
    CONSTRAINT accounts_role_known CHECK (role IN ('viewer', 'operator', 'admin')),
    CONSTRAINT accounts_password_hash_form CHECK (password_hash LIKE '$argon2id$%'),
    CONSTRAINT accounts_oidc_whole CHECK ((oidc_issuer IS NULL) = (oidc_subject IS NULL))
);
CREATE INDEX accounts_tenant_id_idx ON accounts (tenant_id, name);

-- A session is known by the SHA-256 of what the cookie holds; the cookie's text itself is nowhere.
CREATE TABLE sessions (
    id_hash      bytea       NOT NULL,
    account_id   uuid        NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL,
    address      text        NOT NULL DEFAULT '',
    user_agent   text        NOT NULL DEFAULT '',
    CONSTRAINT sessions_pkey PRIMARY KEY (id_hash),
    CONSTRAINT sessions_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
    CONSTRAINT sessions_id_hash_length CHECK (octet_length(id_hash) = 32),
    CONSTRAINT sessions_expires_after_created CHECK (expires_at > created_at)
);
CREATE INDEX sessions_account_id_idx ON sessions (account_id);
CREATE INDEX sessions_expires_at_idx ON sessions (expires_at);

-- Failed log-ins of late, by name and by address, whether or not there is such a name.
CREATE TABLE login_failures (
    subject        text        NOT NULL,
    failures       integer     NOT NULL,
    last_failed_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT login_failures_pkey PRIMARY KEY (subject),
    CONSTRAINT login_failures_positive CHECK (failures > 0)
);
CREATE INDEX login_failures_last_failed_at_idx ON login_failures (last_failed_at);

-- A token that is a person's own acts in that person's name. The role metrics may read /metrics and nothing else.
ALTER TABLE tokens
    ADD COLUMN account_id uuid,
    ADD CONSTRAINT tokens_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
    DROP CONSTRAINT tokens_role_known,
    ADD CONSTRAINT tokens_role_known CHECK (role IN ('reader', 'writer', 'admin', 'metrics'));

-- From where, beside who, when, what and why.
ALTER TABLE audit_entries
    ADD COLUMN via        text NOT NULL DEFAULT 'cli',
    ADD COLUMN address    text NOT NULL DEFAULT '',
    ADD COLUMN request_id text NOT NULL DEFAULT '',
    ADD COLUMN account_id uuid,
    ADD CONSTRAINT audit_entries_via_known CHECK (via IN ('cli', 'api', 'console'));
CREATE INDEX audit_entries_subject_idx ON audit_entries (tenant_id, subject, id);

-- +goose StatementBegin
CREATE FUNCTION guard_audit_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit entries are never changed or removed' USING ERRCODE = 'restrict_violation';
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_entries_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
    FOR EACH STATEMENT EXECUTE FUNCTION guard_audit_entries();

-- +goose Down
DROP TRIGGER audit_entries_kept ON audit_entries;
DROP FUNCTION guard_audit_entries();
DROP INDEX audit_entries_subject_idx;
ALTER TABLE audit_entries
    DROP CONSTRAINT audit_entries_via_known,
    DROP COLUMN account_id, DROP COLUMN request_id, DROP COLUMN address, DROP COLUMN via;
DELETE FROM tokens WHERE role = 'metrics';
ALTER TABLE tokens
    DROP CONSTRAINT tokens_role_known,
    ADD CONSTRAINT tokens_role_known CHECK (role IN ('reader', 'writer', 'admin')),
    DROP COLUMN account_id;
DROP TABLE login_failures;
DROP TABLE sessions;
DROP TABLE accounts;
