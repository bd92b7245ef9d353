package crm

import (
	"context"
	"fmt"
	"strings"
)

// readCancelled reads what a person cancelled of orders that the call may change, under their locks: a newer version does
// not bring that back by wanting it just as before.
func (c *submitTx) readCancelled(ctx context.Context) error {
	byID := map[orderID]*incoming{}
	for i := range c.incoming {
		in := &c.incoming[i]
		if len(in.errors) > 0 {
			continue
		}
		st := c.states[in.id]
		st.byHand = c.channel == ChannelManual
		if st.known && (st.byHand || in.contentHash != st.contentHash) {
			byID[in.id] = in
		}
	}
	changing := make([]*incoming, 0, len(byID))
	for _, in := range byID {
		changing = append(changing, in)
	}
	for _, part := range chunks(changing) {
		sources, orders := orderIDColumns(part)
		rows, err := c.queries.OperationListCancelledByHand(ctx, sources, orders, c.tenant)
		if err != nil {
			return fmt.Errorf("read what was cancelled by hand: %w", err)
		}
		for _, row := range rows {
			st := c.states[orderID{row.Source, row.OrderID}]
			if st.cancelledByHand == nil {
				st.cancelledByHand = map[claim]hash{}
			}
			st.cancelledByHand[claimOf(row.Role, row.Sequence)] = hash(row.RequestHash)
		}
	}
	return nil
}

// lacking are the wanted invoices that a person cancelled and nothing has replaced.
func (st *orderState) lacking(in *incoming) (lacking []want) {
	for _, w := range in.wants {
		if _, cancelled := st.cancelledByHand[w.claim]; cancelled && st.operations[w.claim] == nil {
			lacking = append(lacking, w)
		}
	}
	return lacking
}

// wantAgain makes new operations for what was cancelled by hand, of a version that stays as it is.
func (st *orderState) wantAgain(in *incoming) Submission {
	for _, w := range st.lacking(in) {
		st.add(w, nil)
	}
	return st.submission(in, OutcomeChanged, "what was cancelled by hand is wanted again")
}

func staysCancelled(claims []claim) string {
	if len(claims) == 0 {
		return ""
	}
	names := make([]string, len(claims))
	for i, c := range claims {
		names[i] = fmt.Sprintf("%s %d", c.role, c.sequence)
	}
	return "cancelled by hand, and wanted just as it was: " + strings.Join(names, ", ")
}
