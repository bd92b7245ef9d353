package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
)

// SkewVariable is the environment variable by which a build with a wrong clock is told how many seconds it is wrong.
const SkewVariable = "CLOCK_SKEW_SECONDS"

// skewSource is added to the standard library's package time. Only the wall clock is wrong: the monotonic one, by which
// timers run, is the machine's.
const skewSource = `package time

import "syscall"

var skew = readSkew()

func readSkew() int64 {
	text, _ := syscall.Getenv("` + SkewVariable + `")
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	seconds, err := atoi(text)
	if err != nil {
		return 0
	}
	if negative {
		seconds = -seconds
	}
	return int64(seconds)
}
`

// WriteSkewOverlay writes into a folder what "go build -overlay <folder>/overlay.json" needs to build programs whose whole
// clock, that of every library too, is wrong by SkewVariable. It changes the standard library of this machine's Go as it is
// read by that build, not on disk.
func WriteSkewOverlay(ctx context.Context, dir string) error {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("ask Go where its sources are: %w", err)
	}
	timePackage := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(timePackage, "time.go"))
	if err != nil {
		return err
	}
	begin := []byte("func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n")
	if bytes.Count(source, begin) != 1 {
		return errors.New("this version of Go reads its clock otherwise than is known here")
	}
	skewed := bytes.Replace(source, begin, append(begin[:len(begin):len(begin)], "\tsec += skew\n"...), 1)
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	overlay := map[string]map[string]string{"Replace": {
		filepath.Join(timePackage, "time.go"): filepath.Join(dir, "time.go"), filepath.Join(timePackage, "skew.go"): filepath.Join(dir, "skew.go"),
	}}
	list, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "time.go"), skewed, 0o644),
		os.WriteFile(filepath.Join(dir, "skew.go"), []byte(skewSource), 0o644), os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o644))
}
