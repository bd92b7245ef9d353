package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/idempotency"
)

// expiredShare: one in so many of the invoices that a database is filled with is so old that its reservation may be removed.
const expiredShare = 10

// The order and the key of the one invoice that the filled ones are written after.
const (
	modelOrder = "ORDERORDERORDER"
	modelKey   = "KEYKEYKEYKEYKEY"
)

// enlarge fills the other site's database with invoices as the service writes them: this site's service is asked for one, and
// each other has its bytes but for id, number, order, key and time. All columns, constraints and indexes are those of the
// schema, and each can be replayed by its request.
//
// Indexes are made when the rows are there, and foreign keys are not looked up for each row; both only make it quicker.
func (s *site) enlarge(ctx context.Context, large *site) error {
	model, err := s.model(ctx)
	if err != nil {
		return err
	}
	indexes, err := large.dropIndexes(ctx)
	if err != nil {
		return err
	}
	if err := large.fillTables(ctx, model); err != nil {
		return err
	}
	s.lab.say("  rows are there; indexes")
	if err := large.makeIndexes(ctx, indexes); err != nil {
		return err
	}
	s.lab.say("  indexes are there; statistics")
	if err := large.verify(ctx); err != nil {
		return err
	}
	return execute(ctx, large.erpDSN, "VACUUM ANALYZE invoices", "VACUUM ANALYZE invoice_lines", "VACUUM ANALYZE idempotency_records",
		"VACUUM ANALYZE order_balances", "CHECKPOINT")
}

// model is the invoice that others are written after.
type model struct {
	document           string // SQL that gives the bytes for the row at hand
	fingerprint        string // the same
	fingerprintVersion int16
}

func (s *site) model(ctx context.Context) (m model, err error) {
	c, err := dial(ctx, s.running[0].address)
	if err != nil {
		return m, err
	}
	defer c.close()
	body := strings.Replace(invoiceBody, "@", modelOrder, 1)
	request := s.requests.heads[0] + "Idempotency-Key: " + modelKey + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	got, err := c.do(ctx, []byte(request))
	if err == nil {
		err = made(got)
	}
	if err != nil {
		return m, err
	}
	var id, number, created string
	var fingerprint []byte
	err = scan(ctx, s.erpDSN, `SELECT id::text, number, fingerprint, fingerprint_version FROM invoices WHERE operation_key = '`+modelKey+`'`,
		&id, &number, &fingerprint, &m.fingerprintVersion)
	if err != nil {
		return m, err
	}
	if _, after, found := bytes.Cut(got.body, []byte(`"created_at":"`)); found {
		text, _, _ := bytes.Cut(after, []byte(`"`))
		created = string(text)
	}
	if m.document, err = template(string(got.body), map[string]string{
		id: "id::text", number: "number", modelOrder: "order_id", modelKey: "order_id", created: "created",
	}); err != nil {
		return m, fmt.Errorf("the document of the model: %w", err)
	}
	return m, m.fingerprintOf(fingerprint)
}

// fingerprintOf makes the SQL of the fingerprint, and tries it with the model's own.
func (m *model) fingerprintOf(stored []byte) error {
	const before = "invoicebridge invoice request v1\n" // as package idempotency has it
	text, err := canonical()
	if err != nil {
		return err
	}
	hashed := strings.Replace(text, `"order":"@"`, `"order":"`+modelOrder+`"`, 1)
	want := idempotency.NewFingerprint(erpapi.CanonicalVersion, []byte(hashed))
	if !bytes.Equal(want.Sum[:], stored) {
		return errors.New("the fingerprint of a request is not made as it was")
	}
	expression, err := template(before+hashed, map[string]string{modelOrder: "order_id"})
	m.fingerprint = "sha256(convert_to(" + expression + ", 'UTF8'))"
	return err
}

