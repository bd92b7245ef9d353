-- +goose Up

-- Which series numbers the invoices of a role, e.g. prefix 'INV', 6 digits: INV-2026-000001.
-- A role without a row uses the defaults of the program.
CREATE TABLE invoice_series (
    tenant_id text     NOT NULL,
    role      text     NOT NULL,
    prefix    text     NOT NULL,
    digits    smallint NOT NULL,
    CONSTRAINT invoice_series_pkey PRIMARY KEY (tenant_id, role),
    CONSTRAINT invoice_series_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT invoice_series_role_known CHECK (role IN ('advance', 'partial', 'final', 'credit_note', 'correction')),
    CONSTRAINT invoice_series_prefix_form CHECK (prefix ~ '^[A-Z0-9]{1,16}$'),
    CONSTRAINT invoice_series_digits_range CHECK (digits BETWEEN 1 AND 12)
);

-- The last number given out. A row and not a sequence: a sequence keeps its holes after a rollback.
CREATE TABLE invoice_counters (
    tenant_id   text    NOT NULL,
    prefix      text    NOT NULL,
    year        integer NOT NULL,
    last_number bigint  NOT NULL,
    CONSTRAINT invoice_counters_pkey PRIMARY KEY (tenant_id, prefix, year),
    CONSTRAINT invoice_counters_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT invoice_counters_last_number_positive CHECK (last_number > 0)
) WITH (fillfactor = 50);

-- What an order has been invoiced and credited. Its row is the lock under which an order's limit is checked.
CREATE TABLE order_balances (
    tenant_id      text    NOT NULL,
    source         text    NOT NULL,
    order_id       text    NOT NULL,
    currency       text    NOT NULL,
    invoiced_gross numeric NOT NULL,
    credited_gross numeric NOT NULL,
    CONSTRAINT order_balances_pkey PRIMARY KEY (tenant_id, source, order_id),
    CONSTRAINT order_balances_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT order_balances_amounts_are_numbers
        CHECK (invoiced_gross < 'Infinity' AND invoiced_gross > '-Infinity'
           AND credited_gross < 'Infinity' AND credited_gross > '-Infinity')
);

