package verify

import (
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

func TestALosingCallerHasSentItsRequestAndGetsNoAnswer(t *testing.T) {
	t.Parallel()
	var arrived atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && len(body) > 0 {
			arrived.Add(1)
		}
		w.WriteHeader(http.StatusCreated)
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	for n, base := range []string{plain.URL, secure.URL} {
		e := newEndpoint(base, "t")
		e.roots = roots
		if got := e.losing().issue(t.Context(), invoice{key: "k", order: "o", price: "1"}); !errors.Is(got.err, errBroken) {
			t.Errorf("%s: %v", base, got)
		}
		if got := arrived.Load(); got != int64(n+1) {
			t.Errorf("%s: %d requests have arrived, want %d", base, got, n+1)
		}
	}
}
