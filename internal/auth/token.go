// Package auth says who calls: bearer tokens that belong to one tenant and have one role, their verification and
// their administration. It knows neither HTTP nor SQL; erpstore and crmstore keep the tokens of the two services.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Token is a token as it is kept. The secret is nowhere, only its hash.
type Token struct {
	ID         string
	Tenant     string
	Role       Role
	Label      string
	SecretHash []byte
	CreatedAt  time.Time
	RevokedAt  *time.Time
	// Account is whose own the token is; nil: a machine's. Owner is that person, in what a store reads.
	Account *uuid.UUID
	Owner   *Account
}

// Secret is the part of a token that proves its possession. It is told once, when the token is made.
type Secret string

// Hash is what is kept of a secret. The secret has 256 random bits, so nothing slower than SHA-256 is needed.
func (s Secret) Hash() []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

// String keeps the secret out of logs.
func (s Secret) String() string { return "(secret)" }

const (
	tokenPrefix = "ibt" // lets secret scanners find a token that leaked
	idLength    = 16    // 80 random bits
	secretBytes = 32
)

var tokenForm = regexp.MustCompile(`^ibt_([a-z2-7]{16})_([0-9a-f]{64})$`)

// ErrTokenForm says that a text is not in the form of a token. It says nothing about any token that exists.
var ErrTokenForm = errors.New("not in the form of a token")

// Generate makes a new id and secret.
func Generate() (id string, secret Secret) {
	id = strings.ToLower(rand.Text()[:idLength])
	random := make([]byte, secretBytes)
	_, _ = rand.Read(random) // never fails: see its documentation
	return id, Secret(hex.EncodeToString(random))
}

// Format gives the text that a caller sends: ibt_<id>_<secret>.
func Format(id string, secret Secret) string {
	return tokenPrefix + "_" + id + "_" + string(secret)
}

// Parse takes a token's text apart. The error is ErrTokenForm.
func Parse(text string) (id string, secret Secret, err error) {
	m := tokenForm.FindStringSubmatch(text)
	if m == nil {
		return "", "", ErrTokenForm
	}
	return m[1], Secret(m[2]), nil
}
