package invoice

import (
	"context"
	"fmt"
	"slices"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/jsondiff"
	"invoicebridge/internal/problem"
)

// operationKind is what keys of this package are reserved for.
const operationKind = "issue_invoice"

// lookUp answers the members of a round whose answer is final already, and gives those that are still open. It
// compares contents on every path: a stored answer goes only to the request that made it.
//
// A key that has an answer comes before a mistake in the request (422 key reused rather than 422 invalid), and a
// mistake before a claim that another key has, and that before a limit of the order.
func (s *Service) lookUp(ctx context.Context, round []*member) ([]*member, error) {
	mark := s.replays.mark(s.now())
	rows, err := erpdb.New(s.db.Of(tenantsOf(round)...).PlannedOnce("invoices")).InvoiceListSettled(ctx, settledParams(round))
	if err != nil {
		return round, fmt.Errorf("look up what is issued already: %w", err)
	}
	s.repeats.Store(len(rows) > 0)
	byKey, byClaim := map[*member]erpdb.InvoiceListSettledRow{}, map[*member]erpdb.InvoiceListSettledRow{}
	for _, row := range rows {
		if m := round[row.Position]; row.ByKey {
			byKey[m] = row
		} else {
			byClaim[m] = row
		}
	}
	var open []*member
	for i, m := range round {
		keyed, hasKey := byKey[m]
		claimed, hasClaim := byClaim[m]
		var err error
		switch {
		case hasKey:
			err = s.answerKnownKey(ctx, m, keyed, mark)
		case m.refusal != nil:
			m.refuse(m.refusal)
		case hasClaim:
			err = answerClaimed(m, claimed)
		case m.overrun != nil:
			m.refuse(m.overrun)
		default:
			open = append(open, m)
		}
		if err != nil {
			return append(open, round[i:]...), err
		}
	}
	return open, nil
}

// looksFirst says whether a round is looked up before its first try. If not, and one of its members has an answer, that
// try fails by a constraint, and the look-up comes with the next one. So it is only about what costs less: a try that fails
// costs more than a look-up, and a look-up that finds nothing is for nothing. What came last tells what comes next. Requests
// that are not valid are only looked up.
func (s *Service) looksFirst(round []*member) bool {
	return s.repeats.Load() || slices.ContainsFunc(round, func(m *member) bool { return m.refusal != nil })
}

func settledParams(round []*member) erpdb.InvoiceListSettledParams {
	params := erpdb.InvoiceListSettledParams{Operation: operationKind}
	for i, m := range round {
		params.Positions = append(params.Positions, int32(i))
		params.TenantIds = append(params.TenantIds, m.Tenant)
		params.Keys = append(params.Keys, m.Key.String())
		params.Sources = append(params.Sources, m.order().source)
		params.OrderIds = append(params.OrderIds, m.order().id)
		params.Roles = append(params.Roles, string(m.Request.Role))
		params.Sequences = append(params.Sequences, m.Request.EffectiveSequence())
	}
	return params
}

// answerKnownKey replays the stored answer, or refuses the key for this other request.
func (s *Service) answerKnownKey(ctx context.Context, m *member, row erpdb.InvoiceListSettledRow, mark replayMark) error {
	stored, err := storedRequestOf(row)
	if err != nil {
		return err
	}
	result := Result{FirstSeen: row.CreatedAt.UTC()} // the reservation and the invoice are of one transaction
	if expires := tellable(row.ExpiresAt); expires != nil {
		result.Expires = *expires
	}
	if stored.fingerprint == m.fingerprint {
		result.Answer = &Answer{InvoiceID: row.ID, Number: row.Number, Document: row.Document, Replayed: true}
		s.replays.found(mark, m, result, row.AskedAt)
	} else if result.Err, err = s.keyReused(ctx, m, stored); err != nil {
		return err
	}
	m.settle(result)
	return nil
}

// keyReused records the conflict, in its own statement and before the answer, and gives that answer.
func (s *Service) keyReused(ctx context.Context, m *member, stored storedRequest) (*problem.Problem, error) {
	canonical, err := stored.canonical()
	if err != nil {
		return nil, err
	}
	differences, err := jsondiff.Differences(canonical, m.canonical)
	if err != nil {
		return nil, err
	}
	err = erpdb.New(s.db.Of(m.Tenant)).KeyConflictInsert(ctx, erpdb.KeyConflictInsertParams{
		TenantID: m.Tenant, Operation: operationKind, Key: m.Key.String(), Caller: m.Caller, Differences: differences,
	})
	if err != nil {
		return nil, fmt.Errorf("record a key conflict: %w", err)
	}
	p := problem.New(problem.IdempotencyKeyReused,
		"This key belongs to another request: the members named in differences are not the same.")
	p.Differences = differences
	return p, nil
}

// answerClaimed tells of the invoice that another operation has issued for this business claim.
func answerClaimed(m *member, row erpdb.InvoiceListSettledRow) error {
	stored, err := storedRequestOf(row)
	if err != nil {
		return err
	}
	p := problem.New(problem.AlreadyInvoiced, "The %s invoice %d of this order exists already, it is %s.",
		m.Request.Role, m.Request.EffectiveSequence(), row.Number)
	p.Invoice = &problem.InvoiceRef{ID: row.ID.String(), Number: row.Number, OperationKey: row.OperationKey}
	p.SameContent = stored.fingerprint == m.fingerprint
	m.refuse(p)
	return nil
}

// storedRequest is the request that an invoice was made from.
type storedRequest struct {
	fingerprint idempotency.Fingerprint // by the current rules
	document    []byte
}

// storedRequestOf gives the fingerprint as stored, or, where the rules were others then, made again from the document.
func storedRequestOf(row erpdb.InvoiceListSettledRow) (storedRequest, error) {
	stored := storedRequest{document: row.Document}
	var err error
	if row.FingerprintVersion == erpapi.CanonicalVersion {
		stored.fingerprint, err = idempotency.StoredFingerprint(row.FingerprintVersion, row.Fingerprint)
		return stored, err
	}
	canonical, err := stored.canonical()
	stored.fingerprint = idempotency.NewFingerprint(erpapi.CanonicalVersion, canonical)
	return stored, err
}

func (r storedRequest) canonical() ([]byte, error) {
	inv, err := readDocument(r.document)
	if err != nil {
		return nil, err
	}
	return inv.Request().Canonical()
}