CREATE TABLE invoices (
    id                  uuid        NOT NULL,
    tenant_id           text        NOT NULL,
    number              text        NOT NULL,
    series_prefix       text        NOT NULL,
    series_year         integer     NOT NULL,
    series_number       bigint      NOT NULL,
    status              text        NOT NULL,
    source              text        NOT NULL,
    order_id            text        NOT NULL,
    role                text        NOT NULL,
    sequence            integer     NOT NULL,
    operation_key       text        NOT NULL,
    fingerprint_version smallint    NOT NULL,
    fingerprint         bytea       NOT NULL,
    currency            text        NOT NULL,
    issue_date          date        NOT NULL,
    due_date            date,
    customer_name       text        NOT NULL,
    customer_country    text        NOT NULL,
    customer_vat_id     text,
    net                 numeric     NOT NULL,
    vat                 numeric     NOT NULL,
    gross               numeric     NOT NULL,
    payable             numeric     NOT NULL,
    corrects_id         uuid,
    -- The invoice as the world saw it: the bytes of the first answer, of every replay and of every later read.
    document            bytea       NOT NULL,
    created_at          timestamptz NOT NULL,
    CONSTRAINT invoices_pkey PRIMARY KEY (id),
    CONSTRAINT invoices_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT invoices_corrects_id_fkey FOREIGN KEY (corrects_id) REFERENCES invoices (id),
    CONSTRAINT invoices_number_key UNIQUE (tenant_id, number),
    CONSTRAINT invoices_series_number_key UNIQUE (tenant_id, series_prefix, series_year, series_number),
    CONSTRAINT invoices_status_known CHECK (status IN ('issued')),
    CONSTRAINT invoices_role_known CHECK (role IN ('advance', 'partial', 'final', 'credit_note', 'correction')),
    CONSTRAINT invoices_sequence_positive CHECK (sequence >= 1),
    CONSTRAINT invoices_final_only_once CHECK (role <> 'final' OR sequence = 1),
    CONSTRAINT invoices_corrects_by_role CHECK ((role IN ('credit_note', 'correction')) = (corrects_id IS NOT NULL)),
    CONSTRAINT invoices_currency_form CHECK (currency ~ '^[A-Z]{3}$'),
    CONSTRAINT invoices_fingerprint_length CHECK (octet_length(fingerprint) = 32),
    CONSTRAINT invoices_dates_in_range
        CHECK (issue_date BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'
           AND due_date BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'),
    CONSTRAINT invoices_created_at_finite CHECK (isfinite(created_at)),
    CONSTRAINT invoices_amounts_are_numbers
        CHECK (net BETWEEN -1e15 AND 1e15 AND vat BETWEEN -1e15 AND 1e15 AND gross BETWEEN -1e15 AND 1e15),
    CONSTRAINT invoices_totals_add_up CHECK (gross = net + vat AND payable = gross)
);
-- Newest first, for the list; the id breaks ties between equal times.
CREATE INDEX invoices_created_at_idx ON invoices (tenant_id, created_at DESC, id DESC);
CREATE INDEX invoices_corrects_id_idx ON invoices (corrects_id) WHERE corrects_id IS NOT NULL;

-- The two constraints that decide, and that every request looks up by. They come last, and the key's does not begin with the
-- tenant: while a table is nearly empty all its indexes cost the same, the planner then takes the newest that fits, and a
-- session keeps that plan until the table is analysed. Made in this order, the right one always wins.

-- DESIGN invariant 1: one business claim has at most one invoice, whatever happens to keys and queues above.
-- (order before source: a person looks for an order and may not know its source)
ALTER TABLE invoices ADD CONSTRAINT invoices_business_claim_key
    UNIQUE (tenant_id, order_id, source, role, sequence);
-- The invoice remembers its key: an expired reservation still never makes a second invoice.
ALTER TABLE invoices ADD CONSTRAINT invoices_operation_key_key
    UNIQUE (operation_key, tenant_id);

CREATE TABLE invoice_lines (
    invoice_id       uuid    NOT NULL,
    position         integer NOT NULL,
    sku              text    NOT NULL,
    description      text    NOT NULL,
    quantity         numeric NOT NULL,
    unit_price       numeric NOT NULL,
    discount         numeric NOT NULL,
    vat_rate         numeric,
    vat_category     text    NOT NULL,
    exemption_reason text    NOT NULL,
    net              numeric NOT NULL,
    CONSTRAINT invoice_lines_pkey PRIMARY KEY (invoice_id, position),
    CONSTRAINT invoice_lines_invoice_id_fkey FOREIGN KEY (invoice_id) REFERENCES invoices (id),
    CONSTRAINT invoice_lines_position_positive CHECK (position >= 1),
    CONSTRAINT invoice_lines_vat_category_known CHECK (vat_category IN ('S', 'Z', 'E', 'AE', 'K', 'G', 'O')),
    CONSTRAINT invoice_lines_amounts_are_numbers
        CHECK (quantity BETWEEN -1e15 AND 1e15 AND unit_price BETWEEN -1e15 AND 1e15
           AND discount BETWEEN -1e15 AND 1e15 AND net BETWEEN -1e15 AND 1e15
           AND vat_rate BETWEEN 0 AND 100),
    CONSTRAINT invoice_lines_decimals
        CHECK (scale(quantity) <= 6 AND scale(unit_price) <= 6 AND scale(discount) <= 6 AND scale(vat_rate) <= 4)
);

-- +goose StatementBegin
CREATE FUNCTION refuse_change_of_issued_invoice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an issued invoice never changes: % on % refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation',
              HINT = 'Issue a credit note or a correction that names this invoice.';
END $$;
-- +goose StatementEnd
CREATE TRIGGER invoices_never_change BEFORE UPDATE OR DELETE ON invoices
    FOR EACH ROW EXECUTE FUNCTION refuse_change_of_issued_invoice();
CREATE TRIGGER invoice_lines_never_change BEFORE UPDATE OR DELETE ON invoice_lines
    FOR EACH ROW EXECUTE FUNCTION refuse_change_of_issued_invoice();

-- +goose Down
DROP TABLE invoice_lines;
DROP TABLE invoices;
DROP FUNCTION refuse_change_of_issued_invoice();
DROP TABLE order_balances;
DROP TABLE invoice_counters;
DROP TABLE invoice_series;
