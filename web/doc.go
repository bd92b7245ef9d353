// Package web holds the pages for people: templates, one typed struct for each page, and static files. Pages work
// without scripts and are better with them. Everything is escaped by html/template.
//
// # How a page is written
//
// A page is an exported struct in a file of its own, web/<side>_<page>.go, with a field Layout and a method Template:
//
//	// Conflicts lists requests that came with a key that was taken.
//	type Conflicts struct {
//		Layout Layout
//		Filter Filter
//		Rows   []ConflictRow
//		Empty  Empty
//		Pager  Pager
//	}
//
//	// Template implements Page.
//	func (Conflicts) Template() string { return "erp_conflicts" }
//
// Its template web/templates/erp_conflicts.html defines "main" (and "head", if it must). It has range, if and
// with, and nothing else: whatever is decided or formatted is decided in Go, before.
//
//	{{define "main"}}
//	<h1>Key conflicts</h1>
//	{{template "filter" .Filter}}
//	{{if .Rows}}
//	<div class="scroll" tabindex="0" role="region" aria-label="Key conflicts">
//	<table class="list" data-live="conflicts">
//	<thead><tr><th scope="col">When</th><th scope="col">Key</th><th scope="col" class="num">Gross</th></tr></thead>
//	<tbody>
//	{{range .Rows}}<tr><td data-label="When">{{template "time" .At}}</td>
//	<td data-label="Key"><a href="{{.Href}}"><code>{{.Key}}</code></a></td>
//	<td data-label="Gross" class="num">{{template "money" .Gross}}</td></tr>
//	{{end}}</tbody>
//	</table>
//	</div>
//	{{else}}{{template "empty" .Empty}}{{end}}
//	{{template "pager" .Pager}}
//	{{end}}
//
// It is added to the list in crm_pages.go or erp_pages.go as Conflicts{}. New tries every page of the lists empty,
// full and half-filled: a field that is not there, or a template that does not parse, stops the program at its start.
// A handler fills the struct and calls Pages.Write into a buffer.
//
// # What the components are
//
// Types in components.go, forms.go and plot.go, templates in components.html and forms.html: time, money, state, empty,
// tile, timeline, compare, facts, field, filter, pager, action, plot. Each type's comment says how its template is called.
//
// # What the style sheet and console.js offer
//
//   - table.list: a list. Give each cell data-label, the column's heading: on a phone a row becomes a card with it.
//     Cells of figures: class num. A table around that must stay a table (an invoice's lines): div.scroll alone.
//   - data-live="name" on any element: console.js fetches the page again every few seconds and swaps that element, unless
//     the tab is hidden, something in it has the focus or a form in it was touched. The name is unique on its page. What
//     will not change any more bears it as data-still="name": without it the last change would never be shown.
//   - <button data-submit-once>: can be pressed once per page. Forms of "action" have it already.
//   - ul.tiles, dl.facts, div.columns (two columns on a wide screen), section.panel (a box), p.note, p.lead, code,
//     pre (give it tabindex="0"), div.toolbar (things in one row), .soft (less important), .no-print, .print-only.
//   - No style attribute, no script but the static files: the content security policy refuses both.
package web
