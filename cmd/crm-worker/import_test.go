package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/orderfile"
	"invoicebridge/internal/testdb"
)

const testTenant = "acme"

// crmSide is a CRM side's database with the service on it, as the commands use it.
type crmSide struct {
	*crm.Service
	t       *testing.T
	pool    *pgxpool.Pool
	console *crm.Console
}

func setup(t *testing.T) crmSide {
	t.Helper()
	t.Parallel()
	pool := testdb.CRM(t)
	if _, err := crmdb.New(pool).TenantInsert(t.Context(), testTenant, "Acme"); err != nil {
		t.Fatal(err)
	}
	inserter, err := jobs.NewInserter(pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	return crmSide{crm.NewService(pool, inserter, crm.Options{}), t, pool, crm.NewConsole(pool, crm.ConsoleOptions{})}
}

func (s crmSide) target() importTarget {
	return importTarget{orders: s, book: s.console, log: slog.New(slog.DiscardHandler)}
}

// stored holds the numbers of orders, operations and jobs against want.
func (s crmSide) stored(want int) {
	s.t.Helper()
	for _, table := range []string{"orders", "operations", "river_job"} {
		var n int
		if err := s.pool.QueryRow(context.Background(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
			s.t.Fatal(err)
		}
		if n != want {
			s.t.Errorf("%d rows in %s, want %d", n, table, want)
		}
	}
}

// parsed gives the command that these arguments stand for.
func parsed[T any](t *testing.T, args ...string) (*T, error) {
	t.Helper()
	var command T
	parser, err := kong.New(&command, kong.Exit(func(int) {}), kong.Vars{"database_env": "NO_SUCH_VARIABLE", "actor": "ann"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(args)
	return &command, err
}

// result is what an import said.
type result struct {
	err    error
	text   string
	report []orderfile.Report
}

// imports runs the command on a file with this content.
func (s crmSide) imports(name, content string, args ...string) result {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	report := path + ".report.json"
	c, err := parsed[ImportCmd](s.t, append(args, "--database-url", "postgres://unused", "--tenant", testTenant, "--report", report, path)...)
	if err != nil {
		s.t.Fatal(err)
	}
	var r result
	var out, progress bytes.Buffer
	r.err = c.run(s.t.Context(), s.target(), strings.NewReader(""), &out, &progress)
	r.text = strings.ReplaceAll(out.String(), path, name)
	if progress.Len() > 0 {
		s.t.Errorf("%q on standard error, which is no terminal", progress.String())
	}
	told, err := os.ReadFile(report)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(told, &r.report); err != nil {
		s.t.Fatal(err)
	}
	return r
}

const head = "source,order,currency,issue_date,customer_name,customer_country,sku,quantity,unit_price,vat_rate,vat_category\n"

// hundred is a file of 100 rows; the unit price of row 57 is as given.
func hundred(price string) string {
	var b strings.Builder
	b.WriteString(head)
	for i := 1; i <= 100; i++ {
		p := "10.00"
		if i == 57 {
			p = price
		}
		fmt.Fprintf(&b, "crm-1,SO-%03d,EUR,2026-03-02,Test Customer A,DE,P-1,2,%s,19,S\n", i, p)
	}
	return b.String()
}

func (r result) wants(t *testing.T, good bool, counts map[orderfile.Outcome]int) {
	t.Helper()
	if (r.err == nil) != good {
		t.Errorf("error %v, want good: %t", r.err, good)
	}
	if diff := cmp.Diff(counts, r.report[0].Counts); diff != "" {
		t.Errorf("rows by outcome (-want +got):\n%s%s", diff, r.text)
	}
}

// N5.
func TestImportingAFileAgainChangesNothing(t *testing.T) {
	s := setup(t)
	s.imports("a.csv", hundred("10.00")).wants(t, true, map[orderfile.Outcome]int{"created": 100})
	s.imports("a.csv", hundred("10.00")).wants(t, true, map[orderfile.Outcome]int{"already_there": 100})
	resaved := "\xEF\xBB\xBF" + strings.ReplaceAll(strings.ReplaceAll(hundred("10.00"), ",", ";"), "\n", "\r\n")
	s.imports("b.csv", resaved, "--delimiter", ";").wants(t, true, map[orderfile.Outcome]int{"already_there": 100})
	s.stored(100)
}

// N5.
func TestABadRowKeepsTheFileOutUntilItIsMended(t *testing.T) {
	s := setup(t)
	for _, price := range []string{"ten", ""} { // what reading refuses, and what Submit does
		s.imports("a.csv", hundred(price)).wants(t, false, map[orderfile.Outcome]int{"refused": 1, "not_stored": 99})
		s.stored(0)
	}
	s.imports("a.csv", hundred("10.00")).wants(t, true, map[orderfile.Outcome]int{"created": 100})
	s.stored(100)
}

func TestKeepGoodTakesTheRest(t *testing.T) {
	s := setup(t)
	for i, price := range []string{"ten", ""} {
		r := s.imports("a.csv", hundred(price), "--keep-good")
		r.wants(t, false, map[orderfile.Outcome]int{"refused": 1, [...]orderfile.Outcome{"created", "already_there"}[i]: 99})
		if !strings.Contains(r.text, "a.csv:58: refused: order SO-057: ") {
			t.Errorf("the bad row is not told:\n%s", r.text)
		}
	}
	s.stored(99)
	s.imports("a.csv", hundred("10.00")).wants(t, true, map[orderfile.Outcome]int{"created": 1, "already_there": 99})
	s.stored(100)
}

// N5.
func TestTwoImportsAtOnceStoreEveryOrderOnce(t *testing.T) {
	s := setup(t)
	results := make([]result, 4)
	var group errgroup.Group
	for i := range results {
		args := []string{}
		if i%2 == 1 {
			args = []string{"--keep-good"}
		}
		group.Go(func() error {
			results[i] = s.imports(fmt.Sprintf("%d.csv", i), hundred("10.00"), args...)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	created := 0
	for _, r := range results {
		if r.err != nil {
			t.Errorf("%v\n%s", r.err, r.text)
		}
		created += r.report[0].Counts["created"]
		if sum := r.report[0].Counts["created"] + r.report[0].Counts["already_there"]; sum != 100 {
			t.Errorf("%v", r.report[0].Counts)
		}
	}
	if created != 100 {
		t.Errorf("%d created in all", created)
	}
	s.stored(100)
}

// N5.
func TestTwoRowsOfAnOrderAreOneInvoiceOfTwoLines(t *testing.T) {
	s := setup(t)
	row := "crm-1,SO-1,EUR,2026-03-02,Test Customer A,DE,P-1,2,10.00,19,S\n"
	s.imports("a.csv", head+row+row).wants(t, true, map[orderfile.Outcome]int{"created": 2})
	s.stored(1)
	var request string
	if err := s.pool.QueryRow(t.Context(), "SELECT convert_from(request, 'UTF8') FROM operations").Scan(&request); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(request, `"sku":"P-1"`); n != 2 {
		t.Fatalf("%d lines in %s", n, request)
	}
}

// N1.
func TestAFileOfAnotherDialectIsRefusedWithAHint(t *testing.T) {
	s := setup(t)
	r := s.imports("a.csv", "\xEF\xBB\xBForder;customer;amount\r\nA-1;Test;10,00\r\n")
	if r.err == nil || !strings.Contains(r.text, "refused as a whole") || !strings.Contains(r.text, "--delimiter ';'") {
		t.Fatalf("%v\n%s", r.err, r.text)
	}
	s.stored(0)
}

// N1.
func TestColumnsOfAnotherNameAndMissingOnesAreDeclared(t *testing.T) {
	s := setup(t)
	s.imports("a.csv", "\xEF\xBB\xBForder;customer;amount\r\nA-1;Test;10,00\r\n", "--delimiter=;", "--decimal=,", "--source=crm-1",
		"--column=customer=customer_name", "--column=amount=unit_price", "--set=currency=EUR", "--set=issue_date=2026-03-02",
		"--set=customer_country=DE", "--set=quantity=1", "--set=vat_category=S", "--set=vat_rate=19",
	).wants(t, true, map[orderfile.Outcome]int{"created": 1})
	s.stored(1)
}

func TestSeveralFilesAreTakenOneByOneAndTheReportMayGoToStandardOutput(t *testing.T) {
	s := setup(t)
	missing := filepath.Join(t.TempDir(), "missing.csv")
	c, err := parsed[ImportCmd](t, "--database-url=postgres://unused", "--tenant", testTenant, "--format=csv", "--report=-", missing, "-")
	if err != nil {
		t.Fatal(err)
	}
	var out, stderr bytes.Buffer
	if err := c.run(t.Context(), s.target(), strings.NewReader(hundred("10.00")), &out, &stderr); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that of the missing file", err)
	}
	var reports []orderfile.Report
	if err := json.Unmarshal(out.Bytes(), &reports); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if len(reports) != 2 || reports[0].Stored || reports[1].Counts["created"] != 100 || !strings.Contains(stderr.String(), "-: 100 rows") {
		t.Errorf("%+v\n%s", reports, stderr.String())
	}
	s.stored(100)
}

func TestADryRunNeedsNoDatabase(t *testing.T) {
	t.Parallel()
	c, err := parsed[ImportCmd](t, "--dry-run", "../../examples/broken.csv")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := c.run(t.Context(), importTarget{}, strings.NewReader(""), &out, &out); err == nil {
		t.Error("no error for a file with refused rows")
	}
	if !strings.Contains(out.String(), "18 rows, 4 orders, 3 checked, 15 refused") {
		t.Errorf("said %s", out.String())
	}
}

func TestImportRefusesArgumentsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"CRM_DATABASE_URL":    {"--tenant=acme", "a.csv"},
		"--tenant":            {"--database-url=x", "a.csv"},
		"tells no format":     {"--dry-run", "a.xlsx"},
		"say --format":        {"--dry-run", "-"},
		"read once":           {"--dry-run", "--format=csv", "-", "-"},
		"one character":       {"--dry-run", "--delimiter=;;", "a.csv"},
		"decimal mark":        {"--dry-run", "--decimal=x", "a.csv"},
		"expected \"<file>\"": {"--dry-run"},
	} {
		if _, err := parsed[ImportCmd](t, args...); err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(want, `expected "<file>"`, "<file>")) {
			t.Errorf("%v: error %v, want one about %s", args, err, want)
		}
	}
}

// The commands are where the program has them, and their settings may come from the environment.
func TestTheProgramImportsAndGenerates(t *testing.T) {
	pool := testdb.CRM(t)
	t.Setenv("CRM_DATABASE_URL", testdb.DSN(t, pool))
	if _, err := crmdb.New(pool).TenantInsert(t.Context(), testTenant, "Acme"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"import", "--tenant", testTenant, "../../examples/orders-crm.jsonl"}, {"generate", "--tenant", testTenant, "--count=10"},
	} {
		var stdout, stderr bytes.Buffer
		if err := run(t.Context(), args, os.Getenv, &stdout, &stderr); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, stderr.String())
		}
		if !strings.Contains(stdout.String(), "created") {
			t.Errorf("%v said %q", args, stdout.String())
		}
	}
	var orders int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM orders").Scan(&orders); err != nil || orders != 260 {
		t.Fatalf("%d orders, %v; want 260", orders, err)
	}
	var imports int
	err := pool.QueryRow(t.Context(), "SELECT count(*) FROM imports WHERE file_name = 'orders-crm.jsonl' AND finished_at IS NOT NULL AND stored").Scan(&imports)
	if err != nil || imports != 1 {
		t.Fatalf("%d imports, %v; want 1", imports, err)
	}
}
