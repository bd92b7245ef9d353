package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/problem"
)

// Limits of sessions.
const (
	// DefaultIdle is how long a session lasts without a request, DefaultLife how long it lasts at all.
	DefaultIdle = time.Hour
	DefaultLife = 12 * time.Hour
	// MinIdle is more than the time within which use is not written down.
	MinIdle = 5 * time.Minute
	// touchEvery keeps pages cheap: that a session is used is written down at most this often.
	touchEvery = time.Minute
)

// Session is a session that has just begun.
type Session struct {
	// Value is for the browser's cookie. Nothing else has it: only its hash is kept.
	Value    string
	Identity Identity
}

// Origin is where a log-in comes from.
type Origin struct{ Address, UserAgent string }

// NewSession is a session to be kept.
type NewSession struct {
	Hash    []byte
	Account uuid.UUID
	// PasswordHash is what the password was checked against; empty if none was.
	PasswordHash string
	Life         time.Duration
	Origin
}

// ErrSessionUnknown is what a SessionStore answers for a session that is not alive.
var ErrSessionUnknown = errors.New("session unknown")

// SessionStore keeps sessions and failed log-ins. The database's clock decides what has ended.
type SessionStore interface {
	AccountByName(ctx context.Context, name string) (Account, error) // ErrAccountUnknown

	// RenewPasswordHash keeps another hash of the same password; false if the account is disabled, or has another one than
	// old by now.
	RenewPasswordHash(ctx context.Context, account uuid.UUID, old, renewed string) (done bool, err error)

	// BeginSession keeps a session; false if the account is disabled or has another password by now.
	BeginSession(ctx context.Context, s NewSession) (begun bool, err error)
	// SessionOf gives whose session it is if it is alive, and whether it is time to touch it.
	SessionOf(ctx context.Context, hash []byte, idle, touch time.Duration) (who Identity, stale bool, err error)
	TouchSession(ctx context.Context, hash []byte, touch time.Duration) error
	EndSession(ctx context.Context, hash []byte) error
	// RemoveEndedSessions removes some of those whose time is over.
	RemoveEndedSessions(ctx context.Context, idle time.Duration) error

	// CountTry counts a try against subjects, after those that concern one of them, unless decide, which is told
	// what counts, says that it must wait. Older than forget does not count.
	CountTry(ctx context.Context, subjects []string, forget time.Duration, decide func([]Failures) (wait time.Duration)) (wait time.Duration, err error)
	// TryWasRight takes a try back, and forgets everything about the subject forgiven.
	TryWasRight(ctx context.Context, subjects []string, forgiven string) error
}

// SessionOptions are the limits of sessions; 0 stands for the default.
type SessionOptions struct {
	Idle, Life time.Duration
	Logger     *slog.Logger
}

// Sessions are the log-ins of people. It is safe for concurrent use.
type Sessions struct {
	store  SessionStore
	hasher *Hasher
	idle   time.Duration
	life   time.Duration
	log    *slog.Logger
}

