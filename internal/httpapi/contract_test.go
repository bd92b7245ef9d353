package httpapi_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"invoicebridge/api"
)

// theContract is read once for all tests: building it takes longer than most of them.
var theContract = sync.OnceValues(func() (validator.Validator, error) {
	document, err := libopenapi.NewDocument(api.OpenAPI())
	if err != nil {
		return nil, err
	}
	v, errs := validator.NewValidator(document)
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return v, nil
})

func contract(t testing.TB) validator.Validator {
	t.Helper()
	v, err := theContract()
	if err != nil {
		t.Fatalf("the contract can't be read: %v", err)
	}
	return v
}

// checkAnswer holds an answer against the contract, and against what the contract says for all answers. Paths and
// methods that the contract does not have (404, 405) and HEAD, which is GET without a body, are left to their tests.
func checkAnswer(t testing.TB, r *http.Request, a answer) {
	t.Helper()
	if got := a.header.Get("X-Content-Type-Options"); got != "nosniff" && a.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%s %s: X-Content-Type-Options is %q", r.Method, r.URL.Path, got)
	}
	if strings.HasPrefix(r.URL.Path, "/v1/") && a.header.Get("Cache-Control") != "no-store" && a.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%s %s: Cache-Control is %q", r.Method, r.URL.Path, a.header.Get("Cache-Control"))
	}
	inContract := r.Method == http.MethodGet && !strings.HasSuffix(r.URL.Path, "/") && r.URL.Path != "/login" && r.URL.Path != "/v1/invoices/batch" ||
		r.Method == http.MethodPost && (r.URL.Path == "/v1/invoices" || r.URL.Path == "/v1/invoices/batch" || strings.HasPrefix(r.URL.Path, "/admin/v1/"))
	if !inContract || a.status == http.StatusRequestHeaderFieldsTooLarge {
		return
	}
	response := &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r}
	if ok, errs := contract(t).ValidateHttpResponse(r, response); !ok {
		for _, e := range errs {
			t.Errorf("%s %s answered %d, not as in the contract: %s: %s %v", r.Method, r.URL.Path, a.status, e.Message, e.Reason, e.SchemaValidationErrors)
		}
		t.Logf("the answer: %.1000s", a.body)
	}
}

func TestContractIsAValidOpenAPIDocument(t *testing.T) {
	t.Parallel()
	if ok, errs := contract(t).ValidateDocument(); !ok {
		for _, e := range errs {
			t.Errorf("%s: %s %v", e.Message, e.Reason, e.SchemaValidationErrors)
		}
	}
}
