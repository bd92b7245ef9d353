package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/problem"
	"invoicebridge/web"
)

// oneOperator is logged in with whatever cookie, and notes whether the session counts as used.
type oneOperator struct {
	Sessions
	used *[]bool
}

var operatorOfTest = auth.Identity{Tenant: "acme", Account: uuid.New(), Name: "ada", DisplayName: "Ada", Role: auth.RoleOperator}

func (o oneOperator) Identify(_ context.Context, _ string, used bool) (auth.Identity, error) {
	if o.used != nil {
		*o.used = append(*o.used, used)
	}
	return operatorOfTest, nil
}

// formServer has a page with a form, whose action ends with err.
func formServer(t *testing.T, err error, used *[]bool) (s *server, acted *audit.By) {
	t.Helper()
	s, made := newServer(Deps{Sessions: oneOperator{used: used}}, look{short: "erp", service: "test"})
	if made != nil {
		t.Fatal(made)
	}
	acted = new(audit.By)
	page := func(c echo.Context) error {
		return s.show(c, web.Home{Layout: s.layout(c, "Thing "+c.Param("id"), "")})
	}
	s.page("/things/:id", auth.MayRead, page)
	s.form("/things/:id/press", auth.MayOperate, func(c echo.Context) error {
		*acted = by(c, "because")
		if err != nil {
			return s.again(c, err, page)
		}
		return s.done(c, "/things/"+c.Param("id"), "It is done: ü <b>")
	})
	s.api(http.MethodPost, "/v1/things", auth.MayWrite, func(c echo.Context) error { *acted = by(c, "because"); return nil })
	return s, acted
}

func send(s *server, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.AddCookie(&http.Cookie{Name: s.sessionCookie(), Value: "x"})
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, r)
	return answer
}

func TestFinishedActionIsToldOnceOnThePageItLeadsTo(t *testing.T) {
	t.Parallel()
	s, acted := formServer(t, nil, nil)
	pressed := send(s, "POST", "/things/7/press")
	if pressed.Code != http.StatusSeeOther || pressed.Header().Get("Location") != "/things/7" {
		t.Fatalf("got %d to %q", pressed.Code, pressed.Header().Get("Location"))
	}
	cookie := pressed.Result().Cookies()[0]
	page := send(s, "GET", "/things/7", "Cookie", cookie.Name+"="+cookie.Value)
	if !strings.Contains(page.Body.String(), "It is done: ü &lt;b&gt;") {
		t.Errorf("not told:\n%s", page.Body)
	}
	if cleared := page.Result().Cookies(); len(cleared) != 1 || cleared[0].Name != cookie.Name || cleared[0].MaxAge >= 0 {
		t.Errorf("the message is not cleared: %v", cleared)
	}
	if acted.Actor != "ada" || acted.Via != audit.ViaConsole || acted.Account != operatorOfTest.Account || acted.Reason != "because" ||
		acted.Address != "192.0.2.1" || acted.RequestID != pressed.Header().Get(requestIDHeader) {
		t.Errorf("the audit is told %+v", *acted)
	}
}

func TestRefusedActionShowsItsPageAgainWithTheReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		told   string
	}{
		{problem.New(problem.WrongState, "It is finished."), 409, "It is finished."},
		{&problem.Problem{Type: problem.InvalidOrder, Detail: "Wrong.", Errors: []problem.FieldError{{Pointer: "/lines/0", Detail: "is empty"}}}, 422, "lines/0: is empty"},
		{problem.New(problem.NotFound, ""), 404, "There is no such thing."},
	} {
		s, _ := formServer(t, c.err, nil)
		answer := send(s, "POST", "/things/7/press")
		if body := answer.Body.String(); answer.Code != c.status || !strings.Contains(body, "Thing 7") || !strings.Contains(body, c.told) {
			t.Errorf("%v: %d\n%s", c.err, answer.Code, body)
		}
	}
}

func TestUnexpectedFailureIsAPageThatTellsNothingOfItself(t *testing.T) {
	t.Parallel()
	s, _ := formServer(t, errors.New("relation secrets does not exist"), nil)
	answer := send(s, "POST", "/things/7/press")
	body := answer.Body.String()
	if answer.Code != 500 || strings.Contains(body, "secrets") || !strings.Contains(body, answer.Header().Get(requestIDHeader)) ||
		!strings.HasPrefix(answer.Header().Get("Content-Type"), "text/html") {
		t.Errorf("%d %s\n%s", answer.Code, answer.Header().Get("Content-Type"), body)
	}
}

func TestMessagesThatNobodySentAreNotShown(t *testing.T) {
	t.Parallel()
	s, _ := formServer(t, nil, nil)
	for _, value := range []string{"", "%%%", "AA=", strings.Repeat("QUFB", 1000), "gICA"} {
		if page := send(s, "GET", "/things/7", "Cookie", "ib_erp_flash="+value); page.Code != 200 || strings.Contains(page.Body.String(), `class="flash`) {
			t.Errorf("%.20q: %d\n%s", value, page.Code, page.Body)
		}
	}
	long := send(s, "GET", "/things/7", "Cookie", s.longFlash(t))
	if long.Code != 200 {
		t.Errorf("a long message: %d", long.Code)
	}
}

// longFlash is the cookie of a message that was too long, and cut between two letters.
func (s *server) longFlash(t *testing.T) string {
	t.Helper()
	answer := httptest.NewRecorder()
	c := s.echo.NewContext(httptest.NewRequest(http.MethodPost, "/", nil), answer)
	if err := s.done(c, "/", strings.Repeat("ü", 3000)); err != nil {
		t.Fatal(err)
	}
	cookie := answer.Result().Cookies()[0]
	if len(cookie.Value) > 2000 {
		t.Errorf("the cookie has %d bytes, which browsers may drop", len(cookie.Value))
	}
	return cookie.Name + "=" + cookie.Value
}

func TestPageThatRefreshesItselfDoesNotKeepTheSession(t *testing.T) {
	t.Parallel()
	var used []bool
	s, _ := formServer(t, nil, &used)
	send(s, "GET", "/things/7", "Sec-Fetch-Dest", "document")
	send(s, "GET", "/things/7")
	send(s, "GET", "/things/7", "Sec-Fetch-Dest", "empty")
	if len(used) != 3 || !used[0] || !used[1] || used[2] {
		t.Errorf("counted as used: %v, want true, true, false", used)
	}
}
