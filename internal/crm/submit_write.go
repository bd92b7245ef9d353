package crm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/tracectx"
)

// takeAll lets every order of the call take effect in memory, in the order given.
func (c *submitTx) takeAll() []Submission {
	submissions := make([]Submission, len(c.incoming))
	for i := range c.incoming {
		in := &c.incoming[i]
		if len(in.errors) > 0 {
			submissions[i] = in.refused()
			c.receive(in, submissions[i], hash{})
			continue
		}
		st := c.states[in.id]
		seenBefore := st.seenBefore(in)
		submissions[i] = st.take(in)
		if !seenBefore {
			c.receive(in, submissions[i], in.messageHash())
		}
		if in.messageID != "" && submissions[i].Outcome != OutcomeRefused {
			st.seen[messageKey{in.messageID, in.messageHash()}] = true
		}
	}
	return submissions
}

// receive notes a message for the inbox. A refused one does not take its message id: it may come again, and is
// judged anew then.
func (c *submitTx) receive(in *incoming, s Submission, content hash) {
	row := message{
		source: storable(in.id.source), order: storable(in.id.order), version: s.Version, content: content, outcome: s.Outcome, detail: s.Detail,
	}
	if s.Outcome == OutcomeRefused {
		row.detail = storable(refusedDetail(in.messageID, s))
	} else {
		row.id = in.messageID
	}
	c.inbox = append(c.inbox, row)
}

// message is one for the inbox; id is "" where it has none, or may not keep it.
type message struct {
	source, id, order string
	version           int64
	content           hash
	outcome           Outcome
	detail            string
}

func refusedDetail(messageID string, s Submission) string {
	var b strings.Builder
	b.WriteString(s.Detail)
	for _, e := range s.Errors[:min(len(s.Errors), 10)] {
		fmt.Fprintf(&b, "; %s %s", e.Pointer, e.Detail)
	}
	if messageID != "" {
		fmt.Fprintf(&b, " (message %q)", excerpt(messageID))
	}
	return b.String()
}

// storable makes any text fit for a text column; only refused orders have such that is not.
func storable(text string) string {
	const most = 2000
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most])
	}
	return text
}

