package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"invoicebridge/internal/app"
)

// logKeep is the size in bytes from which a log file is put aside at the start.
const logKeep = 8 << 20

// openLog opens the log, which never goes to stdout: that belongs to the demo.
func openLog(s settings, stderr io.Writer) (log *slog.Logger, closeLog func(), err error) {
	w, closeLog := stderr, func() {}
	if s.LogFile != "-" {
		file, err := openLogFile(s)
		if err != nil {
			return nil, nil, err
		}
		w, closeLog = file, func() { file.Close() }
	}
	log, err = app.NewLogger(w, app.LogConfig{Format: s.LogFormat, Level: s.LogLevel})
	if err != nil {
		closeLog()
		return nil, nil, err
	}
	return log, closeLog, nil
}

func openLogFile(s settings) (*os.File, error) {
	path := s.LogFile
	if path == "" {
		path = filepath.Join(s.DataDir, "bridge.log")
	}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > logKeep {
		_ = os.Rename(path, path+".1") // a log too long is no reason not to start
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log (choose another one with --log-file): %w", err)
	}
	return file, nil
}