// template is SQL that writes the text with others in place of some of its parts, each of which it has.
func template(text string, parts map[string]string) (string, error) {
	var sql []string
	for part := range parts {
		if part == "" || !strings.Contains(text, part) {
			return "", fmt.Errorf("%q is not in it", part)
		}
	}
	for text != "" {
		at, next := len(text), ""
		for part := range parts {
			if i := strings.Index(text, part); i >= 0 && (i < at || i == at && len(part) > len(next)) {
				at, next = i, part
			}
		}
		if at > 0 {
			sql = append(sql, literal(text[:at]))
		}
		if next == "" {
			break
		}
		sql = append(sql, parts[next])
		text = text[at+len(next):]
	}
	return strings.Join(sql, " || "), nil
}

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// fillTables writes the rows, on two connections. That the database has no rows yet and nobody to read them is used.
func (s *site) fillTables(ctx context.Context, m model) error {
	group, ctx := errgroup.WithContext(ctx)
	invoices, besides := s.fillStatements(m)
	for _, statements := range [][]string{invoices, besides} {
		group.Go(func() error {
			return execute(ctx, s.erpDSN, append([]string{
				"SET session_replication_role = replica", // foreign keys are made sure of by how the rows are made
				"SET synchronous_commit = off",           // lost if the machine fails, and then so is the run
				"SET work_mem = '64MB'",
			}, statements...)...)
		})
	}
	return group.Wait()
}

// row gives each number its id, its order (which is its key, too), its place in its tenant's series and its times.
func (s *site) row() string {
	return fmt.Sprintf(`(
		SELECT n, ('0190' || lpad(to_hex(n), 8, '0') || '7000b' || substr(md5(n::text), 1, 15))::uuid AS id, 't' || n %% %[1]d AS tenant_id,
		       'L' || n AS order_id, n / %[1]d + 1 AS series_number, 'LOT-2026-' || lpad((n / %[1]d + 1)::text, 6, '0') AS number,
		       now() - interval '100 days' * (1 - n / %[2]d.0) AS created_at
		FROM generate_series(0, %[2]d - 1) AS n OFFSET 0) AS r`, s.lab.scale.tenants, s.lab.scale.large)
}

func (s *site) fillStatements(m model) (invoices, besides []string) {
	row := s.row()
	invoices = []string{fmt.Sprintf(`
		INSERT INTO invoices (
		    id, tenant_id, number, series_prefix, series_year, series_number, status, source, order_id, role, sequence,
		    operation_key, fingerprint_version, fingerprint, currency, issue_date, due_date,
		    customer_name, customer_country, customer_vat_id, net, vat, gross, payable, corrects_id, document, created_at)
		SELECT id, tenant_id, number, 'LOT', 2026, series_number, 'issued', 'bench', order_id, 'final', 1, order_id, %d, %s,
		       'EUR', '2026-03-02', '2026-04-01', 'Nordwind Handels GmbH', 'DE', 'DE811907980', 249.80, 47.46, 297.26, 297.26, NULL,
		       convert_to(%s, 'UTF8'), created_at
		FROM (SELECT *, to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created FROM %s) AS r`,
		m.fingerprintVersion, m.fingerprint, m.document, row)}
	besides = []string{
		fmt.Sprintf(`
		INSERT INTO invoice_lines (
		    invoice_id, position, sku, description, quantity, unit_price, discount, vat_rate, vat_category, exemption_reason, net)
		SELECT r.id, l.* FROM %s, (VALUES
		    (1, 'KB-104', 'Keyboard, mechanical', 2, 89.90, 0, 19, 'S', '', 179.80),
		    (2, 'CB-2M', 'Cable USB-C, 2 m', 10, 7.35, 3.50, 19, 'S', '', 70.00)) AS l`, row),
		fmt.Sprintf(`
		INSERT INTO idempotency_records (
		    tenant_id, operation, key, fingerprint_version, fingerprint, status, answer_status, resource_id, first_seen_at, completed_at, expires_at)
		SELECT tenant_id, 'issue_invoice', order_id, %d, %s, 'succeeded', 201, id, created_at, created_at, created_at + interval '90 days'
		FROM %s`, m.fingerprintVersion, m.fingerprint, row),
		fmt.Sprintf(`
		INSERT INTO order_balances (tenant_id, source, order_id, currency, invoiced_gross, credited_gross)
		SELECT tenant_id, 'bench', order_id, 'EUR', 297.26, 0 FROM %s`, row),
		fmt.Sprintf(`
		INSERT INTO invoice_counters (tenant_id, prefix, year, last_number)
		SELECT tenant_id, 'LOT', 2026, max(series_number) FROM %s GROUP BY tenant_id`, row),
	}
	return invoices, besides
}