// write writes what the call changed. Room in the business claim is made before new operations take it.
func (c *submitTx) write(ctx context.Context) error {
	states := c.sortedStates()
	for _, step := range []struct {
		name string
		do   func(context.Context, []*orderState) error
	}{
		{"update orders", c.updateOrders},
		{"retire operations", c.retireOperations},
		{"revise operations", c.reviseOperations},
		{"mark operations", c.markOperations},
		{"insert operations", c.insertOperations},
	} {
		if err := step.do(ctx, states); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	if err := c.insertMessages(ctx); err != nil {
		return fmt.Errorf("insert messages: %w", err)
	}
	return nil
}

func (c *submitTx) insertMessages(ctx context.Context) error {
	for _, part := range chunks(c.inbox) {
		arg := crmdb.InboxMessageInsertParams{TenantID: c.tenant, Channel: string(c.channel)}
		for i := range part {
			m := &part[i]
			arg.Sources, arg.MessageIds = append(arg.Sources, m.source), append(arg.MessageIds, m.id)
			arg.OrderIds, arg.Versions = append(arg.OrderIds, m.order), append(arg.Versions, m.version)
			arg.ContentHashes = append(arg.ContentHashes, m.content[:])
			arg.Outcomes, arg.Details = append(arg.Outcomes, string(m.outcome)), append(arg.Details, m.detail)
		}
		if err := c.queries.InboxMessageInsert(ctx, arg); err != nil {
			return err
		}
	}
	return nil
}

func (c *submitTx) sortedStates() []*orderState {
	return slices.SortedFunc(maps.Values(c.states), func(a, b *orderState) int { return compareOrderIDs(a.id, b.id) })
}

func (c *submitTx) updateOrders(ctx context.Context, states []*orderState) error {
	changed := slices.DeleteFunc(slices.Clone(states), func(st *orderState) bool { return !st.changed })
	for _, part := range chunks(changed) {
		arg := crmdb.OrderUpdateParams{TenantID: c.tenant}
		for _, st := range part {
			arg.Sources, arg.OrderIds = append(arg.Sources, st.id.source), append(arg.OrderIds, st.id.order)
			arg.Versions = append(arg.Versions, st.version)
			arg.Statuses = append(arg.Statuses, string(st.status))
			arg.Contents = append(arg.Contents, st.content)
			arg.ContentHashes = append(arg.ContentHashes, st.contentHash[:])
		}
		if err := allOf(len(part))(c.queries.OrderUpdate(ctx, arg)); err != nil {
			return err
		}
	}
	return nil
}

func (c *submitTx) retireOperations(ctx context.Context, states []*orderState) error {
	var cancelled, superseded []uuid.UUID
	for _, st := range states {
		for _, op := range st.retired {
			switch {
			case op.change == operationCancelled:
				cancelled = append(cancelled, op.id)
			case op.superseded:
				superseded = append(superseded, op.id)
			}
		}
	}
	if len(cancelled) > 0 {
		err := allOf(len(cancelled))(c.queries.OperationCancelUnsent(ctx, "the order does not want it any more", cancelled))
		if err != nil {
			return fmt.Errorf("cancel: %w", err)
		}
	}
	if len(superseded) > 0 {
		if err := allOf(len(superseded))(c.queries.OperationSupersedeFailed(ctx, superseded)); err != nil {
			return fmt.Errorf("supersede: %w", err)
		}
	}
	return nil
}

func (c *submitTx) reviseOperations(ctx context.Context, states []*orderState) error {
	for _, part := range chunks(operationsWhere(states, func(op *operationState) bool { return op.change == operationRevised })) {
		var arg crmdb.OperationReviseUnsentParams
		for _, op := range part {
			arg.Ids, arg.Requests = append(arg.Ids, op.id), append(arg.Requests, op.request)
			arg.RequestHashes = append(arg.RequestHashes, op.requestHash[:])
			arg.OrderVersions = append(arg.OrderVersions, op.orderVersion)
		}
		if err := allOf(len(part))(c.queries.OperationReviseUnsent(ctx, arg)); err != nil {
			return err
		}
	}
	return nil
}

func (c *submitTx) markOperations(ctx context.Context, states []*orderState) error {
	marked := operationsWhere(states, func(op *operationState) bool { return op.changedVersion != op.changedVersionOnDB })
	for _, part := range chunks(marked) {
		var ids []uuid.UUID
		var versions []int64
		for _, op := range part {
			ids, versions = append(ids, op.id), append(versions, op.changedVersion)
		}
		if err := allOf(len(part))(c.queries.OperationSetChangedAfterDelivery(ctx, ids, versions)); err != nil {
			return err
		}
	}
	return nil
}

// insertOperations inserts the new operations and their jobs.
func (c *submitTx) insertOperations(ctx context.Context, states []*orderState) error {
	var made []newOperation
	var ids []uuid.UUID
	for _, st := range states {
		ofOrder := operationsWhere([]*orderState{st}, func(op *operationState) bool { return op.change == operationNew })
		trace := c.traceOf(ctx, ofOrder)
		for _, op := range ofOrder {
			made, ids = append(made, newOperation{op, st.id, trace}), append(ids, op.id)
		}
	}
	if len(made) == 0 {
		return nil
	}
	for _, part := range chunks(made) {
		if err := c.queries.OperationInsert(ctx, c.insertParams(part)); err != nil {
			return err
		}
	}
	if err := c.jobs.InsertDeliveries(ctx, c.tx, ids, c.now); err != nil {
		return fmt.Errorf("insert jobs: %w", err)
	}
	c.queued = true
	return nil
}

// traceOf is the trace that operations of one order belong to: the call's, if that is about this order alone, else one of
// their own. A file of ten thousand orders in one trace would tell nothing about any. "" where nothing is traced.
func (c *submitTx) traceOf(ctx context.Context, made []*operationState) string {
	if len(made) == 0 {
		return ""
	}
	carried := tracectx.Of(ctx)
	if len(c.incoming) > 1 && carried != "" {
		carried = tracectx.Apart(ctx, "take order in", made[0].key)
	}
	return carried
}

// newOperation is one of an order that is to be inserted, with the trace it belongs to.
type newOperation struct {
	*operationState
	order orderID
	trace string
}

func (c *submitTx) insertParams(made []newOperation) crmdb.OperationInsertParams {
	arg := crmdb.OperationInsertParams{TenantID: c.tenant, Kind: KindInvoice, NextAttemptAt: c.now}
	for _, op := range made {
		arg.Ids, arg.Keys = append(arg.Ids, op.id), append(arg.Keys, op.key)
		arg.Sources, arg.OrderIds = append(arg.Sources, op.order.source), append(arg.OrderIds, op.order.order)
		arg.Roles = append(arg.Roles, string(op.claim.role))
		arg.Sequences = append(arg.Sequences, int32(op.claim.sequence)) // validated to fit
		arg.OrderVersions = append(arg.OrderVersions, op.orderVersion)
		arg.Requests, arg.RequestHashes = append(arg.Requests, op.request), append(arg.RequestHashes, op.requestHash[:])
		arg.Statuses = append(arg.Statuses, string(op.status))
		supersedes := ""
		if op.supersedes != nil {
			supersedes = op.supersedes.id.String()
		}
		arg.SupersedesIds, arg.TraceContexts = append(arg.SupersedesIds, supersedes), append(arg.TraceContexts, op.trace)
	}
	return arg
}

// operationsWhere are the live operations that match, by order, and within it by claim.
func operationsWhere(states []*orderState, match func(*operationState) bool) (matching []*operationState) {
	for _, st := range states {
		of := len(matching)
		for _, op := range st.operations {
			if match(op) {
				matching = append(matching, op)
			}
		}
		slices.SortFunc(matching[of:], func(a, b *operationState) int { return compareClaims(a.claim, b.claim) })
	}
	return matching
}

// allOf holds a statement to the number of rows it is meant to change. Under the locks it can't be another one; if
// it is, somebody changes rows without them, and the transaction must not be committed.
func allOf(want int) func(got int64, err error) error {
	return func(got int64, err error) error {
		if err == nil && got != int64(want) {
			err = fmt.Errorf("%d rows changed, not %d", got, want)
		}
		return err
	}
}

func claimOf(role string, sequence int32) claim { return claim{erpapi.Role(role), int64(sequence)} }
