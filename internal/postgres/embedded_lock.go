package postgres

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ErrInUse says that another living program has the data folder.
var ErrInUse = errors.New("data folder is in use")

// lockFolder takes the folder for this program until the returned file is closed or the program ends. The lock is
// the kernel's, so it can't be stale; the number in the file only serves the message.
func lockFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the data folder (does it belong to another user?): %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer func() { _ = f.Close() }()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock the data folder: %w", err)
		}
		holder, _ := io.ReadAll(io.LimitReader(f, 20))
		return nil, fmt.Errorf("%w by another program (process %s, lock %s): stop that one or use another folder",
			ErrInUse, strings.TrimSpace(string(holder)), path)
	}
	err = errors.Join(f.Truncate(0), writeAtStart(f, strconv.Itoa(os.Getpid())+"\n"))
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("write the lock of the data folder: %w", err)
	}
	return f, nil
}

func writeAtStart(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}
