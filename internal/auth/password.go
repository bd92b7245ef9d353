package auth

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"
	"golang.org/x/text/unicode/norm"
)

const (
	// MinPassword is the least number of characters of a password. Nothing else is asked of one: length is what
	// helps (NIST SP 800-63B, 5.1.1.2).
	MinPassword = 12
	maxPassword = 1000
	// hashesAtOnce bounds the memory that log-ins take: 4 of 19 MiB.
	hashesAtOnce = 4
)

// owasp are the parameters that OWASP's Password Storage Cheat Sheet names first: 19 MiB, 2 passes, 1 lane.
var owasp = argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// Hasher makes and checks the hashes of passwords (argon2id, RFC 9106), few at once: whoever comes when all places are
// taken waits, up to the end of their context. It is safe for concurrent use.
type Hasher struct {
	params argon2id.Params
	places chan struct{}
}

// NewHasher makes a Hasher with OWASP's parameters.
func NewHasher() *Hasher {
	return &Hasher{params: owasp, places: make(chan struct{}, hashesAtOnce)}
}

// Hash gives the hash of a password for keeping. name is the log-in name, which must not be in it.
func (h *Hasher) Hash(ctx context.Context, name, password string) (hash string, err error) {
	if err := checkPassword(name, password); err != nil {
		return "", err
	}
	err = h.work(ctx, func() error {
		hash, err = argon2id.CreateHash(composed(password), &h.params)
		return err
	})
	return hash, err
}

// Check says whether a password is the one whose hash is kept. An empty hash costs the same and is nobody's.
func (h *Hasher) Check(ctx context.Context, password, hash string) (right bool, err error) {
	if len(password) > 4*maxPassword {
		password = "" // the same work for nothing: no password is empty
	}
	err = h.work(ctx, func() error {
		if hash == "" {
			_, err := argon2id.CreateHash(composed(password), &h.params)
			return err
		}
		right, err = argon2id.ComparePasswordAndHash(composed(password), hash)
		return err
	})
	return right && err == nil, err
}

// Outdated says whether a hash was made with other parameters than are used now.
func (h *Hasher) Outdated(hash string) bool {
	params, _, _, err := argon2id.DecodeHash(hash)
	return err == nil && *params != h.params
}

// Renew hashes a password that was found right anew. It asks nothing of the password: whoever has it may go on with it.
func (h *Hasher) Renew(ctx context.Context, password string) (hash string, err error) {
	err = h.work(ctx, func() error {
		hash, err = argon2id.CreateHash(composed(password), &h.params)
		return err
	})
	return hash, err
}

func (h *Hasher) work(ctx context.Context, do func() error) error {
	select {
	case h.places <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for a place to hash a password: %w", ctx.Err())
	}
	defer func() { <-h.places }()
	if err := do(); err != nil {
		return fmt.Errorf("hash a password: %w", err)
	}
	return nil
}

// composed makes one password of what two keyboards send differently (Unicode NFC).
func composed(password string) string { return norm.NFC.String(password) }

func checkPassword(name, password string) error {
	switch n := utf8.RuneCountInString(composed(password)); {
	case !utf8.ValidString(password):
		return fmt.Errorf("a password is UTF-8 text")
	case n < MinPassword || n > maxPassword:
		return fmt.Errorf("a password has %d to %d characters; this one has %d", MinPassword, maxPassword, n)
	case strings.Contains(strings.ToLower(password), name):
		return fmt.Errorf("a password must not have the log-in name in it")
	}
	return nil
}
