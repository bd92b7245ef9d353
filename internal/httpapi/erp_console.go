package httpapi

import (
	"invoicebridge/internal/auth"
	"invoicebridge/web"
)

// Where the ERP's pages are, besides those that both consoles have.
const (
	invoicesPath      = "/invoices"
	conflictsPath     = "/conflicts"
	registrationsPath = "/registrations"
	targetsPath       = "/targets"
	tokensPath        = "/tokens"
)

func erpNav() []navLink {
	link := func(href, text string, needs auth.Permission) navLink {
		return navLink{Link: web.Link{Href: href, Text: text}, needs: needs}
	}
	return []navLink{
		link(invoicesPath, "Invoices", auth.MayRead), link(registrationsPath, "Registrations", auth.MayRead),
		link(targetsPath, "Targets", auth.MayRead), link(divergencesPath, "Divergences", auth.MayRead),
		link(conflictsPath, "Key conflicts", auth.MayRead), link(tokensPath, "Tokens", auth.MayAdminister),
		link(auditPath, "Audit", auth.MayRead),
	}
}

func (e erp) consolePages() {}
