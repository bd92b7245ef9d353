package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"invoicebridge/internal/testdb"
)

// guard collects what no page may do.
type guard struct {
	hosts     []string // that may be asked
	tolerated []string // faults with such a part are none

	mu     sync.Mutex
	faults []string
}

func (g *guard) add(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fault := fmt.Sprintf(format, args...)
	tolerated := slices.ContainsFunc(g.tolerated, func(part string) bool { return strings.Contains(fault, part) })
	if !tolerated && !slices.Contains(g.faults, fault) {
		g.faults = append(g.faults, fault)
	}
}

func (g *guard) take() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken := g.faults
	g.faults = nil
	return taken
}

// listen is told every event of a tab.
func (g *guard) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			var text []string
			for _, arg := range e.Args {
				text = append(text, string(arg.Value)+arg.Description)
			}
			g.add("console error: %s", strings.Join(text, " "))
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		g.add("exception: %s", text)
	case *log.EventEntryAdded:
		// Failed requests are looked at below: a page may well be answered 422.
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			g.add("%s: %s", e.Entry.Source, e.Entry.Text)
		}
	case *audits.EventIssueAdded:
		if csp := e.Issue.Details.ContentSecurityPolicyIssueDetails; csp != nil {
			g.add("content security policy: %s refuses %q", csp.ViolatedDirective, csp.BlockedURL)
		}
	case *network.EventRequestWillBeSent:
		g.asked(e.Request.URL)
	case *network.EventResponseReceived:
		if e.Type != network.ResourceTypeDocument && e.Response.Status >= http.StatusBadRequest {
			g.add("%s is answered %d", e.Response.URL, e.Response.Status)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled && e.ErrorText != "net::ERR_ABORTED" {
			g.add("a %s was not loaded: %s", e.Type, e.ErrorText)
		}
	case *page.EventJavascriptDialogOpening:
		g.add("a dialog opens: %q", e.Message)
	}
}

func (g *guard) asked(address string) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		g.add("an address that can't be read: %q", address)
	case u.Scheme == "data": // Swagger UI's icons
	case u.Scheme != "http" || !slices.Contains(g.hosts, u.Host):
		g.add("another host is asked: %s", address)
	}
}

// TestGuardSeesWhatNoPageMayDo shows that a page that does any of it can't pass.
func TestGuardSeesWhatNoPageMayDo(t *testing.T) {
	t.Parallel()
	const policy = "default-src 'none'; script-src 'self'; img-src *; connect-src 'self'"
	for name, bad := range map[string]struct{ body, script, want string }{
		"console error":      {script: `console.error("help")`, want: "console error"},
		"exception":          {script: `throw new Error("help")`, want: "exception"},
		"dialog":             {script: `alert(1)`, want: "a dialog opens"},
		"foreign image":      {body: `<img alt="" src="http://elsewhere.test/x.png">`, want: "another host is asked"},
		"inline style":       {body: `<p style="color: red">red</p>`, want: "content security policy"},
		"inline script":      {body: `<script>document.title = "inline"</script>`, want: "content security policy"},
		"handler in the tag": {body: `<img alt="" src="/none.png" onerror="alert(1)">`, want: "content security policy"},
		"missing file":       {body: `<script src="/missing.js"></script>`, want: "is answered 404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Security-Policy", policy)
				switch r.URL.Path {
				case "/":
					w.Header().Set("Content-Type", "text/html")
					fmt.Fprintf(w, `<!doctype html><title>x</title><link rel="icon" href="data:,">%s<script src="/x.js"></script>`, bad.body)
				case "/x.js":
					w.Header().Set("Content-Type", "text/javascript")
					fmt.Fprint(w, bad.script)
				default:
					http.NotFound(w, r)
				}
			}))
			t.Cleanup(server.Close)
			tab := newTab(t, server.URL)
			tab.faultsExpected = true
			tab.open("/")
			var seen []string
			testdb.Await(t, "the guard sees it", func() bool {
				seen = append(seen, tab.guard.take()...)
				return strings.Contains(strings.Join(seen, "\n"), bad.want)
			})
		})
	}
}
