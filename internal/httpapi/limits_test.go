package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Whatever people's pages and River UI are sent, it is read to a limit, and never unpacked: only the JSON of the API may be packed.
func TestFormsAreReadToALimitAndNeverUnpacked(t *testing.T) {
	onBothSites(t, nil, func(s site) {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(bytes.Repeat([]byte("name=ada&password=x&"), 1<<20))
		_ = w.Close()
		for _, c := range []struct {
			name, path, kind, encoding string
			body                       io.Reader
			allowed                    []int
		}{
			{"a long form", "/login", "application/x-www-form-urlencoded", "", strings.NewReader("name=" + strings.Repeat("a", 1<<20)), []int{413}},
			{"a packed form", "/login", "application/x-www-form-urlencoded", "gzip", &packed, []int{400, 401, 413, 415}},
			{"JSON", "/login", "application/json", "", strings.NewReader(`{"name":"ada"}`), []int{400, 401, 415}},
			{"a form of files", "/login", "multipart/form-data; boundary=x", "", strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nada\r\n--x--\r\n"), []int{400, 401, 415}},
			{"the queue, by a stranger", "/queue/api/jobs/cancel", "application/json", "", strings.NewReader(strings.Repeat("x", 1<<20)), []int{401, 303, 413}},
			{"a page, by a stranger", "/divergences/1/close", "application/x-www-form-urlencoded", "", strings.NewReader("reason=" + strings.Repeat("a", 1<<20)), []int{303, 413}},
		} {
			r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+c.path, c.body)
			if err != nil {
				s.t.Fatal(err)
			}
			r.Header.Set("Content-Type", c.kind)
			r.Header.Set("Accept", "text/html")
			if c.encoding != "" {
				r.Header.Set("Content-Encoding", c.encoding)
			}
			answer, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				continue // it closed the connection on what it would not read
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			found := false
			for _, status := range c.allowed {
				found = found || status == answer.StatusCode
			}
			if !found {
				s.t.Errorf("%s: %d, want one of %v", c.name, answer.StatusCode, c.allowed)
			}
		}
		b := s.browser()
		b.logIn("ada", password, "/docs").wantRedirect("/docs")
		if a := b.do(http.MethodPost, "/logout", map[string][]string{"x": {strings.Repeat("a", 1<<20)}}); a.status >= 500 {
			s.t.Errorf("a long log-out is answered %d", a.status)
		}
	})
}
