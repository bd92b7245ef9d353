package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	temporaryPrefix = "invoicebridge-pg-"

	// unlockedFor is how old a folder without a lock must be to count as abandoned: its program may just be making it.
	unlockedFor = time.Minute
)

// StartTemporary starts a server for tests on a new folder: many connections, nothing forced to disk. The folder is
// made in cfg.Dir (one that everybody may write to, as /tmp) or, where that is "", in memory if there is room, else in
// the temporary folder. It is removed by Stop and also when the program ends without Stop.
func StartTemporary(ctx context.Context, cfg EmbeddedConfig) (*Embedded, error) {
	parents, err := temporaryParents(ctx, cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("temporary PostgreSQL: %w", err)
	}
	for _, parent := range parents {
		removeAbandoned(parent)
	}
	if cfg.Dir, err = os.MkdirTemp(parents[0], temporaryPrefix); err != nil {
		return nil, fmt.Errorf("temporary PostgreSQL: %w", err)
	}
	settings := temporarySettings()
	maps.Copy(settings, cfg.Settings)
	cfg.Settings = settings
	cfg.temporary = true
	e, err := StartEmbedded(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(cfg.Dir))
	}
	return e, nil
}

func temporarySettings() map[string]string {
	return map[string]string{
		"fsync":              "off",
		"full_page_writes":   "off",
		"max_connections":    "300",
		"max_wal_size":       "256MB", // it may be memory
		"checkpoint_timeout": "1h",
		"autovacuum_naptime": "1h", // every test's database is young and small
	}
}

// temporaryParents are the folders for temporary servers, best first, that the server's user can reach.
func temporaryParents(ctx context.Context, wanted string) ([]string, error) {
	user, err := serverOwner("")
	if err != nil {
		return nil, err
	}
	candidates := []string{os.TempDir(), "/tmp", "/var/tmp"}
	if memory, ok := memoryFolder(); ok {
		candidates = append([]string{memory}, candidates...)
	}
	if wanted != "" {
		candidates = []string{wanted}
	}
	var parents []string
	for _, dir := range candidates {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && user.reaches(ctx, dir) {
			parents = append(parents, dir)
		}
	}
	if parents == nil {
		return nil, fmt.Errorf("user %s can reach none of the folders %q", user, candidates)
	}
	return parents, nil
}

// removeAbandoned removes what killed programs and their killed watchers left.
func removeAbandoned(parent string) {
	found, _ := filepath.Glob(filepath.Join(parent, temporaryPrefix+"*"))
	for _, dir := range found {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		lock, err := os.OpenFile(home{dir: dir}.lockFile(), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if time.Since(info.ModTime()) > unlockedFor {
				_ = os.Remove(dir) // only if empty; another user's stays
			}
		case err == nil:
			if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				_ = os.RemoveAll(dir)
			}
			_ = lock.Close()
		}
	}
}
