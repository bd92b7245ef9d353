package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const temporaryPrefix = "invoicebridge-pg-"

// StartTemporary starts a server for tests on a new folder in the temporary folder: many connections, nothing
// forced to disk. cfg.Dir is not used. Stop removes the folder; folders of programs that died without Stop are
// removed by the next StartTemporary.
func StartTemporary(ctx context.Context, cfg EmbeddedConfig) (*Embedded, error) {
	temp, err := temporaryParent(ctx)
	if err != nil {
		return nil, err
	}
	removeAbandoned(temp)
	if cfg.Dir, err = os.MkdirTemp(temp, temporaryPrefix); err != nil {
		return nil, fmt.Errorf("make a folder for a temporary server: %w", err)
	}
	settings := map[string]string{
		"fsync":              "off",
		"full_page_writes":   "off",
		"max_connections":    "300",
		"max_wal_size":       "2GB",
		"checkpoint_timeout": "1h",
		"autovacuum_naptime": "1h", // every test's database is young and small
	}
	maps.Copy(settings, cfg.Settings)
	cfg.Settings = settings
	e, err := StartEmbedded(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(cfg.Dir))
	}
	e.temporary = true
	return e, nil
}

// temporaryParent is the temporary folder, or the system's own if the user's is closed to the server's user.
func temporaryParent(ctx context.Context) (string, error) {
	user, err := serverOwner("")
	if err != nil {
		return "", err
	}
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && user.reaches(ctx, dir) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("user %s can reach no temporary folder", user)
}

// removeAbandoned removes the folders whose lock nobody holds. A very young one may not have come to its lock yet.
func removeAbandoned(temp string) {
	found, _ := filepath.Glob(filepath.Join(temp, temporaryPrefix+"*"))
	for _, dir := range found {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		lock, err := os.OpenFile(home{dir: dir}.lockFile(), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue // another user's
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		lock.Close()
	}
}
