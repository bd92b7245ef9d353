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

// theCRMContract is read once for all tests: building it takes longer than most of them.
var theCRMContract = sync.OnceValues(func() (validator.Validator, error) {
	document, err := libopenapi.NewDocument(api.CRMOpenAPI())
	if err != nil {
		return nil, err
	}
	v, errs := validator.NewValidator(document)
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return v, nil
})

func crmContract(t testing.TB) validator.Validator {
	t.Helper()
	v, err := theCRMContract()
	if err != nil {
		t.Fatalf("the contract can't be read: %v", err)
	}
	return v
}

// checkCRMAnswer holds an answer of the API against the contract.
func checkCRMAnswer(t testing.TB, r *http.Request, answer *http.Response, body []byte) {
	t.Helper()
	if !strings.HasPrefix(r.URL.Path, "/v1/") && !strings.HasPrefix(r.URL.Path, "/admin/v1/") || len(body) > 1<<20 { // the validator is slow
		return
	}
	response := &http.Response{StatusCode: answer.StatusCode, Header: answer.Header, Body: io.NopCloser(bytes.NewReader(body)), Request: r}
	if ok, errs := crmContract(t).ValidateHttpResponse(r, response); !ok {
		for _, e := range errs {
			t.Errorf("%s %s answered %d, not as in the contract: %s: %s %v", r.Method, r.URL.Path, answer.StatusCode, e.Message, e.Reason, e.SchemaValidationErrors)
		}
		t.Logf("the answer: %.1000s", body)
	}
}

func TestCRMContractIsAValidOpenAPIDocument(t *testing.T) {
	t.Parallel()
	if ok, errs := crmContract(t).ValidateDocument(); !ok {
		for _, e := range errs {
			t.Errorf("%s: %s %v", e.Message, e.Reason, e.SchemaValidationErrors)
		}
	}
}