// index is one that is to be made again.
type index struct{ create, attach string }

// dropIndexes removes those of the tables to be filled, except the keys that others refer to.
func (s *site) dropIndexes(ctx context.Context) (indexes []index, err error) {
	conn, err := pgx.Connect(ctx, s.erpDSN)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, `
		SELECT t.relname, i.relname, pg_get_indexdef(x.indexrelid), coalesce(c.conname, ''), coalesce(c.contype = 'p', false)
		FROM pg_index AS x
		JOIN pg_class AS t ON t.oid = x.indrelid
		JOIN pg_class AS i ON i.oid = x.indexrelid
		LEFT JOIN pg_constraint AS c ON c.conindid = x.indexrelid AND c.contype IN ('p', 'u')
		WHERE t.relname IN ('invoices', 'invoice_lines', 'idempotency_records', 'order_balances') AND t.relnamespace = 'public'::regnamespace
		  AND NOT EXISTS (SELECT FROM pg_constraint AS f WHERE f.contype = 'f' AND f.conindid = x.indexrelid)
		ORDER BY x.indexrelid`)
	if err != nil {
		return nil, err
	}
	var drops []string
	var table, name, definition, constraint string
	var primary bool
	_, err = pgx.ForEachRow(rows, []any{&table, &name, &definition, &constraint, &primary}, func() error {
		made, drop := index{create: definition}, "DROP INDEX "+name
		if constraint != "" {
			kind := map[bool]string{true: "PRIMARY KEY", false: "UNIQUE"}[primary]
			made.attach = fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT %s %s USING INDEX %s", table, constraint, kind, name)
			drop = fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s", table, constraint)
		}
		indexes, drops = append(indexes, made), append(drops, drop)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return indexes, execute(ctx, s.erpDSN, drops...)
}

// makeIndexes makes them again, two at a time, and then the constraints that they are for, in the order that they had.
func (s *site) makeIndexes(ctx context.Context, indexes []index) error {
	group, making := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for _, i := range indexes {
		group.Go(func() error {
			return execute(making, s.erpDSN, "SET max_parallel_maintenance_workers = 0", i.create)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, i := range indexes {
		if i.attach == "" {
			continue
		}
		if err := execute(ctx, s.erpDSN, i.attach); err != nil {
			return err
		}
	}
	return nil
}

// verify looks whether the rows are as many as they have to be, and go together.
func (s *site) verify(ctx context.Context) error {
	n := s.lab.scale.large
	var invoices, lines, records, balances, expired int
	err := scan(ctx, s.erpDSN, `SELECT (SELECT count(*) FROM invoices), (SELECT count(*) FROM invoice_lines), (SELECT count(*) FROM idempotency_records),
		(SELECT count(*) FROM order_balances), (SELECT count(*) FROM idempotency_records WHERE expires_at < now())`,
		&invoices, &lines, &records, &balances, &expired)
	if err == nil && (invoices != n || lines != 2*n || records != n || balances != n || expired < n/expiredShare) {
		err = fmt.Errorf("%d invoices, %d lines, %d reservations, %d balances, %d expired, instead of %d", invoices, lines, records, balances, expired, n)
	}
	return err
}
