package httpapi_test

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/crm"
)

// consolePageOf is one page of a list of the console.
type consolePageOf[T any] struct {
	Items          []T     `json:"items"`
	NextCursor     *string `json:"next_cursor"`
	PreviousCursor *string `json:"previous_cursor"`
}

func TestFiguresOfTheDashboardCanBeReadByPrograms(t *testing.T) {
	s := setupCRM(t)
	admin := s.token("acme", auth.RoleAdmin)
	s.submitted("SO-1")
	s.ended(s.submitted("SO-2"), flaggedUnknown)
	s.submits("/v1/orders", orderJSON("SO-3", `"x"`), http.StatusUnprocessableEntity, nil)
	s.exec(`INSERT INTO divergences (tenant_id, kind, owner, subject) VALUES ('acme', 'missing_in_erp', 'erp', 'k')`)
	var d crm.Dashboard
	s.adminCall(http.MethodGet, "dashboard", admin, "", http.StatusOK, &d)
	counts := map[crm.OperationStatus]int64{}
	for _, state := range d.States {
		counts[state.Status] = state.Count
	}
	if counts[crm.StatusPending] != 1 || counts[crm.StatusUnknown] != 1 || d.Attention.Count != 1 || d.RefusedIntake != 1 || len(d.Divergences) != 1 {
		t.Errorf("figures are %+v", d)
	}
	s.adminCall(http.MethodGet, "dashboard", s.token("other", auth.RoleAdmin), "", http.StatusOK, &d)
	if d.Attention.Count != 0 || d.RefusedIntake != 0 || len(d.Divergences) != 0 {
		t.Errorf("another tenant's figures are %+v", d)
	}
	s.adminCall(http.MethodGet, "dashboard?x=1", admin, "", http.StatusBadRequest, nil)
	s.adminCall(http.MethodGet, "dashboard", s.reader, "", http.StatusForbidden, nil)
	s.adminCall(http.MethodGet, "dashboard", "", "", http.StatusUnauthorized, nil)
}

func TestWhatWasTurnedAwayCanBeReadByPrograms(t *testing.T) {
	s := setupCRM(t)
	admin := s.token("acme", auth.RoleAdmin)
	bad := orderJSON("SO-1", `"x"`)
	s.submits("/v1/orders", bad, http.StatusUnprocessableEntity, nil)
	s.submits("/v1/orders", "{", http.StatusBadRequest, nil)
	s.submits("/v1/orders", orderJSON("SO-2", `"y"`), http.StatusUnprocessableEntity, nil)
	var all, page consolePageOf[crm.IntakeRefusal]
	s.adminCall(http.MethodGet, "intake", admin, "", http.StatusOK, &all)
	if len(all.Items) != 3 || all.Items[0].Order != "SO-2" || all.Items[2].Problem != "invalid-order" {
		t.Fatalf("refusals are %+v", all.Items)
	}
	s.adminCall(http.MethodGet, "intake?problem=invalid-order&source=crm-1&channel=api&sort=oldest&limit=1&from=2020-01-01", admin, "", http.StatusOK, &page)
	if len(page.Items) != 1 || page.Items[0].Order != "SO-1" || page.NextCursor == nil {
		t.Fatalf("page is %+v", page)
	}
	s.adminCall(http.MethodGet, "intake?problem=invalid-order&source=crm-1&channel=api&sort=oldest&limit=1&from=2020-01-01&cursor="+*page.NextCursor, admin, "", http.StatusOK, &page)
	if len(page.Items) != 1 || page.Items[0].Order != "SO-2" || page.PreviousCursor == nil {
		t.Errorf("page is %+v", page)
	}
	var one crm.IntakeRefusal
	path := fmt.Sprintf("intake/%d", all.Items[2].ID)
	s.adminCall(http.MethodGet, path, admin, "", http.StatusOK, &one)
	if one.Body != bad || one.BodySize != int64(len(bad)) || len(one.Errors) != 1 || one.Errors[0].Pointer != "/lines/0/quantity" {
		t.Errorf("refusal is %+v", one)
	}
	s.adminCall(http.MethodGet, path, s.token("other", auth.RoleAdmin), "", http.StatusNotFound, nil)
	for _, none := range []string{"intake/x", "intake/0"} {
		s.adminCall(http.MethodGet, none, admin, "", http.StatusNotFound, nil)
	}
	for _, wrong := range []string{"limit=0", "sort=up", "cursor=x", "from=x", "to=yesterday", "x=1"} {
		s.adminCall(http.MethodGet, "intake?"+wrong, admin, "", http.StatusBadRequest, nil)
	}
	s.adminCall(http.MethodGet, "intake", s.reader, "", http.StatusForbidden, nil)
}

