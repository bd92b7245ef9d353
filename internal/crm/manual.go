package crm

import (
	"context"
	"net/url"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/problem"
)

// SubmitByHand takes in one order that a person has written, for when its source is away: Submit with the channel manual,
// with an audit entry in the same transaction, unless nothing changes. The refusals are Submit's; their pointers go into the
// order. The same order may come from its source as well, before or after: it is one order.
//
// Of an invoice that was cancelled by hand it makes a new operation, also where just the same is wanted.
func (s *Service) SubmitByHand(ctx context.Context, tenant string, order Order, by audit.By) (Submission, error) {
	if err := checkBy(by); err != nil {
		return Submission{}, err
	}
	submissions, err := s.Submit(ctx, tenant, ChannelManual, []Order{order}, SubmitOptions{byHand: &by})
	switch {
	case err != nil && len(submissions) == 1 && submissions[0].Outcome == OutcomeRefused:
		return submissions[0], refusedByHand(err, submissions[0])
	case err != nil:
		return Submission{}, err
	}
	return submissions[0], nil
}

// refusedByHand tells a refusal without the index that only an array has.
func refusedByHand(err error, refused Submission) error {
	p := problem.As(err)
	if p == nil {
		return err
	}
	told := problem.New(p.Type, "The order was refused (%s). Nothing was stored.", refused.Detail)
	told.Errors = refused.Errors
	return told
}

// auditByHand writes down who wrote the orders of the call, if a person did, for those that changed something.
func (c *submitTx) auditByHand(ctx context.Context, submissions []Submission, by *audit.By) error {
	if by == nil {
		return nil
	}
	for _, sub := range submissions {
		if sub.Outcome == OutcomeAlreadyThere || sub.Outcome == OutcomeStale {
			continue
		}
		subject := url.PathEscape(sub.Source) + "/" + url.PathEscape(sub.Order)
		if err := writeAudit(ctx, c.queries, c.tenant, "order.submit", subject, *by); err != nil {
			return err
		}
	}
	return nil
}
