package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/problem"
)

func TestOnlyAValidTokenOpensTheAPI(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	token := e.tokens["writer"]
	parts := strings.Split(token, "_")
	for name, values := range map[string][]string{
		"none":              nil,
		"empty":             {""},
		"no scheme":         {token},
		"other scheme":      {"Basic " + token},
		"scheme alone":      {"Bearer"},
		"empty token":       {"Bearer "},
		"two headers":       {"Bearer " + token, "Bearer " + token},
		"not a token":       {"Bearer x"},
		"prefix of secret":  {"Bearer " + token[:len(token)-1]},
		"more than secret":  {"Bearer " + token + "0"},
		"other secret":      {"Bearer " + parts[0] + "_" + parts[1] + "_" + strings.Repeat("0", 64)},
		"unknown id":        {"Bearer " + parts[0] + "_" + strings.Repeat("a", 16) + "_" + parts[2]},
		"secret in capital": {"Bearer " + parts[0] + "_" + parts[1] + "_" + strings.ToUpper(parts[2])},
		"megabyte":          {"Bearer " + strings.Repeat("a", 60_000)},
		"SQL":               {"Bearer ibt_' OR 1=1 --_x"},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := e.postRequest("", "k-1", []byte(base))
			r.Method = method
			r.Header["Authorization"] = values
			a := e.do(r)
			a.wantProblem(401, problem.Unauthenticated)
			if got := a.header.Get("WWW-Authenticate"); got != `Bearer realm="invoicebridge"` {
				t.Errorf("%s: WWW-Authenticate is %q", name, got)
			}
		}
	}
	e.wantStored(0)
	r := e.postRequest("", "k-1", []byte(base))
	r.Header.Set("Authorization", "bearer "+token) // a scheme has no case (RFC 9110, 11.1)
	e.do(r).wantFirst()
}

func TestRolesDecideWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	for _, c := range []struct {
		token     string
		get, post int
	}{
		{"reader", 200, 403}, {"writer", 200, 201}, {"admin", 200, 201},
	} {
		if a := e.get(c.token, "/v1/invoices"); a.status != c.get {
			t.Errorf("%s reads: %d, want %d", c.token, a.status, c.get)
		}
		a := e.postAs(c.token, "k-"+c.token, forOrder("SO-"+c.token))
		if a.status != c.post {
			t.Errorf("%s issues: %d, want %d", c.token, a.status, c.post)
		}
		if c.post == 403 {
			a.wantProblem(403, problem.Forbidden)
		}
	}
	e.wantStored(2)
}

// D1 (b): a refusal is not remembered.
func TestRevokedTokenEndsWithTheNextRequestAndLeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	admin := auth.NewAdmin(erpstore.New(e.pool))
	by := audit.By{Actor: "test", Reason: "lost"}
	id, text, err := admin.CreateToken(t.Context(), "t1", auth.RoleWriter, "second", by)
	if err != nil {
		t.Fatal(err)
	}
	e.tokens["second"] = text
	if a := e.get("second", "/v1/invoices"); a.status != 200 {
		t.Fatalf("a new token: %d", a.status)
	}
	if err := admin.RevokeToken(t.Context(), "t1", id, by); err != nil {
		t.Fatal(err)
	}
	e.postAs("second", "k-1", base).wantProblem(401, problem.Unauthenticated)
	e.wantStored(0)
	e.post("k-1", base).wantFirst()
}

func TestReplaysAreAuthorisedAgain(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	e.post("k-1", base).wantFirst()
	e.postAs("reader", "k-1", base).wantProblem(403, problem.Forbidden)
	e.postAs("", "k-1", base).wantProblem(401, problem.Unauthenticated)
}
