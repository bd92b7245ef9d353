package postgres

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// defaultSettings suit a laptop. Durability is left on: the demo kills its own parts and counts invoices.
func defaultSettings() map[string]string {
	return map[string]string{
		"listen_addresses":        "",
		"unix_socket_permissions": "0700",
		"password_encryption":     "scram-sha-256",
		"logging_collector":       "off",
		"log_timezone":            "UTC",
		"timezone":                "UTC",
		"max_connections":         "100",
		"shared_buffers":          "64MB",
		"max_wal_size":            "512MB",
		"wal_level":               "minimal", // no replication here, and bulk loads then need less WAL
		"max_wal_senders":         "0",
		"jit":                     "off", // costs more than it gains on queries this short
	}
}

// socketPathLimit is what the platform leaves for a socket's path without its closing NUL: 107 on Linux, 103 on macOS.
const socketPathLimit = len(syscall.RawSockaddrUnix{}.Path) - 1

// chooseSocketDir is the server's folder, or a private one in a short place if the socket's path would be too long.
func (h *home) chooseSocketDir() error {
	sum := sha256.Sum256([]byte(h.dir))
	name := fmt.Sprintf("invoicebridge-%d-%s", h.ownerID(), hex.EncodeToString(sum[:6]))
	for _, dir := range []string{h.dir, filepath.Join(os.TempDir(), name), filepath.Join("/tmp", name)} {
		if len(dir)+len("/.s.PGSQL."+socketPort) > socketPathLimit {
			continue
		}
		if dir != h.dir {
			if err := h.makeSocketDir(dir); err != nil {
				return err
			}
		}
		h.socketDir = dir
		return nil
	}
	return fmt.Errorf("the path of %s is too long for a socket, and so are those of the temporary folders", h.dir)
}

// makeSocketDir takes a folder left by a killed run only if nobody else can have prepared it: the name is known.
func (h home) makeSocketDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = h.owner.give(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make a folder for the socket: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("make a folder for the socket: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || info.Mode().Perm() != 0o700 || int(stat.Uid) != h.ownerID() {
		return fmt.Errorf("%s is not a private folder of the server's user: remove it", dir)
	}
	return nil
}

func (h home) ownerID() int {
	if h.owner.switched {
		return h.owner.uid
	}
	return os.Geteuid()
}

const (
	logKeep = 8 << 20 // bytes; a longer log is put aside at the next start
	logTail = 2 << 10 // bytes of it that an error shows
)

// openServerLog is the file that the server's output is appended to.
func (h home) openServerLog() (*os.File, error) {
	path := h.serverLogPath()
	if info, err := os.Stat(path); err == nil && info.Size() > logKeep {
		_ = os.Rename(path, path+".1") // a log too long is no reason not to start
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the server's log: %w", err)
	}
	return f, nil
}

func (h home) serverLogTail() string {
	text, err := os.ReadFile(h.serverLogPath())
	if err != nil {
		return err.Error()
	}
	return tail(text)
}

func tail(text []byte) string {
	if len(text) > logTail {
		text = text[len(text)-logTail:]
		if _, rest, ok := bytes.Cut(text, []byte("\n")); ok {
			text = rest
		}
	}
	return string(bytes.TrimSpace(text))
}

// hasCode reports whether the server answered with this SQLSTATE.
func hasCode(err error, code string) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == code
}

func logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
