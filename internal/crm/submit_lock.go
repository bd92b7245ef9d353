package crm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/problem"
)

// chunk is how many orders one statement deals with: enough to make round trips cheap, few enough that one
// statement's parameters stay some megabytes.
const chunk = 1000

// submitTx is one run of one call's transaction.
type submitTx struct {
	tx       pgx.Tx
	queries  *crmdb.Queries
	jobs     JobInserter
	tenant   string
	channel  Channel
	incoming []incoming

	now    time.Time // the database's
	states map[orderID]*orderState
	inbox  []message
	queued bool // jobs were inserted
}

// lockOrders locks every order of the call and reads where each stands.
//
// Two calls with overlapping orders do not deadlock: each first inserts the orders it finds missing, sorted by
// (source, order), and only then locks those that were there, in the same order. While inserting, a call waits
// only for others' uncommitted inserts and holds none of the other locks; while locking, it waits only for rows
// that are committed, and those are taken in one order by all. Operations come last, sorted by id; the deliverer
// holds one operation at a time and never an order.
//
// What is read after that is read under the locks, so every repeat of a message sees what the first one did.
func (c *submitTx) lockOrders(ctx context.Context) error {
	begin, err := c.queries.OrderSubmitBegin(ctx, c.tenant)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if !begin.TenantKnown {
		return problem.New(problem.NotFound, "There is no tenant %q.", c.tenant)
	}
	c.now = begin.Now
	firsts := c.firsts()
	for _, part := range chunks(firsts) {
		if err := c.insertMissing(ctx, part); err != nil {
			return err
		}
	}
	var there []*incoming
	for _, in := range firsts {
		if c.states[in.id] == nil {
			there = append(there, in)
		}
	}
	for _, part := range chunks(there) {
		if err := c.lockThere(ctx, part); err != nil {
			return err
		}
	}
	if err := c.readSeen(ctx); err != nil {
		return err
	}
	if err := c.readCancelled(ctx); err != nil {
		return err
	}
	return c.lockOperations(ctx)
}

// firsts are the first acceptable messages of each order in the call, sorted by order.
func (c *submitTx) firsts() []*incoming {
	first := map[orderID]*incoming{}
	for i := range c.incoming {
		in := &c.incoming[i]
		if len(in.errors) == 0 && first[in.id] == nil {
			first[in.id] = in
		}
	}
	c.states = make(map[orderID]*orderState, len(first))
	return slices.SortedFunc(maps.Values(first), func(a, b *incoming) int { return compareOrderIDs(a.id, b.id) })
}

func (c *submitTx) insertMissing(ctx context.Context, firsts []*incoming) error {
	arg := crmdb.OrderInsertMissingParams{TenantID: c.tenant}
	for _, in := range firsts {
		arg.Sources, arg.OrderIds = append(arg.Sources, in.id.source), append(arg.OrderIds, in.id.order)
		arg.Versions = append(arg.Versions, firstVersion(in))
		arg.Statuses = append(arg.Statuses, string(in.status))
		arg.Contents = append(arg.Contents, in.content)
		arg.ContentHashes = append(arg.ContentHashes, in.contentHash[:])
	}
	inserted, err := c.queries.OrderInsertMissing(ctx, arg)
	if err != nil {
		return fmt.Errorf("insert orders: %w", err)
	}
	for _, row := range inserted {
		id := orderID{row.Source, row.OrderID}
		c.states[id] = newOrderState(id)
	}
	return nil
}

func (c *submitTx) lockThere(ctx context.Context, there []*incoming) error {
	sources, orders := orderIDColumns(there)
	rows, err := c.queries.OrderLock(ctx, sources, orders, c.tenant)
	if err != nil {
		return fmt.Errorf("lock orders: %w", err)
	}
	if len(rows) != len(there) {
		return fmt.Errorf("lock orders: %d of %d found, and orders are never deleted", len(rows), len(there))
	}
	for _, row := range rows {
		st := newOrderState(orderID{row.Source, row.OrderID})
		st.known, st.version, st.status = true, row.Version, OrderStatus(row.Status)
		st.contentHash = hash(row.ContentHash)
		c.states[st.id] = st
	}
	live, err := c.queries.OperationListLive(ctx, sources, orders, c.tenant)
	if err != nil {
		return fmt.Errorf("read operations: %w", err)
	}
	for _, row := range live {
		op := operationOfRow(row)
		c.states[orderID{row.Source, row.OrderID}].operations[op.claim] = op
	}
	return nil
}

// readSeen reads which messages of orders that were there came before. (A message of a new order can't have.)
func (c *submitTx) readSeen(ctx context.Context) error {
	var identified []*incoming
	for i := range c.incoming {
		in := &c.incoming[i]
		if in.messageID != "" && len(in.errors) == 0 && c.states[in.id].known {
			identified = append(identified, in)
		}
	}
	for _, part := range chunks(identified) {
		arg := crmdb.InboxMessageListSeenParams{TenantID: c.tenant}
		arg.Sources, arg.OrderIds = orderIDColumns(part)
		for _, in := range part {
			content := in.messageHash()
			arg.MessageIds, arg.ContentHashes = append(arg.MessageIds, in.messageID), append(arg.ContentHashes, content[:])
		}
		rows, err := c.queries.InboxMessageListSeen(ctx, arg)
		if err != nil {
			return fmt.Errorf("look for messages: %w", err)
		}
		for _, row := range rows {
			c.states[orderID{row.Source, row.OrderID}].seen[messageKey{row.MessageID, hash(row.ContentHash)}] = true
		}
	}
	return nil
}

// lockOperations locks the operations of orders that the call may change, and reads again how far each has come:
// the deliverer may have begun an attempt since.
func (c *submitTx) lockOperations(ctx context.Context) error {
	byID := map[uuid.UUID]*operationState{}
	for i := range c.incoming {
		in := &c.incoming[i]
		if st := c.states[in.id]; len(in.errors) == 0 && st.known && in.contentHash != st.contentHash {
			for _, op := range st.operations {
				byID[op.id] = op
			}
		}
	}
	if len(byID) == 0 {
		return nil
	}
	rows, err := c.queries.OperationLock(ctx, slices.Collect(maps.Keys(byID)))
	if err != nil {
		return fmt.Errorf("lock operations: %w", err)
	}
	for _, row := range rows {
		op := byID[row.ID]
		op.status, op.attempt, op.reason = OperationStatus(row.Status), row.Attempt, Reason(row.Reason)
		op.nothingLeft = row.NothingLeft
	}
	return nil
}

func operationOfRow(row crmdb.OperationListLiveRow) *operationState {
	op := &operationState{
		id: row.ID, key: row.Key, claim: claimOf(row.Role, row.Sequence), status: OperationStatus(row.Status),
		attempt: row.Attempt, reason: Reason(row.Reason), requestHash: hash(row.RequestHash),
	}
	if row.ChangedAfterDeliveryVersion != nil {
		op.changedVersion = *row.ChangedAfterDeliveryVersion
		op.changedVersionOnDB = op.changedVersion
	}
	return op
}

func orderIDColumns(orders []*incoming) (sources, ids []string) {
	for _, in := range orders {
		sources, ids = append(sources, in.id.source), append(ids, in.id.order)
	}
	return sources, ids
}

func chunks[T any](all []T) [][]T { return slices.Collect(slices.Chunk(all, chunk)) }
