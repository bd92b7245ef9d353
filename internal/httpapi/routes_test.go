package httpapi

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/pb33f/libopenapi"

	"invoicebridge/api"
)

var parameter = regexp.MustCompile(`:(\w+)`)

func TestRoutesAndContractAreTheSame(t *testing.T) {
	t.Parallel()
	handler, err := NewERP(ERPDeps{})
	if err != nil {
		t.Fatal(err)
	}
	var served, heads []string
	for _, route := range handler.(erp).echo.Routes() {
		if forPeople(handler.(erp).server, route) {
			continue
		}
		path := parameter.ReplaceAllString(route.Path, "{$1}")
		if route.Method == http.MethodHead {
			heads = append(heads, path)
			continue
		}
		served = append(served, route.Method+" "+path)
	}
	document, err := libopenapi.NewDocument(api.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	model, err := document.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for path, item := range model.Model.Paths.PathItems.FromOldest() {
		for method := range item.GetOperations().FromOldest() {
			documented = append(documented, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(served)
	slices.Sort(documented)
	if !slices.Equal(served, documented) {
		t.Errorf("served are\n%s\ndocumented are\n%s", strings.Join(served, "\n"), strings.Join(documented, "\n"))
	}
	for _, route := range served {
		if path, isGet := strings.CutPrefix(route, "GET "); isGet && !slices.Contains(heads, path) {
			t.Errorf("%s has no HEAD beside its GET", path)
		}
	}
}

// forPeople says whether a route is the console's or the log-in's, which no contract describes.
func forPeople(s *server, route *echo.Route) bool {
	switch s.decisions[route.Method+" "+route.Path].gate {
	case gatePage, gateMount:
		return true
	}
	return route.Path == "/login" || strings.HasPrefix(route.Path, "/login/") || route.Path == "/logout"
}

func TestRetryAfterIsNeverSoonerThanMeant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wait time.Duration
		want string
	}{{time.Millisecond, "1"}, {time.Second, "1"}, {1001 * time.Millisecond, "2"}, {90 * time.Second, "90"}} {
		if got := retryAfter(c.wait); got != c.want {
			t.Errorf("Retry-After for %s is %s, want %s", c.wait, got, c.want)
		}
	}
}
