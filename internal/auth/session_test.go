package auth_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/testdb"
)

var here = auth.Origin{Address: "192.0.2.1", UserAgent: "test"}

func (p people) logIn(name string) auth.Session {
	p.t.Helper()
	session, err := p.sessions.LogIn(p.t.Context(), name, password, here)
	if err != nil {
		p.t.Fatal(err)
	}
	return session
}

// knows says whether a session is alive.
func (p people) knows(value string) bool {
	p.t.Helper()
	_, err := p.sessions.Identify(p.t.Context(), value, true)
	if err != nil && !problem.Is(err, problem.Unauthenticated) {
		p.t.Fatal(err)
	}
	return err == nil
}

func TestRightNameAndPasswordBeginASession(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		ada := p.account("ada", auth.RoleOperator)
		session := p.logIn(" ADA ")
		who, err := p.sessions.Identify(p.t.Context(), session.Value, true)
		if err != nil || who != ada.Identity() || session.Identity != who || who.Actor() != "ada" {
			p.t.Errorf("%+v, %v, want %+v", who, err, ada.Identity())
		}
		if again := p.logIn("ada"); again.Value == session.Value {
			p.t.Error("two log-ins have one session")
		}
		if n := p.count("sessions WHERE address = '192.0.2.1' AND user_agent = 'test' AND expires_at = created_at + interval '12 hours'"); n != 2 {
			p.t.Errorf("%d sessions as they should be, want 2", n)
		}
		if n := p.count("sessions s WHERE strpos(s::text, '" + session.Value + "') > 0"); n != 0 {
			p.t.Error("what the cookie holds is in the database")
		}
		if n := p.count("login_failures"); n != 0 {
			p.t.Errorf("%d failures are kept of log-ins that were right", n)
		}
	})
}

// No enumeration: whatever is wrong, the answer is the same.
func TestNobodyElseGetsASessionAndAllAreToldTheSame(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		p.account("ada", auth.RoleOperator)
		p.account("gone", auth.RoleOperator)
		if err := p.admin.DisableAccount(p.t.Context(), "gone", byKim); err != nil {
			p.t.Fatal(err)
		}
		_, err := p.admin.CreateAccount(p.t.Context(), auth.Account{Tenant: "acme", Name: "oidc-only", DisplayName: "x", Role: auth.RoleViewer}, byKim)
		if err != nil {
			p.t.Fatal(err)
		}
		told := map[string]bool{}
		for _, c := range []struct{ name, password string }{
			{"ada", "wrong horse battery"}, {"ada", ""}, {"ada", password[:len(password)-1]}, {"nobody", password},
			{"gone", password}, {"oidc-only", ""}, {"oidc-only", password}, {"", ""}, {"\x00", password}, {"' OR 1=1 --", password},
		} {
			from := auth.Origin{Address: "192.0.2." + string(rune('1'+len(c.name)%9))}
			session, err := p.sessions.LogIn(p.t.Context(), c.name, c.password, from)
			if !problem.Is(err, problem.Unauthenticated) || session != (auth.Session{}) {
				p.t.Errorf("%q, %q: %+v, %v, want unauthenticated", c.name, c.password, session, err)
				continue
			}
			told[err.Error()] = true
		}
		if len(told) != 1 {
			p.t.Errorf("told are %v: who can tell them apart learns which names there are", told)
		}
		if n := p.count("sessions"); n != 0 {
			p.t.Errorf("%d sessions", n)
		}
		if n := p.count("login_failures WHERE subject LIKE 'name %'"); n != 7 {
			p.t.Errorf("failures of %d names are counted, want all 7, that of the disabled account, too", n)
		}
	})
}

func TestValuesThatAreNoSessionsAreNobodys(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		p.account("ada", auth.RoleOperator)
		value := p.logIn("ada").Value
		for _, wrong := range []string{"", "x", value[1:], value + "A", value + "=", " " + value, strings.ToUpper(value), strings.Repeat("A", 43), strings.Repeat("A", 1<<16)} {
			if p.knows(wrong) {
				p.t.Errorf("%.60q is a session", wrong)
			}
		}
		if !p.knows(value) {
			p.t.Error("the right value is none")
		}
	})
}

func TestSessionEndsByItsLimitsByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		p.account("ada", auth.RoleOperator)
		idle, old, unused := p.logIn("ada"), p.logIn("ada"), p.logIn("ada")
		p.exec("UPDATE sessions SET created_at = created_at - interval '59 min', last_seen_at = last_seen_at - interval '59 min', expires_at = expires_at - interval '59 min'")
		if !p.knows(idle.Value) || !p.knows(old.Value) { // and both count as used now
			p.t.Fatal("a session has ended before its hour was over")
		}
		p.exec("UPDATE sessions SET last_seen_at = last_seen_at - interval '2 min'")
		if !p.knows(idle.Value) {
			p.t.Error("a session that is used has ended")
		}
		if p.knows(unused.Value) {
			p.t.Error("a session that was not used for an hour is alive")
		}
		p.exec("UPDATE sessions SET created_at = now() - interval '13 hours', expires_at = now() - interval '1 s', last_seen_at = now()")
		if p.knows(old.Value) {
			p.t.Error("a session is alive after its twelve hours, however much it was used")
		}
		p.logIn("ada")
		if n := p.count("sessions"); n != 1 {
			p.t.Errorf("%d sessions are kept, want the living one alone", n)
		}
	})
}

