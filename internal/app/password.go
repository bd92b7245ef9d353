package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"invoicebridge/internal/auth"
)

// PasswordFlags say where a password comes from. It is never an argument: those can be read by everybody on the machine,
// and stay in a shell's history.
type PasswordFlags struct {
	PasswordFile string `type:"path" placeholder:"FILE" help:"File with the password; without one it is asked for on a terminal, or read from standard input."`
}

// maxPasswordInput is more than any password that is taken.
const maxPasswordInput = 64 << 10

// hash reads the password and gives its hash. It fails if the password is not one for that log-in name.
func (f PasswordFlags) hash(ctx context.Context, env *AdminEnv, name string) (string, error) {
	password, err := f.read(env)
	if err != nil {
		return "", err
	}
	return auth.NewHasher().Hash(ctx, name, password)
}

func (f PasswordFlags) read(env *AdminEnv) (string, error) {
	if f.PasswordFile != "" {
		file, err := os.Open(f.PasswordFile)
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		defer file.Close()
		return readPassword(file)
	}
	stdin := env.Stdin
	if stdin == nil {
		stdin = os.Stdin
	}
	if terminal, ok := stdin.(*os.File); ok && term.IsTerminal(int(terminal.Fd())) {
		return askPassword(terminal)
	}
	return readPassword(stdin)
}

// readPassword reads all there is; the end of the last line is not part of a password.
func readPassword(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxPasswordInput))
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	if bytes.ContainsAny(text, "\r\n") {
		return "", errors.New("a password has one line")
	}
	return string(text), nil
}

// askPassword asks twice without showing what is typed.
func askPassword(terminal *os.File) (string, error) {
	var typed [2]string
	for i, prompt := range []string{"Password: ", "Once more: "} {
		fmt.Fprint(os.Stderr, prompt)
		text, err := term.ReadPassword(int(terminal.Fd()))
		fmt.Fprintln(os.Stderr)
		if err != nil {
			return "", fmt.Errorf("ask for the password: %w", err)
		}
		typed[i] = string(text)
	}
	if typed[0] != typed[1] {
		return "", errors.New("the two passwords differ")
	}
	return typed[0], nil
}
