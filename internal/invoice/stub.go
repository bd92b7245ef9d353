package invoice

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/erpapi"
)

var errNotBuilt = errors.New("not built yet")

// Filter narrows a list; zero members do not narrow. CreatedFrom is inclusive, CreatedTo exclusive.
type Filter struct {
	Source, Order, Role, Key, Number, Status string
	CreatedFrom, CreatedTo                   time.Time
}

// Page says which part of a list is wanted.
type Page struct {
	Limit  int    // 1 to 200; 0 is 50
	Cursor string // next cursor of the page before; empty for the first
}

// Issue issues the invoices that the commands ask for and gives one Result for each, in their order.
// Everything that happens to one command is told in its Result alone: no command fails or blocks another.
// A Result without Err is committed. A refused command (any problem) has stored nothing and taken no number.
func (s *Service) Issue(ctx context.Context, cmds []Command) []Result {
	return make([]Result, len(cmds))
}

// Get gives the document of one invoice of the tenant; problem not-found if there is none.
func (s *Service) Get(ctx context.Context, tenant string, id uuid.UUID) ([]byte, error) {
	return nil, errNotBuilt
}

// List gives documents, newest first, and the cursor of the next page, nil on the last. Problem malformed-request for
// a limit out of range or a cursor this service did not make.
func (s *Service) List(ctx context.Context, tenant string, f Filter, p Page) (items [][]byte, next *string, err error) {
	return nil, nil, errNotBuilt
}

// Operation tells what is known of a key, also after its reservation is purged; problem not-found if nothing.
func (s *Service) Operation(ctx context.Context, tenant, key string) (erpapi.Operation, error) {
	return erpapi.Operation{}, errNotBuilt
}

// SetSeries makes a tenant's invoices of a role take their numbers from the series with this prefix from now on, and
// writes down who changed it and why. Problem malformed-request for a bad value, not-found for an unknown tenant.
func (s *Service) SetSeries(ctx context.Context, tenant, role, prefix string, digits int, actor, reason string) error {
	return errNotBuilt
}
