package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestAxeFindsWhatIsWrong shows that the check is one.
func TestAxeFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; img-src data:")
		fmt.Fprint(w, `<!doctype html><html lang="en"><title>x</title><link rel="icon" href="data:,"><main><h1>x</h1><input></main>`)
	}))
	t.Cleanup(server.Close)
	tab := newTab(t, server.URL)
	tab.open("/")
	found := tab.findings()
	if len(found) != 1 || found[0].ID != "label" || found[0].Impact != "critical" {
		t.Errorf("got %+v", found)
	}
}
