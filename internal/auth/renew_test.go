package auth_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/alexedwards/argon2id"

	"invoicebridge/internal/auth"
)

// outdated gives an account a hash of its password with weaker parameters than are used now.
func (p people) outdated(name string) (hash string) {
	p.t.Helper()
	hash, err := argon2id.CreateHash(password, &argon2id.Params{Memory: 8 * 1024, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32})
	if err != nil {
		p.t.Fatal(err)
	}
	p.exec("UPDATE accounts SET password_hash = $2 WHERE name = $1", name, hash)
	return hash
}

func (p people) hashOf(name string) string {
	p.t.Helper()
	account, err := p.store.AccountByName(p.t.Context(), name)
	if err != nil {
		p.t.Fatal(err)
	}
	return account.PasswordHash
}

func TestAnOutdatedHashIsRenewedByTheNextLogIn(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		p.account("ada", auth.RoleOperator)
		old := p.outdated("ada")
		if _, err := p.sessions.LogIn(p.t.Context(), "ada", "wrong horse battery", here); err == nil {
			p.t.Fatal("a wrong password opens")
		}
		if p.hashOf("ada") != old {
			p.t.Error("a wrong password has renewed the hash")
		}
		session := p.logIn("ada")
		renewed := p.hashOf("ada")
		if renewed == old || !strings.Contains(renewed, "m=19456,t=2,p=1") {
			p.t.Errorf("the hash is %s", renewed)
		}
		if !p.knows(session.Value) || !p.knows(p.logIn("ada").Value) {
			p.t.Error("the session is not alive")
		}
		if p.hashOf("ada") != renewed {
			p.t.Error("a hash that is as hashes are made now was renewed")
		}
	})
}

func TestOfTwoWhoRenewAHashAtOnceBothGetIn(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		p.account("ada", auth.RoleOperator)
		for range 5 {
			p.outdated("ada")
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() {
					if _, err := p.sessions.LogIn(p.t.Context(), "ada", password, here); err != nil {
						p.t.Error(err)
					}
				})
			}
			both.Wait()
		}
	})
}
