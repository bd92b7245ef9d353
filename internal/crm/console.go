package crm

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/tenantdb"
)

// DefaultERPPatience is how long the page of an operation waits for the ERP.
const DefaultERPPatience = 3 * time.Second

// ERPReader asks the ERP. *erpapi.Client is the real one.
type ERPReader interface {
	GetOperation(ctx context.Context, token, key string) erpapi.Exchange
	ListInvoices(ctx context.Context, token string, q erpapi.InvoiceQuery) erpapi.InvoiceListing
}

// QueueReader tells how much the queue holds. internal/jobs has the real one.
type QueueReader interface {
	// QueueDepth counts the jobs of the whole service by their state.
	QueueDepth(ctx context.Context) ([]QueueState, error)
}

// QueueState is how many jobs are in one state.
type QueueState struct {
	State string `json:"state"`
	Jobs  int64  `json:"jobs"`
}

// ConsoleOptions are a Console's settings. Zero values are usable.
type ConsoleOptions struct {
	// ERP is asked for its view of an operation; nil: nobody is asked, and that is told.
	ERP ERPReader
	// Token gives the ERP's token of a tenant, or "" if none is configured.
	Token func(tenant string) string
	// ERPPatience is how long the ERP's answer is waited for. 0: DefaultERPPatience.
	ERPPatience time.Duration
	Queue       QueueReader      // nil: its depth is not known
	Now         func() time.Time // for how long figures of past hours are kept; nil: time.Now
	Logger      *slog.Logger     // nil discards
}

// Console reads what the console shows. It changes nothing, save that it records what was refused (RecordRefusal), and
// what was imported. Everything it gives belongs to the tenant that it is asked for. It is safe for concurrent use.
type Console struct {
	db   tenantdb.DB
	opts ConsoleOptions

	mu sync.Mutex
	// activity is kept for a while: it is the one figure that costs more the more there is to do.
	activity map[string]keptActivity
}

// NewConsole makes a Console on the CRM side's database.
func NewConsole(pool *pgxpool.Pool, opts ConsoleOptions) *Console {
	if opts.Token == nil {
		opts.Token = func(string) string { return "" }
	}
	if opts.ERPPatience <= 0 {
		opts.ERPPatience = DefaultERPPatience
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Console{db: tenantdb.New(pool), opts: opts, activity: map[string]keptActivity{}}
}

// readConsole runs queries whose conditions depend on what is asked for, in one read-only transaction: one view of the data, and
// plans that are made for just these conditions.
func readConsole(ctx context.Context, db tenantdb.Scope, do func(*crmdb.Queries) error) error {
	return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		queries := crmdb.New(tx)
		if err := queries.ConsolePlan(ctx); err != nil {
			return fmt.Errorf("set how to plan: %w", err)
		}
		return do(queries)
	})
}
