package httpapi

import (
	"bytes"
	"io/fs"
	"net/http"
	"path"

	swagger "github.com/swaggo/files/v2"

	"github.com/labstack/echo/v4"

	"invoicebridge/api"
	"invoicebridge/internal/problem"
	"invoicebridge/web"
)

// What pages may load: our own style sheet and images, nothing inline, nothing from elsewhere, no scripts. The
// reference has scripts of ours and Swagger UI's, which also asks for the contract and draws icons from data URLs.
const (
	pagePolicy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
	docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)

// pages are the pages for people.
type pages struct {
	server *server
	web    *web.Pages
	start  web.Home
}

// newPages reads all templates; start is the service's start page, whose layout all pages share.
func newPages(s *server, start web.Home) (*pages, error) {
	w, err := web.New()
	if err != nil {
		return nil, err
	}
	return &pages{server: s, web: w, start: start}, nil
}

func erpHome() web.Home {
	return web.Home{
		Layout: web.Layout{
			Title: "One order, one invoice", Service: "invoicebridge ERP",
			Nav: []web.Link{{Href: "/docs", Text: "API reference"}, {Href: "/problems", Text: "Problems"}},
		},
		Lead: "This service issues invoices. Whoever asks twice for the same one gets it once: " +
			"the second answer is the first one again, byte for byte.",
		Links: []web.Link{
			{Href: "/docs", Text: "API reference", About: "Every request, answer and header, with examples."},
			{Href: "/openapi.yaml", Text: "openapi.yaml", About: "The contract as a file, OpenAPI 3.1."},
			{Href: "/problems", Text: "Problems", About: "What each error means and what to do next."},
			{Href: "/readyz", Text: "Readiness", About: "Whether this instance can do its work right now."},
		},
		Facts: []web.Fact{
			{Heading: "The key is yours", Text: "Make one Idempotency-Key for each intention, store it before the first attempt, and send it with every attempt."},
			{Heading: "No answer is not no", Text: "After a lost answer send the same request with the same key. It is safe at any time, also years later."},
			{Heading: "One claim, one invoice", Text: "Source, order, role and sequence together have at most one invoice, whatever the keys are."},
			{Heading: "Refused means nothing happened", Text: "An invalid request stores nothing and takes no number. The corrected one may use the same key."},
			{Heading: "Numbers without holes", Text: "Each series counts up by one for each invoice, per year of the issue date, also after failures."},
		},
	}
}

func (p *pages) layout(title, here string) web.Layout {
	l := p.start.Layout
	l.Title, l.Here = title, here
	return l
}

// html answers with a page; a page that fails half-way is an error, not half a page.
func html(c echo.Context, policy string, write func(*bytes.Buffer) error) error {
	var out bytes.Buffer
	if err := write(&out); err != nil {
		return err
	}
	c.Response().Header().Set("Content-Security-Policy", policy)
	return c.HTMLBlob(http.StatusOK, out.Bytes())
}

func (p *pages) home(c echo.Context) error {
	return html(c, pagePolicy, func(out *bytes.Buffer) error { return p.web.Home(out, p.start) })
}

func (p *pages) problems(c echo.Context) error {
	page := web.ProblemIndex{Layout: p.layout("Problems", "/problems")}
	for _, k := range kinds() {
		page.Problems = append(page.Problems, web.ProblemLine{
			Href: ProblemPath(k.problemType), Slug: string(k.problemType), Title: k.title, Status: k.status,
			SameKey: explain(k.problemType).sameKeyShort,
		})
	}
	return html(c, pagePolicy, func(out *bytes.Buffer) error { return p.web.Problems(out, page) })
}

func (p *pages) problem(c echo.Context) error {
	k, ok := kindOf(problem.Type(c.Param("slug")))
	if !ok {
		return problem.New(problem.NotFound, "There is no problem of this type. All are listed under /problems.")
	}
	text := explain(k.problemType)
	example, err := exampleDocument(k, text)
	if err != nil {
		return err
	}
	page := web.Problem{
		Layout: p.layout(k.title, "/problems"), Slug: string(k.problemType), Title: k.title, Status: k.status,
		Means: text.means, When: text.when, SameKey: text.sameKey, Next: text.next, Members: text.members, Example: example,
	}
	return html(c, pagePolicy, func(out *bytes.Buffer) error { return p.web.Problem(out, page) })
}

func (p *pages) contract(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/yaml", api.OpenAPI())
}

func (p *pages) docs(c echo.Context) error {
	page := web.Reference{
		Layout:  p.layout("API reference", "/docs"),
		Styles:  []string{"/docs/swagger-ui.css"},
		Scripts: []string{"/docs/swagger-ui-bundle.js", "/static/reference.js"},
	}
	return html(c, docsPolicy, func(out *bytes.Buffer) error { return p.web.Reference(out, page) })
}

// docsFile serves the two files of Swagger UI that the reference needs, and no other.
func (p *pages) docsFile(c echo.Context) error {
	switch name := c.Param("file"); name {
	case "swagger-ui.css", "swagger-ui-bundle.js":
		return asset(c, swagger.FS, name)
	}
	return echo.ErrNotFound
}

func (p *pages) staticFile(c echo.Context) error { return asset(c, web.Static(), c.Param("file")) }

func asset(c echo.Context, files fs.FS, name string) error {
	content, err := fs.ReadFile(files, name)
	if err != nil {
		return echo.ErrNotFound
	}
	c.Response().Header().Set("Cache-Control", "public, max-age=300")
	return c.Blob(http.StatusOK, assetType(name), content)
}

// assetType does not ask the machine's own table of types, which differs between machines.
func assetType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return echo.MIMEOctetStream
}
