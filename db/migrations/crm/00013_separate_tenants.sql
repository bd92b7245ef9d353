-- +goose Up

-- Work for a tenant runs under the role invoicebridge_tenant, in a transaction whose setting invoicebridge.tenants names the tenants
-- (internal/tenantdb). The owner of the tables, as whom the service's own work runs, is not held by the policies; this role
-- is. So a statement whose WHERE forgets the tenant finds nothing of anybody else's.
--
-- One function makes all of it and can be run again: the migrations' end runs it, so that a table made later is not forgotten. What
-- it does not name, the role has no right to. TestEveryTableIsSeparated walks the catalogue.

-- +goose StatementBegin
CREATE FUNCTION separate_tenants() RETURNS void LANGUAGE plpgsql AS $fn$
DECLARE
    -- The sub-select is evaluated once for a statement, not once for a row. coalesce keeps the condition out of the planner's choice of
    -- an index: as one more condition on the tenant it made that of a nearly empty table's index a wrong one, which a session
    -- keeps until the table is analysed.
    ours     CONSTANT text := 'coalesce(%s = ANY ((SELECT string_to_array(current_setting(''invoicebridge.tenants'', true), '',''))::text[]), false)';
    ordinary CONSTANT text := current_user;
    t        record;
BEGIN
    -- Roles are the server's. Another database's migration may be making it just now.
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'invoicebridge_tenant') THEN
        BEGIN
            CREATE ROLE invoicebridge_tenant NOLOGIN;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL;
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION 'the database user % may not make the role that keeps tenants apart; have an administrator run once: CREATE ROLE invoicebridge_tenant NOLOGIN; GRANT invoicebridge_tenant TO %;',
                    ordinary, quote_ident(ordinary) USING ERRCODE = 'insufficient_privilege';
        END;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'invoicebridge_tenant' AND (rolsuper OR rolbypassrls)) THEN
        RAISE EXCEPTION 'the role invoicebridge_tenant must neither be a superuser nor have BYPASSRLS';
    END IF;
    BEGIN
        SET LOCAL ROLE invoicebridge_tenant;
    EXCEPTION WHEN insufficient_privilege THEN
        BEGIN
            EXECUTE format('GRANT invoicebridge_tenant TO %I', ordinary);
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE EXCEPTION 'the database user % may not act as the role that keeps tenants apart; have an administrator run once: GRANT invoicebridge_tenant TO %;',
                ordinary, quote_ident(ordinary) USING ERRCODE = 'insufficient_privilege';
        END;
    END;
    EXECUTE format('SET LOCAL ROLE %I', ordinary);

    FOR t IN
        SELECT c.oid, c.oid::regclass AS name, c.relname, c.relrowsecurity AS done, s.condition, s.rights
        FROM pg_class AS c
        CROSS JOIN LATERAL (
            SELECT coalesce(own.condition, format(ours, 'tenant_id')) AS condition, coalesce(own.rights, 'SELECT, INSERT, UPDATE, DELETE') AS rights
            FROM (SELECT 1) AS one
            LEFT JOIN (VALUES
                ('tenants', format(ours, 'id'), 'SELECT'),
                ('audit_entries', NULL, 'SELECT, INSERT'),
                ('accounts', NULL, 'SELECT'),
                ('attempts', 'EXISTS (SELECT FROM operations AS o WHERE o.id = operation_id)', 'SELECT, INSERT, UPDATE'),
                ('replay_items', 'EXISTS (SELECT FROM operations AS o WHERE o.id = operation_id)', 'SELECT, INSERT, UPDATE')
            ) AS own (relname, condition, rights) ON own.relname = c.relname
            WHERE own.relname IS NOT NULL
               OR EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped)
        ) AS s
        WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'tenants'::regclass) AND c.relkind IN ('r', 'p')
        ORDER BY c.relname
    LOOP
        IF NOT t.done THEN
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', t.name);
        END IF;
        IF NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = t.oid AND polname = 'of_the_tenants') THEN
            EXECUTE format('CREATE POLICY of_the_tenants ON %s TO invoicebridge_tenant USING (%s) WITH CHECK (%2$s)', t.name, t.condition);
        END IF;
        EXECUTE format('GRANT %s ON %s TO invoicebridge_tenant', t.rights, t.name);
    END LOOP;

    -- Jobs are put into the queue with what they are about, and hold no more than its id.
    IF to_regclass('river_job') IS NOT NULL THEN
        GRANT INSERT, SELECT (id, kind, state, args, attempted_at) ON river_job TO invoicebridge_tenant;
        GRANT USAGE ON SEQUENCE river_job_id_seq TO invoicebridge_tenant;
    END IF;
    GRANT SELECT ON own_orders TO invoicebridge_tenant;
END $fn$;
-- +goose StatementEnd

-- What a person searches by reads an index by LIKE or lower(), which PostgreSQL will not do below a policy: it does not trust
-- these functions with rows that the policy has yet to hide. In this view the same condition is an ordinary one.
CREATE VIEW own_orders AS
SELECT tenant_id, source, order_id FROM orders
WHERE coalesce(tenant_id = ANY ((SELECT string_to_array(current_setting('invoicebridge.tenants', true), ','))::text[]), false);

-- +goose StatementBegin
SELECT separate_tenants();
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $$
DECLARE
    t record;
BEGIN
    FOR t IN SELECT polrelid::regclass AS name FROM pg_policy WHERE polname = 'of_the_tenants' LOOP
        EXECUTE format('DROP POLICY of_the_tenants ON %s', t.name);
        EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', t.name);
    END LOOP;
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM invoicebridge_tenant', current_schema());
    EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA %I FROM invoicebridge_tenant', current_schema());
END $$;
-- +goose StatementEnd
DROP VIEW own_orders;
DROP FUNCTION separate_tenants();
