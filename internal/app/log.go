// Package app puts the programs together: configuration, logging, HTTP server, start and graceful stop.
package app

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"invoicebridge/internal/logctx"
)

// LogConfig is how a program logs.
type LogConfig struct {
	Format string `name:"log-format" env:"LOG_FORMAT" default:"text" placeholder:"FORMAT" help:"Form of log lines: text or json."`
	Level  string `name:"log-level" env:"LOG_LEVEL" default:"info" placeholder:"LEVEL" help:"Least level that is logged: debug, info, warn or error."`
}

// Check checks the configuration and names each mistake with its variable.
func (c LogConfig) Check() error {
	var mistakes []error
	if c.Format != "text" && c.Format != "json" {
		mistakes = append(mistakes, mistake("LOG_FORMAT", "%q is neither text nor json", c.Format))
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		mistakes = append(mistakes, mistake("LOG_LEVEL", "%q is none of debug, info, warn and error", c.Level))
	}
	return errors.Join(mistakes...)
}

// NewLogger makes the logger of a program. Its lines bear what logctx puts into their context: tenant, operation
// key and request id. It fails if the configuration is wrong.
func NewLogger(w io.Writer, c LogConfig) (*slog.Logger, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return nil, fmt.Errorf("log level: %w", err)
	}
	opts := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(w, opts)
	if c.Format == "json" {
		handler = slog.NewJSONHandler(w, opts)
	}
	return slog.New(logctx.Handler{Handler: handler}), nil
}

// mistake is a wrong setting, told with the name of its environment variable.
func mistake(variable, format string, args ...any) error {
	return fmt.Errorf("%s: %s", variable, fmt.Sprintf(format, args...))
}
