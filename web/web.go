package web

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"reflect"
)

//go:embed templates static
var files embed.FS

// Page is one page for people: a struct of its own with everything that its template shows. Every page has a field
// Layout, and stands in one of the lists in public.go, crm_pages.go and erp_pages.go.
type Page interface {
	// Template names the page's template, the file templates/<name>.html.
	Template() string
}

// Pages writes pages. It is safe for concurrent use.
type Pages struct {
	templates map[string]*template.Template
	assets    assets
}

// New reads all templates and tries each on made-up pages of its type (see try), so that a mistake in one, or a field
// that is not there, stops the program at its start and not a reader.
func New() (*Pages, error) {
	assets, err := readAssets()
	if err != nil {
		return nil, err
	}
	common, err := template.New("layout.html").Funcs(functions(assets)).
		ParseFS(files, "templates/layout.html", "templates/components.html", "templates/forms.html", "templates/crm_parts.html", "templates/erp_parts.html")
	if err != nil {
		return nil, fmt.Errorf("the layout: %w", err)
	}
	if err := tryComponents(common); err != nil {
		return nil, err
	}
	p := &Pages{templates: map[string]*template.Template{}, assets: assets}
	for _, page := range allPages() {
		if err := p.add(common, page); err != nil {
			return nil, fmt.Errorf("page %T (templates/%s.html): %w", page, page.Template(), err)
		}
	}
	return p, nil
}

func allPages() []Page {
	var all []Page
	for _, list := range [][]Page{publicPages(), erpPages(), crmPages()} {
		all = append(all, list...)
	}
	return all
}

func (p *Pages) add(common *template.Template, page Page) error {
	if _, taken := p.templates[page.Template()]; taken {
		return fmt.Errorf("another page has the same template")
	}
	if field := reflect.ValueOf(page).FieldByName("Layout"); !field.IsValid() || field.Type() != reflect.TypeFor[Layout]() {
		return fmt.Errorf("it has no field Layout of type web.Layout")
	}
	t, err := common.Clone()
	if err != nil {
		return err
	}
	if t, err = t.ParseFS(files, "templates/"+page.Template()+".html"); err != nil {
		return err
	}
	if t.Lookup("main") == nil {
		return fmt.Errorf(`it does not define "main"`)
	}
	if err := try(t, page); err != nil {
		return err
	}
	p.templates[page.Template()] = t
	return nil
}

// Write writes a page. Half of it may be written when it fails, so write to a buffer first.
func (p *Pages) Write(w io.Writer, page Page) error {
	t, ok := p.templates[page.Template()]
	if !ok {
		return fmt.Errorf("page %T is not registered: add it to a list in package web", page)
	}
	return t.Execute(w, page)
}

// Asset gives a static file by the name that pages link to it with, the type of its content, and whether there is such
// a file. A name has its content's hash in it: whoever has got it once may keep it for ever.
func (p *Pages) Asset(name string) (content []byte, contentType string, ok bool) {
	a, ok := p.assets.byName[name]
	return a.content, a.contentType, ok
}

// functions are what templates can call besides the methods of what they show.
func functions(a assets) template.FuncMap {
	return template.FuncMap{"static": a.address}
}