// NewSessions makes Sessions on a store.
func NewSessions(store SessionStore, hasher *Hasher, o SessionOptions) *Sessions {
	s := &Sessions{store: store, hasher: hasher, idle: o.Idle, life: o.Life, log: o.Logger}
	if s.idle <= 0 {
		s.idle = DefaultIdle
	}
	if s.life <= 0 {
		s.life = DefaultLife
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// LogIn begins a session for whoever has the name and the password. What is refused is a *problem.Problem: unauthenticated,
// which does not say whether there is such a name, or too-many-requests with the time to wait. Every try costs the same hash.
func (s *Sessions) LogIn(ctx context.Context, name, password string, from Origin) (Session, error) {
	name = loginName(name)
	try := newTry(name, from.Address)
	if err := s.admit(ctx, try); err != nil {
		return Session{}, err
	}
	account, err := s.accountNamed(ctx, name)
	if err != nil {
		return Session{}, err
	}
	right, err := s.hasher.Check(ctx, password, account.PasswordHash)
	if err != nil {
		return Session{}, err
	}
	if !right || account.DisabledAt != nil {
		s.log.InfoContext(ctx, "log-in refused", "address", from.Address)
		return Session{}, wrongLogIn()
	}
	if err := s.store.TryWasRight(ctx, try.subjects(), try.pair); err != nil {
		return Session{}, fmt.Errorf("forget failed log-ins: %w", err)
	}
	if account, err = s.renewed(ctx, account, password); err != nil {
		return Session{}, err
	}
	return s.begin(ctx, account, NewSession{PasswordHash: account.PasswordHash, Origin: from})
}

// renewed gives the account with the hash of its password, which is right, as hashes are made now. If the hash can't be
// renewed, that is left to the next log-in.
func (s *Sessions) renewed(ctx context.Context, account Account, password string) (Account, error) {
	if !s.hasher.Outdated(account.PasswordHash) {
		return account, nil
	}
	hash, err := s.hasher.Renew(ctx, password)
	if err != nil {
		return account, err
	}
	done, err := s.store.RenewPasswordHash(ctx, account.ID, account.PasswordHash, hash)
	switch {
	case err != nil:
		s.log.WarnContext(ctx, "an outdated hash of a password is left for the next log-in", "account", account.Name, "error", err)
		return account, nil
	case done:
		s.log.InfoContext(ctx, "the hash of a password was renewed", "account", account.Name)
		account.PasswordHash = hash
		return account, nil
	}
	// Somebody was quicker: another log-in that has renewed it, or who has changed the password.
	if account, err = s.accountNamed(ctx, account.Name); err != nil {
		return account, err
	}
	right, err := s.hasher.Check(ctx, password, account.PasswordHash)
	if err == nil && !right {
		err = wrongLogIn()
	}
	return account, err
}

// accountNamed is the zero Account, which has no password, if there is none of that name.
func (s *Sessions) accountNamed(ctx context.Context, name string) (Account, error) {
	if !accountForm.MatchString(name) {
		return Account{}, nil
	}
	account, err := s.store.AccountByName(ctx, name)
	if err != nil && !errors.Is(err, ErrAccountUnknown) {
		return Account{}, fmt.Errorf("look up an account: %w", err)
	}
	return account, nil
}

// Begin begins a session for a person who was recognised in another way, such as OIDC. A disabled account is refused:
// unauthenticated.
func (s *Sessions) Begin(ctx context.Context, account Account, from Origin) (Session, error) {
	return s.begin(ctx, account, NewSession{Origin: from})
}

func (s *Sessions) begin(ctx context.Context, account Account, n NewSession) (Session, error) {
	value := newSessionValue()
	n.Hash, n.Account, n.Life = sessionHash(value), account.ID, s.life
	n.Address, n.UserAgent = shortened(n.Address, 100), shortened(n.UserAgent, 300)
	begun, err := s.store.BeginSession(ctx, n)
	if err != nil {
		return Session{}, fmt.Errorf("begin a session: %w", err)
	}
	if !begun {
		return Session{}, wrongLogIn()
	}
	if err := s.store.RemoveEndedSessions(ctx, s.idle); err != nil {
		s.log.WarnContext(ctx, "sessions that have ended are left for the next log-in", "error", err)
	}
	s.log.InfoContext(ctx, "logged in", "account", account.Name, "tenant", account.Tenant, "address", n.Address)
	return Session{Value: value, Identity: account.Identity()}, nil
}

// Identify says whose session a cookie's value belongs to: unauthenticated if to nobody's, or it has ended, or the account
// is disabled. used prolongs it up to the idle limit. It is one query; at most once a minute also a write.
func (s *Sessions) Identify(ctx context.Context, value string, used bool) (Identity, error) {
	hash, ok := parseSessionValue(value)
	if !ok {
		return Identity{}, noSession()
	}
	who, stale, err := s.store.SessionOf(ctx, hash, s.idle, touchEvery)
	if errors.Is(err, ErrSessionUnknown) {
		return Identity{}, noSession()
	}
	if err != nil {
		return Identity{}, fmt.Errorf("look up a session: %w", err)
	}
	if stale && used {
		if err := s.store.TouchSession(ctx, hash, touchEvery); err != nil {
			return Identity{}, fmt.Errorf("note that a session is used: %w", err)
		}
	}
	return who, nil
}

// End ends the session of a cookie's value; nothing if there is none.
func (s *Sessions) End(ctx context.Context, value string) error {
	hash, ok := parseSessionValue(value)
	if !ok {
		return nil
	}
	if err := s.store.EndSession(ctx, hash); err != nil {
		return fmt.Errorf("end a session: %w", err)
	}
	return nil
}

const sessionBytes = 32 // 256 random bits: what is kept of them needs no more than SHA-256

func newSessionValue() string {
	random := make([]byte, sessionBytes)
	_, _ = rand.Read(random) // never fails: see its documentation
	return base64.RawURLEncoding.EncodeToString(random)
}

func sessionHash(value string) []byte {
	sum := sha256.Sum256([]byte(value))
	return sum[:]
}

// parseSessionValue refuses what can't be one before the database is asked.
func parseSessionValue(value string) (hash []byte, ok bool) {
	random, err := base64.RawURLEncoding.Strict().DecodeString(value)
	if err != nil || len(random) != sessionBytes || strings.ContainsAny(value, "\r\n") { // the decoder overlooks line ends
		return nil, false
	}
	return sessionHash(value), true
}

func wrongLogIn() error {
	return problem.New(problem.Unauthenticated, "The name or the password is wrong, or the account can't be used.")
}

func noSession() error { return problem.New(problem.Unauthenticated, "Log in first.") }
