package invoice

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/idempotency"
)

// insert writes the invoices and lines of a numbered round and the registrations they owe, in two statements, and
// commits.
func (s *Service) insert(ctx context.Context, tx *transaction, round []*member, createdAt time.Time, registering bool) error {
	var invoices erpdb.InvoiceInsertParams
	lines := erpdb.InvoiceLineInsertParams{Registering: registering}
	for _, m := range round {
		var err error
		m.document, err = m.draft.document(identification{
			id: m.id, number: m.number.String(), key: m.Key.String(), createdAt: createdAt,
		})
		if err != nil {
			return err
		}
		addInvoice(&invoices, m)
		addLines(&lines, m)
		lines.RegisteredInvoiceIds = append(lines.RegisteredInvoiceIds, m.id)
		lines.RegisteredTenantIds = append(lines.RegisteredTenantIds, m.Tenant)
		lines.RegisteredKeys = append(lines.RegisteredKeys, m.Key.String())
		lines.RegisteredTraceContexts = append(lines.RegisteredTraceContexts, m.Trace)
	}
	if registering && s.queue != nil {
		return s.insertAndEnqueue(ctx, tx, invoices, lines)
	}
	written := write(ctx, tx, invoices, lines)
	return tx.sendAndCommit(ctx, func() error {
		_, err := written()
		return err
	})
}

// insertAndEnqueue needs the database's word before it commits: the jobs carry the ids of the registrations.
func (s *Service) insertAndEnqueue(ctx context.Context, tx *transaction, invoices erpdb.InvoiceInsertParams, lines erpdb.InvoiceLineInsertParams) error {
	written := write(ctx, tx, invoices, lines)
	if err := tx.send(ctx); err != nil {
		return err
	}
	registrations, err := written()
	if err != nil {
		return err
	}
	if err := tx.received(); err != nil {
		return fmt.Errorf("insert: %w", err)
	}
	if err := s.enqueue(ctx, tx.inner, registrations); err != nil {
		return err
	}
	return tx.sendAndCommit(ctx, func() error { return nil })
}

// write collects the two statements. What it gives waits for them.
func write(ctx context.Context, tx *transaction, invoices erpdb.InvoiceInsertParams, lines erpdb.InvoiceLineInsertParams) (done func() ([]uuid.UUID, error)) {
	invoices.LockTimeout = idempotency.LockTimeout(lockPatience)
	inserted := tx.statements().InvoiceInsert(ctx, []erpdb.InvoiceInsertParams{invoices})
	owed := tx.statements().InvoiceLineInsert(ctx, []erpdb.InvoiceLineInsertParams{lines})
	return func() (registrations []uuid.UUID, err error) {
		inserted.Exec(func(_ int, failed error) { err = failed })
		if err != nil {
			return nil, fmt.Errorf("insert %d invoices: %w", len(invoices.Ids), err)
		}
		if registrations, err = one(owed.Query); err != nil {
			return nil, fmt.Errorf("insert %d invoice lines and what is to be registered: %w", len(lines.Positions), err)
		}
		return registrations, nil
	}
}

func addInvoice(p *erpdb.InvoiceInsertParams, m *member) {
	r, d := m.Request, m.draft
	p.Ids = append(p.Ids, m.id)
	p.TenantIds = append(p.TenantIds, m.Tenant)
	p.Numbers = append(p.Numbers, m.number.String())
	p.SeriesPrefixes = append(p.SeriesPrefixes, m.number.prefix)
	p.SeriesYears = append(p.SeriesYears, m.number.year)
	p.SeriesNumbers = append(p.SeriesNumbers, m.number.count)
	p.Sources = append(p.Sources, m.order().source)
	p.OrderIds = append(p.OrderIds, m.order().id)
	p.Roles = append(p.Roles, string(r.Role))
	p.Sequences = append(p.Sequences, int32(r.EffectiveSequence()))
	p.OperationKeys = append(p.OperationKeys, m.Key.String())
	p.FingerprintVersions = append(p.FingerprintVersions, m.fingerprint.Version)
	p.Fingerprints = append(p.Fingerprints, m.fingerprint.Sum[:])
	p.Currencies = append(p.Currencies, r.Currency)
	p.IssueDates = append(p.IssueDates, r.IssueDate)
	p.DueDates = append(p.DueDates, r.DueDate)
	p.CustomerNames = append(p.CustomerNames, r.Customer.Name)
	p.CustomerCountries = append(p.CustomerCountries, r.Customer.Country)
	p.CustomerVatIds = append(p.CustomerVatIds, r.Customer.VATID)
	p.Nets = append(p.Nets, d.amount(d.net))
	p.Vats = append(p.Vats, d.amount(d.vat))
	p.Grosses = append(p.Grosses, d.amount(d.gross))
	p.CorrectsIds = append(p.CorrectsIds, textOrNone(m.corrects))
	p.Documents = append(p.Documents, m.document)
}

func addLines(p *erpdb.InvoiceLineInsertParams, m *member) {
	for i := range m.Request.Lines {
		l := &m.Request.Lines[i]
		p.InvoiceIds = append(p.InvoiceIds, m.id)
		p.Positions = append(p.Positions, int32(i+1))
		p.Skus = append(p.Skus, l.SKU)
		p.Descriptions = append(p.Descriptions, l.Description)
		p.Quantities = append(p.Quantities, l.Quantity.String())
		p.UnitPrices = append(p.UnitPrices, l.UnitPrice.String())
		p.Discounts = append(p.Discounts, decimalOr(l.Discount, "0"))
		p.VatRates = append(p.VatRates, decimalOr(l.VATRate, ""))
		p.VatCategories = append(p.VatCategories, l.VATCategory)
		p.ExemptionReasons = append(p.ExemptionReasons, l.ExemptionReason)
		p.Nets = append(p.Nets, m.draft.amount(m.draft.nets[i]))
	}
}

// textOrNone is "" for Nil; the statement turns "" into NULL.
func textOrNone(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}

func decimalOr(d *erpapi.Decimal, absent string) string {
	if d == nil {
		return absent
	}
	return d.String()
}
