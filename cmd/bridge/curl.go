package main

import (
	"fmt"
	"strings"
)

// sayWhere tells the addresses, once everything is up.
func (d *demo) sayWhere() {
	faults := "without faults"
	if d.settings.Faults {
		faults = fmt.Sprintf("that loses, cuts, holds, doubles and delays (seed %d)", d.settings.Seed)
	}
	fmt.Fprintf(d.out, "ERP     http://%s\nCRM     http://%s\nBetween a proxy on %s, %s\nTargets http://%s/sim/effects\n\n",
		d.services.erpAddr, d.services.crmAddr, d.services.proxyAddr, faults, d.services.targets.addr)
}

// demoOrder is the order of the commands below.
const demoOrder = `{"source":"crm-1","order":"SO-1001","role":"final","currency":"EUR","issue_date":"2026-03-02",` +
	`"customer":{"name":"Test Customer A","country":"DE","vat_id":"XX000000001"},` +
	`"lines":[{"sku":"P-1","quantity":"2","unit_price":"10.00","vat_rate":"19","vat_category":"S"}]}`

// sayHow prints what a person may try now. Every command works when pasted, the first ones in this order.
func (d *demo) sayHow() {
	erp, crm := "http://"+d.services.erpAddr, "http://"+d.services.crmAddr
	dearer := strings.Replace(demoOrder, `"10.00"`, `"12.50"`, 1)
	fmt.Fprintf(d.out, `
Everything stays up; Ctrl-C ends it. To try (the tokens are in demo-tokens in the data folder):

  ERP=%s CRM=%s
  ERP_TOKEN=%s
  CRM_TOKEN=%s
`, erp, crm, d.tokens[erpToken], d.tokens[crmToken])
	d.command("An invoice: 201. Once more the same: the same answer, with Idempotent-Replayed: true.", postInvoice("demo-1", demoOrder))
	d.command("The same key with another price: 422 idempotency-key-reused.", postInvoice("demo-1", dearer))
	d.command("The same order under a new key: 409 already-invoiced, and which invoice that is.", postInvoice("demo-2", demoOrder))
	d.command("What the ERP knows of a key, and where its invoice is registered; invoices of an order.",
		`curl -si "$ERP/v1/operations/demo-1" -H "Authorization: Bearer $ERP_TOKEN"`,
		`curl -si "$ERP/v1/invoices?order=SO-1001" -H "Authorization: Bearer $ERP_TOKEN"`)
	d.command("An order for the CRM side, which has it invoiced.",
		`curl -si "$CRM/v1/orders" -H "Authorization: Bearer $CRM_TOKEN" -H "Content-Type: application/json" \`,
		"  -d '"+strings.Replace(demoOrder, "SO-1001", "SO-1002", 1)+"'")
	fmt.Fprintf(d.out, "\n  The ERP's contract: %s/docs\n", erp)
}

func (d *demo) command(what string, lines ...string) {
	fmt.Fprintf(d.out, "\n  # %s\n", what)
	for _, line := range lines {
		fmt.Fprintf(d.out, "  %s\n", line)
	}
}

func postInvoice(key, body string) string {
	return `curl -si "$ERP/v1/invoices" -H "Authorization: Bearer $ERP_TOKEN" -H "Content-Type: application/json" \` + "\n" +
		`    -H "Idempotency-Key: ` + key + `" -d '` + body + `'`
}
