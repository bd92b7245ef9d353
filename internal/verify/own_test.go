package verify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"invoicebridge/internal/fleet"
)

// Both installations of a run fail then, one of them beside the other.
func TestARunWhoseProgramsDoNotStartSaysSo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{fleet.ERP, fleet.CRM, fleet.TargetSim} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho broken >&2\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := Own{Programs: dir}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got %v, %v", rows, err)
	}
}
