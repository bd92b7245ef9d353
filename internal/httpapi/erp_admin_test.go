package httpapi_test

import (
	"net/http"
	"strconv"
	"strings"

	"invoicebridge/internal/testdb"
)

// adminLists and adminActions are the administration of the ERP besides registrations, as the contract names it.
var (
	adminLists   = []string{"targets", "divergences", "reconciliations", "conflicts", "audit", "tokens"}
	adminActions = []string{"targets/{id}/pause", "targets/{id}/resume", "divergences/{id}/accept", "divergences/{id}/close", "reconciliations", "tokens/{id}/revoke"}
)

// provokeAdministration provokes every answer of it but for trouble.
func provokeAdministration(e erp, note func(string, answer), valid func(string, *http.Request)) {
	e.t.Helper()
	const base = "/admin/v1/"
	for _, list := range adminLists {
		path := "GET " + base + list
		valid(path, e.request("GET", base+list, "admin", nil))
		note(path, e.get("admin", base+list+"?no=such"))
		note(path, e.get("", base+list))
		note(path, e.get("writer", base+list))
	}
	e.exec("INSERT INTO targets (tenant_id, id, kind, base_url, credential_ref, locatable, disabled_at) VALUES ('t1', 'desk', 'einvoice', 'http://127.0.0.1:1', 'env:X', true, now())")
	e.exec("INSERT INTO divergences (tenant_id, kind, owner, subject) VALUES ('t1', 'status_differs', 'target', 'x')")
	divergence := e.count("SELECT max(id)::int FROM divergences")
	e.exec("INSERT INTO tokens (id, tenant_id, role, label, secret_hash) VALUES ('tokentokentokent', 't1', 'reader', 'x', decode(repeat('00', 32), 'hex'))")
	ids := map[string]string{"targets": "desk", "divergences": strconv.Itoa(divergence), "tokens": "tokentokentokent"}
	const body = `{"reason":"so"}`
	for _, action := range adminActions {
		path := "POST " + base + action
		kind, _, _ := strings.Cut(action, "/")
		at := base + strings.Replace(action, "{id}", ids[kind], 1)
		note(path, e.admin("admin", at, "{}"))
		note(path, e.admin("", at, body))
		note(path, e.admin("writer", at, body))
		if strings.Contains(action, "{id}") {
			note(path, e.admin("admin", base+strings.Replace(action, "{id}", "0", 1), body))
		}
		note(path, e.admin("admin", at, padded(2*mebibyte+1)))
		plain := e.adminRequest("admin", at, body)
		plain.Header.Set("Content-Type", "text/plain")
		note(path, e.do(plain))
		if kind == "reconciliations" { // the worker's own may be running
			e.exec("UPDATE reconciliation_runs SET finished_at = now() WHERE finished_at IS NULL")
		}
		valid(path, e.adminRequest("admin", at, body))
		if kind == "reconciliations" { // the worker may end a run at any time
			testdb.Await(e.t, "a press meets a run that is going on", func() bool {
				e.exec("INSERT INTO reconciliation_runs (id, tenant_id, scope, window_from, window_to, phase) VALUES (gen_random_uuid(), 't1', 'erp-targets', now() - interval '1 hour', now(), 'final') ON CONFLICT DO NOTHING")
				again := e.admin("admin", at, body)
				note(path, again)
				return again.status == http.StatusConflict
			})
			continue
		}
		note(path, e.admin("admin", at, body)) // a second press
	}
}

// troubleOfAdministration calls each of it.
func troubleOfAdministration(e erp, note func(string, answer)) {
	e.t.Helper()
	for _, list := range adminLists {
		note("GET /admin/v1/"+list, e.get("admin", "/admin/v1/"+list))
	}
	for _, action := range adminActions {
		note("POST /admin/v1/"+action, e.admin("admin", "/admin/v1/"+strings.Replace(action, "{id}", "1", 1), `{"reason":"so"}`))
	}
}