func TestUseIsWrittenDownAtMostOnceAMinuteAndOnlyIfSomebodyDidSomething(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		p.account("ada", auth.RoleOperator)
		value := p.logIn("ada").Value
		seen := func() (at time.Time) {
			if err := p.pool.QueryRow(p.t.Context(), "SELECT last_seen_at FROM sessions").Scan(&at); err != nil {
				p.t.Fatal(err)
			}
			return at
		}
		identify := func(used bool) {
			if _, err := p.sessions.Identify(p.t.Context(), value, used); err != nil {
				p.t.Fatal(err)
			}
		}
		at := seen()
		identify(true)
		if !seen().Equal(at) {
			p.t.Error("written within the minute")
		}
		p.exec("UPDATE sessions SET last_seen_at = last_seen_at - interval '61 s'")
		at = seen()
		identify(false)
		if !seen().Equal(at) {
			p.t.Error("a page that refreshes itself keeps the session")
		}
		identify(true)
		if !seen().After(at) {
			p.t.Error("not written after the minute")
		}
	})
}

func TestSessionEndsAtLogOutAndOnlyThatOne(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		p.account("ada", auth.RoleOperator)
		one, other := p.logIn("ada"), p.logIn("ada")
		for _, value := range []string{one.Value, one.Value, "", "x"} {
			if err := p.sessions.End(p.t.Context(), value); err != nil {
				p.t.Errorf("end %q: %v", value, err)
			}
		}
		if p.knows(one.Value) || !p.knows(other.Value) {
			p.t.Error("the wrong session has ended")
		}
	})
}

func TestSessionsEndWithTheAccountAndWithItsPassword(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		ada := p.account("ada", auth.RoleOperator)
		p.account("bob", auth.RoleOperator)
		first, second, bobs := p.logIn("ada"), p.logIn("ada"), p.logIn("bob")
		ended, err := p.admin.SetPassword(p.t.Context(), "ada", ada.PasswordHash, byKim)
		if err != nil || ended != 2 || p.knows(first.Value) || p.knows(second.Value) || !p.knows(bobs.Value) {
			p.t.Errorf("%d sessions ended with the password, %v; want both of ada's and not bob's", ended, err)
		}
		third := p.logIn("ada")
		p.exec("UPDATE accounts SET disabled_at = now() WHERE name = 'ada'") // whoever did it, and whatever they forgot
		if p.knows(third.Value) {
			p.t.Error("a session outlives its account")
		}
		if _, err := p.sessions.Begin(p.t.Context(), ada, here); !problem.Is(err, problem.Unauthenticated) {
			p.t.Errorf("a session for a disabled account: %v", err)
		}
		if err := p.admin.DisableAccount(p.t.Context(), "bob", byKim); err != nil || p.knows(bobs.Value) {
			p.t.Errorf("bob's session outlives his account: %v", err)
		}
	})
}

// The change of a password must not be overtaken: a log-in with the old one that was checked before the change, and
// begins its session after it, would outlive "all sessions are ended".
func TestLogInWithThePasswordOfBeforeBeginsNoSessionAfterItsChange(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		p.account("ada", auth.RoleOperator)
		tx, err := p.pool.Begin(p.t.Context())
		if err != nil {
			p.t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		if _, err := tx.Exec(p.t.Context(), "UPDATE accounts SET password_hash = '$argon2id$other' WHERE name = 'ada'"); err != nil {
			p.t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := p.sessions.LogIn(context.Background(), "ada", password, here)
			done <- err
		}()
		testdb.Await(p.t, "the log-in waits for the change", func() bool {
			return p.count("pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 1
		})
		if err := tx.Commit(p.t.Context()); err != nil {
			p.t.Fatal(err)
		}
		if err := <-done; !problem.Is(err, problem.Unauthenticated) {
			p.t.Errorf("%v, want unauthenticated", err)
		}
		if n := p.count("sessions"); n != 0 {
			p.t.Errorf("%d sessions", n)
		}
	})
}

// fails tries wrong passwords and gives how the last one ended.
func (p people) fails(times int, name, address string) (err error) {
	p.t.Helper()
	for range times {
		_, err = p.sessions.LogIn(p.t.Context(), name, "wrong horse battery", auth.Origin{Address: address})
	}
	return err
}

