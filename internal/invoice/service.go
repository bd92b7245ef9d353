// Package invoice issues invoices, each exactly once, and reads them back. It validates requests, computes the money,
// numbers without holes, and leaves every question of "does it exist already" to the database's constraints.
package invoice

import (
	"crypto/sha256"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/tenantdb"
)

// DefaultKeyRetention is how long a reservation is kept at least. The invoice remembers its key for ever.
const DefaultKeyRetention = 90 * 24 * time.Hour

// Command is one request to issue an invoice, authenticated and decoded but not validated.
type Command struct {
	Tenant  string
	Caller  string // who asks, for the record of conflicts; never part of the request's identity
	Key     idempotency.Key
	Request *erpapi.InvoiceRequest
	// Body are the bytes that Request was decoded from, by which Again knows them; the zero Body where they are not known.
	// It is never part of the request's identity.
	Body Body
	// Trace says which trace the command belongs to (tracectx.Of), whatever transaction it ends up in; the jobs of its
	// registrations go on with it. Empty where nothing is traced.
	Trace string
}

// Body stands for the bytes of a request: their SHA-256.
type Body [sha256.Size]byte

// NewBody is the Body of some bytes.
func NewBody(content []byte) Body { return sha256.Sum256(content) }

// Result is what became of one Command: either Answer or Err is set.
type Result struct {
	Answer *Answer
	// Err is a *problem.Problem where it is expected; anything else is internal, or the context's own error.
	Err error
	// FirstSeen and Expires tell about the reservation of the key, by the database's clock; zero where unknown.
	FirstSeen, Expires time.Time
}

// Answer is an issued invoice.
type Answer struct {
	InvoiceID uuid.UUID
	Number    string
	Document  []byte // the JSON of the first answer, byte for byte the same in every replay and every read
	Replayed  bool   // this call did not issue it: an earlier one with the same key and content did
}

// Options of a Service. The zero value is usable.
type Options struct {
	Logger       *slog.Logger     // default: none
	KeyRetention time.Duration    // default: DefaultKeyRetention
	Now          func() time.Time // default: time.Now; measures waiting only, never stands in a document
	// Registrations is where the jobs of registrations go. Without it they are left to the sweep.
	Registrations RegistrationQueue
	// Reconciliations is where the jobs of comparisons go that a person starts. Without it none can be started.
	Reconciliations ReconciliationQueue
	// ReconcileOverlap is the Reconciler's; 0: DefaultReconcileOverlap.
	ReconcileOverlap time.Duration
	// Committed is told how many invoices a transaction has issued; it must not block. nil: nobody is told.
	Committed func(invoices int)
	// Replays keeps answers in memory. nil: every replay is read from the database.
	Replays *Replays
}

// Service issues and reads invoices. It is safe for concurrent use, by any number of processes on one database.
type Service struct {
	db tenantdb.DB
	// connections are as many as there may be.
	connections int
	logger      *slog.Logger
	retention   time.Duration
	now         func() time.Time
	queue       RegistrationQueue
	committed   func(invoices int)
	replays     *Replays
	repeats     atomic.Bool // what was asked for last had an answer

	reconciliations  ReconciliationQueue
	reconcileOverlap time.Duration
}

// NewService makes a Service on the ERP's database.
func NewService(pool *pgxpool.Pool, opts Options) *Service {
	s := &Service{
		db: tenantdb.New(pool), connections: int(pool.Config().MaxConns), logger: opts.Logger, retention: opts.KeyRetention, now: opts.Now, queue: opts.Registrations, committed: opts.Committed, replays: opts.Replays,
		reconciliations: opts.Reconciliations, reconcileOverlap: opts.ReconcileOverlap,
	}
	if s.reconcileOverlap <= 0 {
		s.reconcileOverlap = DefaultReconcileOverlap
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.retention <= 0 {
		s.retention = DefaultKeyRetention
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.committed == nil {
		s.committed = func(int) {}
	}
	return s
}