func TestImportedFilesCanBeReadByPrograms(t *testing.T) {
	s := setupCRM(t)
	admin := s.token("acme", auth.RoleAdmin)
	id := s.imported("orders.csv", crm.ImportRow{Line: 3, Order: "SO-2", Outcome: "refused", Reason: "no quantity"})
	running := s.imports("second.csv")
	var page consolePageOf[crm.Import]
	s.adminCall(http.MethodGet, "imports?limit=5&sort=oldest", admin, "", http.StatusOK, &page)
	if len(page.Items) != 2 || page.Items[0].ID != id || page.Items[1].ID != running || page.Items[1].FinishedAt != nil || page.Items[0].Refused != nil {
		t.Errorf("imports are %+v", page.Items)
	}
	var one crm.Import
	s.adminCall(http.MethodGet, "imports/"+id.String(), admin, "", http.StatusOK, &one)
	if one.File != "orders.csv" || one.NotTaken() != 1 || len(one.Refused) != 1 || one.Refused[0].Reason != "no quantity" {
		t.Errorf("import is %+v", one)
	}
	s.adminCall(http.MethodGet, "imports/"+id.String(), s.token("other", auth.RoleAdmin), "", http.StatusNotFound, nil)
	s.adminCall(http.MethodGet, "imports/x", admin, "", http.StatusNotFound, nil)
	for _, wrong := range []string{"limit=x", "sort=up", "cursor=x", "problem=x"} {
		s.adminCall(http.MethodGet, "imports?"+wrong, admin, "", http.StatusBadRequest, nil)
	}
}

// imports begins the import of a file, which goes on.
func (s *crmServer) imports(file string) uuid.UUID {
	s.t.Helper()
	id, err := crm.NewConsole(s.pool, crm.ConsoleOptions{}).BeginImport(s.t.Context(), "acme", crm.Import{File: file, Format: "csv", Actor: "ada"})
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// imported is an import that has ended, with one order that was taken and one row that was not.
func (s *crmServer) imported(file string, row crm.ImportRow) uuid.UUID {
	s.t.Helper()
	id := s.imports(file)
	err := crm.NewConsole(s.pool, crm.ConsoleOptions{}).FinishImport(s.t.Context(), "acme", crm.Import{
		ID: id, SHA256: hex.EncodeToString([]byte(strings.Repeat("s", 32))), Size: 100, Stored: true, Rows: 2, Orders: 1,
		Counts: []crm.ImportCount{{Outcome: "created", Rows: 1}, {Outcome: row.Outcome, Rows: 1}}, Refused: []crm.ImportRow{row},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func TestTheAuditCanBeReadByPrograms(t *testing.T) {
	s := setupCRM(t)
	admin := s.personal("acme", "ann")
	key := s.submitted("SO-1")
	s.adminCall(http.MethodPost, "operations/"+key+"/cancel", admin, because, http.StatusOK, nil)
	s.adminCall(http.MethodPost, "sources/crm-1/pause", admin, because, http.StatusOK, nil)
	var page consolePageOf[crm.AuditEntry]
	s.adminCall(http.MethodGet, "audit?actor=ann&sort=oldest", admin, "", http.StatusOK, &page)
	if len(page.Items) != 2 || page.Items[0].Action != "operation.cancel" || page.Items[0].Reason != "seen to it" || page.Items[0].Via != "api" {
		t.Errorf("entries are %+v", page.Items)
	}
	s.adminCall(http.MethodGet, "audit?action=operation.cancel&subject="+key+"&to=2099-01-01&limit=1", admin, "", http.StatusOK, &page)
	if len(page.Items) != 1 || page.Items[0].Subject != key {
		t.Errorf("entries are %+v", page.Items)
	}
	s.adminCall(http.MethodGet, "audit?actor=ann", s.token("other", auth.RoleAdmin), "", http.StatusOK, &page)
	if len(page.Items) != 0 {
		t.Errorf("another tenant sees %+v", page.Items)
	}
	for _, wrong := range []string{"limit=201", "sort=up", "cursor=x", "from=x", "via=api"} {
		s.adminCall(http.MethodGet, "audit?"+wrong, admin, "", http.StatusBadRequest, nil)
	}
	s.adminCall(http.MethodGet, "audit", s.reader, "", http.StatusForbidden, nil)
}
