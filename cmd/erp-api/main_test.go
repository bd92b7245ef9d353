package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"invoicebridge/internal/testdb"
)

// output is what one run of the program wrote.
type output struct{ stdout, stderr string }

func erpAPI(t *testing.T, args ...string) (output, error) {
	t.Helper()
	var stdout, stderr strings.Builder
	getenv := func(name string) string { return map[string]string{"USER": "kim"}[name] }
	err := run(t.Context(), args, getenv, &stdout, &stderr)
	return output{stdout.String(), stderr.String()}, err
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, err := erpAPI(t, args...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out.stderr)
	}
	return out.stdout
}

func TestOperatorSetsAServiceUpFromAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	db := "--database-url=" + testdb.Empty(t)
	if out := mustRun(t, "migrate", "status", db); !strings.Contains(out, "pending") || strings.Contains(out, "applied") {
		t.Errorf("status of an empty database:\n%s", out)
	}
	if _, err := erpAPI(t, "tenant", "list", db); err == nil || !strings.Contains(err.Error(), "erp-api migrate up") {
		t.Errorf("administration before the migration: %v", err)
	}
	if out := mustRun(t, "migrate", "up", db); !strings.Contains(out, "applied erp 1") {
		t.Errorf("migrate:\n%s", out)
	}
	if out := mustRun(t, "migrate", "up", db); !strings.Contains(out, "nothing to do") {
		t.Errorf("migrate again:\n%s", out)
	}
	mustRun(t, "tenant", "create", db, "acme", "--name=Acme GmbH", "--reason=set-up")
	if out := mustRun(t, "tenant", "list", db); !strings.Contains(out, "Acme GmbH") {
		t.Errorf("tenants:\n%s", out)
	}
	token := strings.TrimSpace(mustRun(t, "token", "create", db, "--tenant=acme", "--role=writer", "--label=shop"))
	parts := strings.Split(token, "_")
	if len(parts) != 3 || parts[0] != "ibt" {
		t.Fatalf("standard output has more than the token: %q", token)
	}
	list := mustRun(t, "token", "list", db, "--tenant=acme")
	if !strings.Contains(list, parts[1]) || strings.Contains(list, parts[2]) {
		t.Errorf("tokens, which must show the id and not the secret:\n%s", list)
	}
	mustRun(t, "series", "set", db, "--tenant=acme", "--role=final", "--prefix=RE", "--digits=4", "--reason=as before")
	target := []string{"target", "set", db, "--tenant=acme", "--id=gw", "--kind=einvoice", "--url=https://gateway.example/api", "--credential=env:GATEWAY_TOKEN",
		"--key-window=24h", "--locatable", "--reason=as agreed"}
	if _, err := erpAPI(t, append(target, "--absent-after=60s")...); err == nil || !strings.Contains(err.Error(), "--absent-after") {
		t.Errorf("an absence that is believed while the longest request may still be running: %v", err)
	}
	mustRun(t, append(target, "--absent-after=10m")...)
	mustRun(t, "target", "disable", db, "--tenant=acme", "gw")
	if out := mustRun(t, "target", "list", db, "--tenant=acme"); !strings.Contains(out, "env:GATEWAY_TOKEN  24h0m0s     true       10m0s         disabled") {
		t.Errorf("targets:\n%s", out)
	}
	mustRun(t, "token", "revoke", db, "--tenant=acme", parts[1])
	if list := mustRun(t, "token", "list", db, "--tenant=acme"); strings.Contains(list, " -\n") {
		t.Errorf("the token is not shown as revoked:\n%s", list)
	}
}

func TestServeEndsGracefullyWhenToldTo(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "--listen=127.0.0.1:0", "--database-url=" + testdb.NewERPDSN(t), "--log-format=json"},
			func(string) string { return "" }, log, log)
	}()
	var address string
	limit := time.After(30 * time.Second)
	for address == "" {
		lines, err := os.ReadFile(log.Name())
		if err != nil {
			t.Fatal(err)
		}
		if _, rest, found := strings.Cut(string(lines), `"address":"`); found {
			address, _, _ = strings.Cut(rest, `"`)
		}
		select {
		case <-limit:
			t.Fatalf("it does not listen:\n%s", lines)
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	response, err := http.Get("http://" + address + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("/readyz: %d", response.StatusCode)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("a stop is no error: %v", err)
	}
}

func TestHelpAndVersionSuffice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--help"}, []string{"serve", "migrate up", "tenant create", "token revoke", "series set"}},
		{[]string{"serve", "--help"}, []string{"ERP_LISTEN", "ERP_DATABASE_URL", "ERP_MAX_CONNS", "ERP_KEY_RETENTION", "LOG_FORMAT", "LOG_LEVEL"}},
		{[]string{"version"}, []string{"erp-api"}},
	} {
		out := mustRun(t, c.args...)
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v does not mention %s:\n%s", c.args, want, out)
			}
		}
	}
}

func TestMistakesAreToldTogether(t *testing.T) {
	t.Parallel()
	_, err := erpAPI(t, "serve", "--listen=nowhere", "--database-url=", "--log-format=xml", "--request-timeout=1ns")
	if err == nil {
		t.Fatal("it serves")
	}
	for _, variable := range []string{"ERP_LISTEN", "ERP_DATABASE_URL", "LOG_FORMAT", "ERP_REQUEST_TIMEOUT"} {
		if !strings.Contains(err.Error(), variable) {
			t.Errorf("%s is not named: %v", variable, err)
		}
	}
	for _, args := range [][]string{{}, {"sereve"}, {"token", "create", "--database-url=x", "--tenant=a", "--label=b", "--role=root"}} {
		if _, err := erpAPI(t, args...); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
