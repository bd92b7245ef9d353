package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/testdb"
)

// command runs the program and gives its output.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err := run(t.Context(), args, func(string) string { return "" }, &stdout, &stderr)
	return stdout.String(), err
}

func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := command(t, args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out
}

func TestFromAnEmptyDatabaseToATokenAndAnOrderShown(t *testing.T) {
	t.Parallel()
	database := "--database-url=" + testdb.Empty(t)
	if _, err := command(t, "tenant", "list", database); err == nil || !strings.Contains(err.Error(), "crm-worker migrate up") {
		t.Errorf("an empty database is told as %v", err)
	}
	must(t, "migrate", "up", database)
	if out := must(t, "migrate", "up", database); !strings.Contains(out, "nothing to do") {
		t.Errorf("a second migration says %q", out)
	}
	must(t, "tenant", "create", "acme", "--name=Acme", "--actor=me", database)
	token := must(t, "token", "create", "--tenant=acme", "--role=writer", "--label=shop", "--actor=me", database)
	if !strings.HasPrefix(token, "ibt_") {
		t.Errorf("token is %q", token)
	}
	if out := must(t, "token", "list", "--tenant=acme", database); !strings.Contains(out, "shop") {
		t.Errorf("tokens are %q", out)
	}
}

func TestHelpSuffices(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"serve", "--help"}, {"import", "--help"}} {
		if out := must(t, args...); !strings.Contains(out, "Usage: crm-worker") {
			t.Errorf("%v gives %q", args, out)
		}
	}
}

func TestOrdersAndOperationsAreShown(t *testing.T) {
	t.Parallel()
	pool := testdb.CRM(t)
	database := "--database-url=" + testdb.DSN(t, pool)
	must(t, "tenant", "create", "acme", "--name=Acme", "--actor=me", database)
	key := submit(t, pool, crm.Order{
		Source: "crm-1", Order: "SO-1", Currency: "EUR", IssueDate: "2026-03-02", Customer: erpapi.Customer{Name: "A"},
		Lines: []erpapi.Line{{Quantity: decimal("1"), UnitPrice: decimal("1"), VATCategory: "S"}},
	})
	var order crm.OrderDetail
	if err := json.Unmarshal([]byte(must(t, "orders", "show", "crm-1", "SO-1", "--tenant=acme", database)), &order); err != nil {
		t.Fatal(err)
	}
	if len(order.Operations) != 1 || order.Operations[0].Key != key {
		t.Errorf("order is %+v", order)
	}
	for _, out := range []string{
		must(t, "operations", "show", key, "--tenant=acme", database),
		must(t, "operations", "list", "--tenant=acme", "--status=pending", database),
	} {
		if !strings.Contains(out, key) {
			t.Errorf("the operation is not in %q", out)
		}
	}
	if _, err := command(t, "orders", "show", "crm-1", "SO-2", "--tenant=acme", database); err == nil {
		t.Error("an order that is not there is shown")
	}
}

func TestServeTellsEveryMistakeOfItsConfiguration(t *testing.T) {
	t.Parallel()
	_, err := command(t, "serve", "--listen=x", "--database-url=", "--erp-url=erp", "--erp-token=acme")
	for _, variable := range []string{"CRM_LISTEN", "CRM_DATABASE_URL", "ERP_URL", "ERP_TOKENS"} {
		if err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s is not told: %v", variable, err)
		}
	}
}

func submit(t *testing.T, pool *pgxpool.Pool, order crm.Order) (key string) {
	t.Helper()
	inserter, err := jobs.NewInserter(pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	subs, err := crm.NewService(pool, inserter, crm.Options{}).Submit(context.Background(), "acme", crm.ChannelAPI, []crm.Order{order}, crm.SubmitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return subs[0].Operations[0].Key
}

func decimal(text string) *erpapi.Decimal { d := erpapi.MustDecimal(text); return &d }
