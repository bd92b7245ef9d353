package main

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/testdb"
)

// tellsAll fails unless text has all of these.
func tellsAll(t *testing.T, what, text string, all ...string) {
	t.Helper()
	for _, part := range all {
		if !strings.Contains(text, part) {
			t.Errorf("%s does not say %q but\n%s", what, part, text)
		}
	}
}

// refuses fails unless the command fails with this text.
func refuses(t *testing.T, text string, args ...string) {
	t.Helper()
	if _, err := command(t, args...); err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%v: %v, want %q", args, err, text)
	}
}

func audited(t *testing.T, pool *pgxpool.Pool, action, subject string) (n int) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `SELECT count(*) FROM audit_entries
		WHERE actor = 'ann' AND reason = 'the books are closed' AND via = 'cli' AND action = $1 AND subject = $2`, action, subject).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestASourceIsPausedAndResumedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	pool := testdb.CRM(t)
	database := "--database-url=" + testdb.DSN(t, pool)
	must(t, "tenant", "create", "acme", "--name=Acme", "--actor=me", database)
	submit(t, pool, smallOrder("SO-1"))
	list := func() string { return must(t, "sources", "list", "--tenant=acme", database) }
	if fields := strings.Fields(strings.Split(list(), "\n")[1]); strings.Join(fields, " ") != "crm-1 1 0 0 0 - - -" {
		t.Errorf("the source is %v", fields)
	}
	args := []string{"crm-1", "--tenant=acme", "--actor=ann", "--reason=the books are closed", database}
	pause, resume := append([]string{"sources", "pause"}, args...), append([]string{"sources", "resume"}, args...)
	refuses(t, "not paused", resume...)
	tellsAll(t, "pause", must(t, pause...), "crm-1 is paused since ")
	tellsAll(t, "list", list(), "ann", "the books are closed")
	refuses(t, "paused already, by ann", pause...)
	if _, err := pool.Exec(context.Background(), "DELETE FROM river_job"); err != nil {
		t.Fatal(err)
	}
	tellsAll(t, "resume", must(t, resume...), "crm-1 goes on; 1 operations queued")
	if strings.Contains(list(), "ann") {
		t.Errorf("the source is still paused: %s", list())
	}
	var queued int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM river_job WHERE kind = 'deliver_operation'").Scan(&queued); err != nil || queued != 1 {
		t.Errorf("%d jobs, want 1; %v", queued, err)
	}
	for _, action := range []string{"source.pause", "source.resume"} {
		if n := audited(t, pool, action, "crm-1"); n != 1 {
			t.Errorf("%s is in the audit %d times, want once", action, n)
		}
	}
	refuses(t, "--reason", "sources", "pause", "crm-1", "--tenant=acme", database)
	refuses(t, `no tenant "nope"`, "sources", "pause", "crm-1", "--tenant=nope", "--reason=x", database)
	refuses(t, `no tenant "nope"`, "sources", "list", "--tenant=nope", database)
}

func TestAnOperationIsCancelledFromTheCommandLineWhileNothingOfItHasLeft(t *testing.T) {
	t.Parallel()
	pool := testdb.CRM(t)
	database := "--database-url=" + testdb.DSN(t, pool)
	must(t, "tenant", "create", "acme", "--name=Acme", "--actor=me", database)
	key, sent := submit(t, pool, smallOrder("SO-1")), submit(t, pool, smallOrder("SO-2"))
	if _, err := pool.Exec(context.Background(), "UPDATE operations SET status = 'unknown', attempt = 1, first_sent_at = now() WHERE key = $1", sent); err != nil {
		t.Fatal(err)
	}
	cancel := func(key string) []string {
		return []string{"operations", "cancel", key, "--tenant=acme", "--actor=ann", "--reason=the books are closed", database}
	}
	tellsAll(t, "cancel", must(t, cancel(key)...), `"status": "cancelled"`, key)
	refuses(t, "cancelled and stays so", cancel(key)...)
	refuses(t, "may have reached the ERP", cancel(sent)...)
	refuses(t, "no operation with this key", cancel("nothing")...)
	if n := audited(t, pool, "operation.cancel", key); n != 1 {
		t.Errorf("it is in the audit %d times, want once", n)
	}
	if n := audited(t, pool, "operation.cancel", sent); n != 0 {
		t.Errorf("what was refused is in the audit %d times", n)
	}
}

func TestHelpOfWhatIsDoneByHandSaysWhatItDoes(t *testing.T) {
	t.Parallel()
	for text, args := range map[string][]string{
		"never left":                {"operations", "cancel", "--help"},
		"orders go on being taken":  {"sources", "pause", "--help"},
		"oldest 10,000":             {"sources", "resume", "--help"},
		"Let a paused source's":     {"sources", "--help"},
		"Take back an operation of": {"operations", "--help"},
	} {
		// kong breaks lines where they fit
		tellsAll(t, strings.Join(args, " "), strings.Join(strings.Fields(must(t, args...)), " "), text)
	}
}
