package einvoice_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/target"
)

func items(records string) http.HandlerFunc { return asJSON(200, `{"items":[`+records+`]}`) }

func record(id, status, rest string) string {
	return `{"id":"` + id + `","external_reference":"op-1","number":"INV-1","status":"` + status + `"` + rest + `}`
}

func TestEveryAnswerToALookUpHasItsState(t *testing.T) {
	t.Parallel()
	inconclusive := target.Located{State: target.Inconclusive}
	held := target.Located{State: target.StateHeld, ID: "d-1"}
	landed := target.Located{State: target.Landed, ID: "d-1", Reference: "R-1"}
	for name, tc := range map[string]struct {
		server http.HandlerFunc
		want   target.Located
	}{
		"accepted":                 {items(record("d-1", "accepted", `,"reference":"R-1"`)), landed},
		"accepted without a name":  {items(record("d-1", "accepted", ``)), held},
		"held (Q1)":                {items(record("d-1", "held", ``)), held},
		"processing (Q1)":          {items(record("d-1", "processing", ``)), held},
		"error is no end (Q1)":     {items(record("d-1", "error", ``)), held},
		"status that nobody knows": {items(record("d-1", "archived", ``)), target.Located{State: target.Inconclusive, ID: "d-1"}},
		"rejected": {
			items(record("d-1", "rejected", `,"errors":["no"]`)),
			target.Located{State: target.StateRejected, ID: "d-1", Reasons: []target.Reason{{Detail: "no"}}},
		},
		"nothing": {items(``), target.Located{State: target.Absent}},
		"twice": {
			items(record("d-0", "held", ``) + `,` + record("d-1", "accepted", `,"reference":"R-1"`)),
			target.Located{State: target.Landed, ID: "d-1", Reference: "R-1", Duplicates: []string{"d-0"}},
		},
		"rejected once, then accepted": {items(record("d-0", "rejected", ``) + `,` + record("d-1", "accepted", `,"reference":"R-1"`)), landed},
		"ours among others'":           {items(`{"id":"d-9","external_reference":"op-9"},` + record("d-1", "held", ``)), held},
		"only others'":                 {items(`{"id":"d-9","external_reference":"op-9","status":"accepted","reference":"R-9"}`), inconclusive},
		"another invoice under our reference": {
			items(`{"id":"d-9","external_reference":"op-1","number":"INV-9","status":"accepted","reference":"R-9"}`),
			target.Located{State: target.Inconclusive, ForeignInvoice: "INV-9"},
		},
		"no list":           {asJSON(200, `{}`), inconclusive},
		"null for a list":   {asJSON(200, `{"items":null}`), inconclusive},
		"a bare list (K2)":  {asJSON(200, `[]`), inconclusive},
		"empty":             {asJSON(200, ``), inconclusive},
		"page":              {asPage(200), inconclusive},
		"404 JSON":          {asJSON(404, `{}`), inconclusive},
		"404 page":          {asPage(404), inconclusive},
		"401":               {asPage(401), target.Located{State: target.Inconclusive, NotAuthorised: true}},
		"403":               {asJSON(403, `{}`), target.Located{State: target.Inconclusive, NotAuthorised: true}},
		"403 of a filter":   {asPage(403), inconclusive},
		"429":               {asJSON(429, `{}`, "Retry-After", "1"), target.Located{State: target.Inconclusive, RetryAfter: 1e9}},
		"500":               {asJSON(500, `{"items":[]}`), inconclusive},
		"502 page":          {asPage(502), inconclusive},
		"307":               {asJSON(307, `{"items":[]}`, "Location", "/x"), inconclusive},
		"connection broken": {broken, inconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, serve(t, tc.server), patience)
			checkLocated(t, c.Locate(t.Context(), target.Query{Reference: "op-1", Number: "INV-1"}), tc.want)
		})
	}
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		ctx, giveUp := context.WithCancel(t.Context())
		c := newClient(t, serve(t, silent(giveUp)), patience)
		checkLocated(t, c.Locate(ctx, target.Query{Reference: "op-1"}), inconclusive)
	})
	t.Run("nobody there", func(t *testing.T) {
		t.Parallel()
		closed := httptest.NewServer(nil)
		closed.Close()
		checkLocated(t, newClient(t, closed.URL, patience).Locate(t.Context(), target.Query{Reference: "op-1"}), inconclusive)
	})
	t.Run("no question", func(t *testing.T) {
		t.Parallel()
		c := newClient(t, serve(t, items(``)), patience)
		checkLocated(t, c.Locate(t.Context(), target.Query{}), inconclusive)
	})
}

func checkLocated(t *testing.T, got, want target.Located) {
	t.Helper()
	if got.Detail == "" {
		t.Error("nothing is said for people")
	}
	got.Detail, got.Answer, got.HTTPStatus = "", nil, 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAKnownIDIsAskedForAndItsDisappearanceIsNoProof(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		byID, byReference http.HandlerFunc
		want              target.Located
	}{
		"there":                   {asJSON(200, record("d-1", "accepted", `,"reference":"R-1"`)), broken, target.Located{State: target.Landed, ID: "d-1", Reference: "R-1"}},
		"another record":          {asJSON(200, record("d-2", "accepted", `,"reference":"R-1"`)), broken, target.Located{State: target.Inconclusive}},
		"gone, found otherwise":   {asJSON(404, `{}`), items(record("d-2", "held", ``)), target.Located{State: target.StateHeld, ID: "d-2"}},
		"gone altogether":         {asJSON(404, `{}`), items(``), target.Located{State: target.Inconclusive}},
		"404 of a load balancer":  {asPage(404), items(``), target.Located{State: target.Inconclusive}},
		"no answer to the id":     {broken, items(``), target.Located{State: target.Inconclusive}},
		"another's under this id": {asJSON(200, `{"id":"d-1","number":"INV-9","status":"accepted","reference":"R-9"}`), items(``), target.Located{State: target.Inconclusive, ForeignInvoice: "INV-9"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mux := http.NewServeMux()
			mux.HandleFunc("GET /documents/d-1", tc.byID)
			mux.HandleFunc("GET /documents", tc.byReference)
			c := newClient(t, serve(t, mux.ServeHTTP), patience)
			checkLocated(t, c.Locate(t.Context(), target.Query{Reference: "op-1", Number: "INV-1", Known: "d-1"}), tc.want)
		})
	}
}
