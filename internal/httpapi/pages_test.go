package httpapi_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"invoicebridge/internal/problem"
)

// vocabulary are the problem types as the source declares them: one that is added there can't be forgotten here.
func vocabulary(t testing.TB) (types []problem.Type) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../problem/problem.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "Type" {
			for _, value := range spec.Values {
				text, err := strconv.Unquote(value.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				types = append(types, problem.Type(text))
			}
		}
		return true
	})
	if len(types) < 15 {
		t.Fatalf("only %d problem types found", len(types))
	}
	return types
}

// page is a parsed page.
type page struct {
	t    testing.TB
	root *html.Node
}

func (a answer) page() page {
	a.t.Helper()
	if got := a.header.Get("Content-Type"); a.status != 200 || got != "text/html; charset=UTF-8" {
		a.t.Fatalf("got %d %s: %.300s, want a page", a.status, got, a.body)
	}
	root, err := html.Parse(bytes.NewReader(a.body))
	if err != nil {
		a.t.Fatal(err)
	}
	return page{a.t, root}
}

// all finds elements by a path of selectors, each "element", ".class" or "element.class", as in CSS.
func (p page) all(selector string) []*html.Node {
	found := []*html.Node{p.root}
	for step := range strings.FieldsSeq(selector) {
		element, class, _ := strings.Cut(step, ".")
		var next []*html.Node
		for _, at := range found {
			for n := range at.Descendants() {
				if n.Type == html.ElementNode && (element == "" || n.Data == element) &&
					(class == "" || slices.Contains(strings.Fields(attribute(n, "class")), class)) && !slices.Contains(next, n) {
					next = append(next, n)
				}
			}
		}
		found = next
	}
	return found
}

func (p page) text(selector string) string {
	p.t.Helper()
	found := p.all(selector)
	if len(found) != 1 {
		p.t.Fatalf("%q is there %d times, want once", selector, len(found))
	}
	return text(found[0])
}

func text(at *html.Node) string {
	var out strings.Builder
	for n := range at.Descendants() {
		if n.Type == html.TextNode {
			out.WriteString(n.Data)
		}
	}
	return strings.TrimSpace(out.String())
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func TestEveryProblemTypeHasAPageThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	index := e.get("", "/problems").page()
	var listed []string
	for _, link := range index.all("table.problems th a") {
		listed = append(listed, attribute(link, "href"))
	}
	types := vocabulary(t)
	if len(listed) != len(types) {
		t.Errorf("%d types are listed, want %d", len(listed), len(types))
	}
	for _, problemType := range types {
		path := "/problems/" + string(problemType)
		if !slices.Contains(listed, path) {
			t.Errorf("%s is not listed", path)
		}
		p := e.get("", path).page()
		if got := p.text("main .slug"); got != string(problemType) {
			t.Errorf("%s: slug is %q", path, got)
		}
		for _, selector := range []string{"main h1", ".means", ".same-key p", ".example code"} {
			if p.text(selector) == "" {
				t.Errorf("%s: %s is empty", path, selector)
			}
		}
		if len(p.all(".when li")) == 0 || len(p.all(".next li")) == 0 {
			t.Errorf("%s does not say when it happens or what to do", path)
		}
		if status := p.text("main .status"); !strings.Contains(p.text(".example code"), `"status": `+status) {
			t.Errorf("%s: the example has another status than %s", path, status)
		}
	}
	e.get("", "/problems/unheard-of").wantProblem(404, problem.NotFound)
}

func TestPagesHaveNoDeadLinksAndLoadNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	seen, open := map[string]bool{"/": true}, []string{"/"}
	for len(open) > 0 {
		path := open[0]
		open = open[1:]
		a := e.get("", path)
		if a.status != http.StatusOK {
			t.Errorf("%s: %d", path, a.status)
			continue
		}
		if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
			continue
		}
		policy := a.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
		p := a.page()
		if len(p.all("h1")) != 1 || p.text("title") == "" || attribute(p.all("html")[0], "lang") == "" {
			t.Errorf("%s lacks a heading, a title or its language", path)
		}
		for n := range p.root.Descendants() {
			for _, a := range n.Attr {
				switch {
				case strings.HasPrefix(a.Key, "on") || a.Key == "style":
					t.Errorf("%s has inline %s=%q", path, a.Key, a.Val)
				case a.Key != "href" && a.Key != "src" || strings.HasPrefix(a.Val, "#"):
				case !strings.HasPrefix(a.Val, "/") || strings.HasPrefix(a.Val, "//"):
					t.Errorf("%s leads away from this service: %s", path, a.Val)
				case !seen[a.Val]:
					seen[a.Val] = true
					open = append(open, a.Val)
				}
			}
			if n.Type == html.ElementNode && (n.Data == "script" || n.Data == "style") && n.FirstChild != nil {
				t.Errorf("%s has an inline %s", path, n.Data)
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d addresses were found", len(seen))
	}
}

func TestReferenceIsReadableWithoutScripts(t *testing.T) {
	t.Parallel()
	p := startERP(t).get("", "/docs").page()
	var links []string
	for _, link := range p.all("main a") {
		links = append(links, attribute(link, "href"))
	}
	if !slices.Contains(links, "/openapi.yaml") {
		t.Errorf("the page does not link to the contract: %v", links)
	}
	if len(p.all("noscript")) == 0 {
		t.Error("nothing is said to readers without scripts")
	}
}

func TestFilesOutsideTheStaticFolderAreNotServed(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	for _, path := range []string{
		"/static/..%2Ftemplates%2Flayout.html", "/static/.", "/static/", "/docs/oauth2-redirect.html", "/docs/swagger-ui-bundle.js.map",
		"/docs/..%2Fstatic%2Fstyle.css", "/.env",
	} {
		r := e.request(http.MethodPost, path, "", nil)
		r.Method = http.MethodGet
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", path, response.StatusCode)
		}
	}
}
