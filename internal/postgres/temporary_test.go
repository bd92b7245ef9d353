package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}

func TestTemporaryServerIsRemovedByStop(t *testing.T) {
	t.Parallel()
	e, err := StartTemporary(t.Context(), EmbeddedConfig{Search: Search{Offline: true}})
	if err != nil {
		t.Fatal(err)
	}
	if got := query(t, e.DSN("postgres"), "SELECT 'up'"); got != "up" {
		t.Error("no answer")
	}
	stop(t, e)
	if !gone(e.Dir()) {
		t.Errorf("%s stays", e.Dir())
	}
}

func TestTemporaryServerIsRemovedWhenItsProgramIsKilled(t *testing.T) {
	t.Parallel()
	program := startProgram(t, "owner of a temporary server", "", owner{})
	if gone(program.said) {
		t.Fatal("there is no folder, so this test proves nothing")
	}
	program.kill(t)
	eventually(t, "the folder is removed", func() bool { return gone(program.said) })
}

func TestAbandonedFoldersAreRemovedAndOthersAreNot(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	folder := func(name string, locked bool) string {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if locked {
			lock, err := lockFolder(filepath.Join(dir, "lock"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = lock.Close() })
		}
		return dir
	}
	inUse, justMade, foreign := folder(temporaryPrefix+"1", true), folder(temporaryPrefix+"2", false), folder("mine", false)
	dead, neverLocked := folder(temporaryPrefix+"3", false), folder(temporaryPrefix+"4", false)
	if err := os.WriteFile(filepath.Join(dead, "lock"), []byte("1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	longAgo := time.Now().Add(-2 * unlockedFor)
	if err := os.Chtimes(neverLocked, longAgo, longAgo); err != nil {
		t.Fatal(err)
	}

	removeAbandoned(parent)

	for dir, want := range map[string]bool{inUse: false, justMade: false, foreign: false, dead: true, neverLocked: true} {
		if gone(dir) != want {
			t.Errorf("%s gone: %t, want %t", filepath.Base(dir), !want, want)
		}
	}
}
