package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestARefusalThatCannotBeWrittenDownIsAnsweredAllTheSame(t *testing.T) {
	s := setupCRM(t)
	type answer struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Errors []struct {
			Pointer string `json:"pointer"`
			Detail  string `json:"detail"`
		} `json:"errors"`
	}
	answers := func() (all []answer) {
		t.Helper()
		for _, refused := range []struct {
			body   string
			status int
		}{{orderJSON("SO-1", `"x"`), http.StatusUnprocessableEntity}, {"{", http.StatusBadRequest}} {
			var a answer
			s.submits("/v1/orders", refused.body, refused.status, &a)
			if a.Type == "" || a.Detail == "" {
				t.Errorf("%s is answered with %+v", refused.body, a)
			}
			all = append(all, a)
		}
		return all
	}
	want := answers()
	if n := s.count("intake_refusals"); n != 2 {
		t.Fatalf("%d refusals are written down, want 2", n)
	}
	s.exec("DROP TABLE intake_refusals")
	if diff := cmp.Diff(want, answers()); diff != "" {
		t.Error(diff)
	}
	s.submits("/v1/orders", orderJSON("SO-1", `"10.00"`), http.StatusCreated, nil)
	s.holds(1, 1, 1)
}
