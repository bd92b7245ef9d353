package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/libopenapi"

	"invoicebridge/api"
)

// Pages for people and files of ours are not described one by one; the API is, and nothing that is not there.
func TestRoutesOfTheCRMSideAndItsContractAreTheSame(t *testing.T) {
	t.Parallel()
	handler, err := NewCRM(CRMDeps{Orders: noOrders{}})
	if err != nil {
		t.Fatal(err)
	}
	forPrograms := func(route string) bool {
		_, path, _ := strings.Cut(route, " ")
		return strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/admin/v1/")
	}
	var all, served []string
	for _, route := range handler.(crmSide).echo.Routes() {
		if route.Method == http.MethodHead {
			continue
		}
		name := route.Method + " " + parameter.ReplaceAllString(route.Path, "{$1}")
		if all = append(all, name); forPrograms(name) {
			served = append(served, name)
		}
	}
	document, err := libopenapi.NewDocument(api.CRMOpenAPI())
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
			name := strings.ToUpper(method) + " " + path
			if !slices.Contains(all, name) {
				t.Errorf("documented, but not served: %s", name)
			}
			if forPrograms(name) {
				documented = append(documented, name)
			}
		}
	}
	slices.Sort(served)
	slices.Sort(documented)
	if diff := cmp.Diff(documented, served); diff != "" {
		t.Errorf("documented (-), served (+):\n%s", diff)
	}
	if len(served) < 30 {
		t.Errorf("only %d routes were found", len(served))
	}
}
