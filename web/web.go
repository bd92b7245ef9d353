// Package web holds the pages for people: templates, one typed struct for each page, and static files. Pages work
// without scripts. Everything is escaped by html/template.
package web

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
)

//go:embed templates static
var files embed.FS

// Static are the files served under /static/.
func Static() fs.FS {
	static, err := fs.Sub(files, "static")
	if err != nil {
		panic(err) // the folder is part of the program: a typing error here, seen by any test
	}
	return static
}

// Link is an address with its text and what is found there.
type Link struct{ Href, Text, About string }

// Layout is what stands around every page.
type Layout struct {
	Title   string // of the page
	Service string // whose page it is
	Nav     []Link
	Here    string // the Href of Nav that the page belongs to
}

// Home says what the service is.
type Home struct {
	Layout Layout
	Lead   string
	Facts  []Fact
	Links  []Link
}

// Fact is one thing to know, with its heading.
type Fact struct{ Heading, Text string }

// ProblemIndex lists all problem types.
type ProblemIndex struct {
	Layout   Layout
	Problems []ProblemLine
}

// ProblemLine is one problem type in the index.
type ProblemLine struct {
	Href, Slug, Title string
	Status            int
	SameKey           string
}

// Problem explains one problem type to whoever met it.
type Problem struct {
	Layout  Layout
	Slug    string
	Title   string
	Status  int
	Means   string
	When    []string
	SameKey string
	Next    []string
	Members []Fact // extension members of the document
	Example string
}

// Reference is the page that shows the contract. Its scripts are served beside it.
type Reference struct {
	Layout  Layout
	Scripts []string
	Styles  []string
}

// Pages writes pages. It is safe for concurrent use.
type Pages struct {
	home, problems, problem, reference *template.Template
}

// New reads the templates and tries each on an empty page, so that a mistake in one stops the program at its start
// and not a reader.
func New() (*Pages, error) {
	var p Pages
	for _, page := range []struct {
		file string
		into **template.Template
		try  any
	}{
		{"home.html", &p.home, Home{}},
		{"problems.html", &p.problems, ProblemIndex{Problems: make([]ProblemLine, 1)}},
		{"problem.html", &p.problem, Problem{When: []string{""}, Next: []string{""}, Members: make([]Fact, 1)}},
		{"reference.html", &p.reference, Reference{Scripts: []string{""}, Styles: []string{""}}},
	} {
		t, err := template.New("layout.html").Option("missingkey=error").
			ParseFS(files, "templates/layout.html", "templates/"+page.file)
		if err != nil {
			return nil, fmt.Errorf("page %s: %w", page.file, err)
		}
		*page.into = t
		if err := t.Execute(io.Discard, page.try); err != nil {
			return nil, fmt.Errorf("page %s: %w", page.file, err)
		}
	}
	return &p, nil
}

// Home writes the start page.
func (p *Pages) Home(w io.Writer, page Home) error { return p.home.Execute(w, page) }

// Problems writes the list of problem types.
func (p *Pages) Problems(w io.Writer, page ProblemIndex) error { return p.problems.Execute(w, page) }

// Problem writes the page of one problem type.
func (p *Pages) Problem(w io.Writer, page Problem) error { return p.problem.Execute(w, page) }

// Reference writes the page that shows the contract.
func (p *Pages) Reference(w io.Writer, page Reference) error { return p.reference.Execute(w, page) }