func TestFailuresMakeTheirAddressWaitAndNotTheOwner(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		p.account("ada", auth.RoleOperator)
		if err := p.fails(5, "ada", "198.51.100.7"); !problem.Is(err, problem.Unauthenticated) {
			p.t.Fatalf("the fifth failure: %v", err)
		}
		_, err := p.sessions.LogIn(p.t.Context(), "ada", password, auth.Origin{Address: "198.51.100.7"})
		told := problem.As(err)
		if told == nil || told.Type != problem.TooManyRequests || told.RetryAfter < time.Second || told.RetryAfter > 2*time.Second {
			p.t.Fatalf("the right password in the sixth try: %v, want to wait for a second", err)
		}
		if _, err := p.sessions.LogIn(p.t.Context(), "ada", password, here); err != nil {
			p.t.Errorf("the owner, from another address: %v", err)
		}
		if err := p.fails(1, "bob", "198.51.100.7"); !problem.Is(err, problem.Unauthenticated) {
			p.t.Errorf("another name from there: %v", err)
		}
		counted := p.count("login_failures WHERE failures = 5 AND subject LIKE 'pair %'")
		if counted != 1 {
			p.t.Error("a try that had to wait was counted")
		}
		p.exec("UPDATE login_failures SET last_failed_at = last_failed_at - interval '2 s'")
		if _, err := p.sessions.LogIn(p.t.Context(), "ada", password, auth.Origin{Address: "198.51.100.7"}); err != nil {
			p.t.Errorf("after the wait: %v", err)
		}
		if err := p.fails(5, "ada", "198.51.100.7"); !problem.Is(err, problem.Unauthenticated) {
			p.t.Errorf("once a log-in was right, the count does not begin anew: %v", err)
		}
	})
}

func TestOwnersAreNotLockedOutByFailuresFromManyAddresses(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		p.account("ada", auth.RoleOperator)
		for i := range 25 {
			if err := p.fails(1, "ada", "198.51.100."+string(rune('0'+i%10))+string(rune('0'+i/10))); err == nil {
				p.t.Fatal("logged in")
			}
		}
		if err := p.fails(2, "ada", "203.0.113.1"); !problem.Is(err, problem.TooManyRequests) {
			p.t.Errorf("the second failure under a name that is being guessed at: %v, want to wait", err)
		}
		if _, err := p.sessions.LogIn(p.t.Context(), "ada", password, here); err != nil {
			p.t.Errorf("the owner: %v", err)
		}
	})
}

func TestAddressThatTriesNameAfterNameHasToWait(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		var err error
		for i := range 31 {
			err = p.fails(1, "name"+string(rune('a'+i)), "198.51.100.7")
			if i < 30 && !problem.Is(err, problem.Unauthenticated) {
				p.t.Fatalf("try %d: %v", i, err)
			}
		}
		if !problem.Is(err, problem.TooManyRequests) {
			p.t.Errorf("the 31st: %v, want to wait", err)
		}
	})
}

// Tries at once don't get past the limit together.
func TestTriesAtOnceAreCountedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		p.account("ada", auth.RoleOperator)
		var all sync.WaitGroup
		results := make(chan error, 20)
		for range cap(results) {
			all.Go(func() {
				_, err := p.sessions.LogIn(p.t.Context(), "ada", "wrong horse battery", here)
				results <- err
			})
		}
		all.Wait()
		close(results)
		looked := 0
		for err := range results {
			switch {
			case problem.Is(err, problem.Unauthenticated):
				looked++
			case !problem.Is(err, problem.TooManyRequests):
				p.t.Errorf("got %v", err)
			}
		}
		if looked != 5 {
			p.t.Errorf("%d of 20 tries at once were looked at, want 5", looked)
		}
	})
}

func TestOldFailuresAreForgottenAndRemoved(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		if err := p.fails(6, "ada", "198.51.100.7"); !problem.Is(err, problem.TooManyRequests) {
			p.t.Fatal(err)
		}
		p.exec("UPDATE login_failures SET last_failed_at = last_failed_at - interval '61 min'")
		if err := p.fails(1, "bob", "192.0.2.9"); !problem.Is(err, problem.Unauthenticated) {
			p.t.Fatal(err)
		}
		if n := p.count("login_failures"); n != 3 {
			p.t.Errorf("%d failures are kept, want those of the last hour", n)
		}
		if err := p.fails(5, "ada", "198.51.100.7"); !problem.Is(err, problem.Unauthenticated) {
			p.t.Errorf("after an hour: %v, want to be as new", err)
		}
		if n := p.count("login_failures WHERE subject LIKE '%ada%'"); n != 0 {
			p.t.Error("what was typed as a name is kept in the clear")
		}
	})
}

type awayStore struct{ auth.SessionStore }

func (awayStore) SessionOf(context.Context, []byte, time.Duration, time.Duration) (auth.Identity, bool, error) {
	return auth.Identity{}, false, errors.New("connection refused")
}

func TestDatabaseThatIsAwayIsNoLogOut(t *testing.T) {
	t.Parallel()
	s := auth.NewSessions(awayStore{}, auth.NewHasher(), auth.SessionOptions{})
	_, err := s.Identify(t.Context(), strings.Repeat("A", 43), true)
	if err == nil || problem.As(err) != nil {
		t.Errorf("got %v: whoever is logged in must not be told that they are not", err)
	}
}
