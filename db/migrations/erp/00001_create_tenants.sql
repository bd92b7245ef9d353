-- +goose Up
CREATE TABLE tenants (
    id         text        NOT NULL,
    name       text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT tenants_pkey PRIMARY KEY (id),
    CONSTRAINT tenants_id_form CHECK (id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    CONSTRAINT tenants_name_length CHECK (char_length(name) BETWEEN 1 AND 200)
);

-- A bearer token belongs to one tenant and has one role; admin includes writer, writer includes reader.
-- The secret is 256 random bits, so a plain SHA-256 of it is enough; the secret itself is nowhere.
CREATE TABLE tokens (
    id          text        NOT NULL,
    tenant_id   text        NOT NULL,
    role        text        NOT NULL,
    label       text        NOT NULL,
    secret_hash bytea       NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    revoked_at  timestamptz,
    CONSTRAINT tokens_pkey PRIMARY KEY (id),
    CONSTRAINT tokens_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT tokens_role_known CHECK (role IN ('reader', 'writer', 'admin')),
    CONSTRAINT tokens_label_length CHECK (char_length(label) BETWEEN 1 AND 200),
    CONSTRAINT tokens_secret_hash_length CHECK (octet_length(secret_hash) = 32)
);
CREATE INDEX tokens_tenant_id_idx ON tokens (tenant_id);

-- Every human action that changes something: who, when, what, why.
CREATE TABLE audit_entries (
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    tenant_id   text        NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT now(),
    actor       text        NOT NULL,
    action      text        NOT NULL,
    subject     text        NOT NULL,
    reason      text        NOT NULL DEFAULT '',
    CONSTRAINT audit_entries_pkey PRIMARY KEY (id),
    CONSTRAINT audit_entries_actor_given CHECK (actor <> '')
);
CREATE INDEX audit_entries_tenant_id_idx ON audit_entries (tenant_id, id);

-- +goose Down
DROP TABLE audit_entries;
DROP TABLE tokens;
DROP TABLE tenants;
