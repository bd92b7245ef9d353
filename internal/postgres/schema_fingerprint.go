package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
)

// Fingerprint is twelve hexadecimal digits over everything that makes the schema, our files and River's: databases
// migrated by binaries of one fingerprint are alike.
func (s Schema) Fingerprint() (string, error) {
	hash := sha256.New()
	add := func(name, text string) { _, _ = fmt.Fprintf(hash, "%s %d\n%s", name, len(text), text) } // a hash takes all
	err := fs.WalkDir(s.FS, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".sql") {
			return err
		}
		text, err := fs.ReadFile(s.FS, path)
		add(path, string(text))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the migrations of %s: %w", s.Name, err)
	}
	if s.River {
		migrator, err := newRiverMigrator(nil)
		if err != nil {
			return "", err
		}
		for _, m := range migrator.AllVersions() {
			add(m.Name, m.SQLUp)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:6]), nil
}
