package httpapi

import (
	"io/fs"
	"net/http"
	"path"

	swagger "github.com/swaggo/files/v2"

	"github.com/labstack/echo/v4"

	"invoicebridge/api"
	"invoicebridge/internal/problem"
	"invoicebridge/web"
)

// docsPolicy: the reference has Swagger UI's scripts besides ours, which draw icons from data URLs.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// pages are the pages that need no log-in.
type pages struct {
	server *server
	start  web.Home
}

// people registers what is for people without a log-in, and the log-in itself.
func (s *server) people(p *pages) {
	s.publicPage("/", p.home)
	s.publicPage("/problems", p.problems)
	s.publicPage("/problems/:slug", p.problem)
	s.publicPage("/docs", p.docs)
	s.public("/docs/:file", p.docsFile)
	s.public("/static/:file", p.staticFile)
	s.logIn()
}

func erpHome() web.Home {
	return web.Home{
		Layout: web.Layout{Title: "One order, one invoice"},
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

func (p *pages) home(c echo.Context) error {
	page := p.start
	page.Layout = p.server.layout(c, p.start.Layout.Title, "/")
	return p.server.show(c, page)
}

func (p *pages) problems(c echo.Context) error {
	page := web.ProblemIndex{Layout: p.server.layout(c, "Problems", "/problems")}
	for _, k := range kinds() {
		page.Problems = append(page.Problems, web.ProblemLine{
			Href: ProblemPath(k.problemType), Slug: string(k.problemType), Title: k.title, Status: k.status,
			SameKey: explain(k.problemType).sameKeyShort,
		})
	}
	return p.server.show(c, page)
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
		Layout: p.server.layout(c, k.title, "/problems"), Slug: string(k.problemType), Title: k.title, Status: k.status,
		Means: text.means, When: text.when, SameKey: text.sameKey, Next: text.next, Members: text.members, Example: example,
	}
	return p.server.show(c, page)
}

func (p *pages) contract(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/yaml", api.OpenAPI())
}

func (p *pages) docs(c echo.Context) error {
	page := web.Reference{
		Layout:  p.server.layout(c, "API reference", "/docs"),
		Styles:  []string{"/docs/swagger-ui.css"},
		Scripts: []string{"/docs/swagger-ui-bundle.js"},
	}
	return p.server.showUnder(c, docsPolicy, http.StatusOK, page)
}

// docsFile serves the two files of Swagger UI that the reference needs, and no other.
func (p *pages) docsFile(c echo.Context) error {
	switch name := c.Param("file"); name {
	case "swagger-ui.css", "swagger-ui-bundle.js":
		return asset(c, swagger.FS, name)
	}
	return echo.ErrNotFound
}

// staticFile serves a static file by the name that has its content's hash in it, so it may be kept for ever.
func (p *pages) staticFile(c echo.Context) error {
	content, contentType, ok := p.server.web.Asset(c.Param("file"))
	if !ok {
		return echo.ErrNotFound
	}
	c.Response().Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	return c.Blob(http.StatusOK, contentType, content)
}

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
	}
	return echo.MIMEOctetStream
}
