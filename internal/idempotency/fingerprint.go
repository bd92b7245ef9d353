package idempotency

import (
	"bytes"
	"crypto/sha256"
	"fmt"
)

// fingerprintPrefix goes in front of what is hashed, so that a fingerprint is one of an invoice request by these
// rules and nothing else, and a change of the rules changes every fingerprint visibly.
const fingerprintPrefix = "invoicebridge invoice request v%d\n"

// Fingerprint says whether two requests under one key are the same request: they are if version and sum are equal.
// Fingerprints of two versions say nothing about each other.
type Fingerprint struct {
	Version int16 // of the rules that made the canonical form
	Sum     [sha256.Size]byte
}

// NewFingerprint hashes a canonical form made by the rules of the given version.
func NewFingerprint(version int16, canonical []byte) Fingerprint {
	hash := sha256.New()
	fmt.Fprintf(hash, fingerprintPrefix, version) // a hash never fails to write
	hash.Write(canonical)
	return Fingerprint{Version: version, Sum: [sha256.Size]byte(hash.Sum(nil))}
}

// StoredFingerprint reads a fingerprint back from its two columns. It fails if the sum has not the length that the
// columns' constraint demands.
func StoredFingerprint(version int16, sum []byte) (Fingerprint, error) {
	if len(sum) != sha256.Size {
		return Fingerprint{}, fmt.Errorf("stored fingerprint has %d bytes instead of %d", len(sum), sha256.Size)
	}
	return Fingerprint{Version: version, Sum: [sha256.Size]byte(bytes.Clone(sum))}, nil
}
