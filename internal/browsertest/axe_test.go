package browsertest

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// axe-core, which finds what keeps people out who can't see, hear or point as others do. It is fetched by npm, once, and
// is not part of this repository.
const (
	axeVersion = "4.14.1"
	axeSum     = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c" // SHA-256 of axe.min.js
	axeLimit   = 4 << 20
)

// theAxe is the script, read once for the process.
var theAxe = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return axe(filepath.Join(cache, "invoicebridge"))
})

// axe gives the script from the cache, fetched into it if it is not there. What it gives has the sum that is known.
func axe(cache string) (string, error) {
	file := filepath.Join(cache, "axe-core-"+axeVersion+".js")
	script, err := os.ReadFile(file)
	if err == nil && sum(script) == axeSum {
		return string(script), nil
	}
	if script, err = fetchAxe(); err != nil {
		return "", fmt.Errorf("axe-core %s, by npm: %w", axeVersion, err)
	}
	if got := sum(script); got != axeSum {
		return "", fmt.Errorf("axe-core %s is not what it was: its sum is %s, want %s", axeVersion, got, axeSum)
	}
	return string(script), keep(file, script)
}

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

// keep writes a file that others may be reading: it appears by a rename.
func keep(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	draft, err := os.CreateTemp(filepath.Dir(file), ".draft-")
	if err != nil {
		return err
	}
	_, err = draft.Write(content)
	if err = errors.Join(err, draft.Close()); err != nil {
		return err
	}
	return os.Rename(draft.Name(), file)
}

// fetchAxe has the npm client, as it is set up on this machine, fetch and verify the package. Nothing in it is run.
func fetchAxe() ([]byte, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return nil, errors.New("there is no npm client in PATH: install one (Debian: apt-get install npm)")
	}
	into, err := os.MkdirTemp("", "axe-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(into)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "pack", "axe-core@"+axeVersion, "--silent", "--ignore-scripts", "--pack-destination", into)
	cmd.Dir = into
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm pack: %w: %.300s", err, out)
	}
	archive, err := os.Open(filepath.Join(into, "axe-core-"+axeVersion+".tgz"))
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	return member(archive, "package/axe.min.js")
}

func member(archive io.Reader, name string) ([]byte, error) {
	gz, err := gzip.NewReader(archive)
	if err != nil {
		return nil, err
	}
	for files := tar.NewReader(gz); ; {
		header, err := files.Next()
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", name, err)
		}
		if header.Name == name {
			return io.ReadAll(io.LimitReader(files, axeLimit))
		}
	}
}

// finding is what axe-core says against a page.
type finding struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	Nodes  []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// findings are what axe-core has against the page that is shown, of what is serious or critical. What Swagger UI draws into
// the reference is not ours; the contract stands as a file beside it.
func (b *tab) findings() (grave []finding) {
	b.t.Helper()
	script, err := theAxe()
	if err != nil {
		b.t.Fatal(err)
	}
	if !eval[bool](b, "window.axe !== undefined") {
		run(b, chromedp.Evaluate[bool](script+";true"))
	}
	found := run(b, chromedp.Evaluate[[]finding](`(async () => {
		return (await axe.run({exclude: [["#reference"]]}, {resultTypes: ["violations"], preload: false})).violations
			.map(({id, impact, help, nodes}) => ({id, impact, help, nodes: nodes.map(({html, failureSummary}) => ({html, failureSummary}))}));
	})()`, chromedp.EvalAwaitPromise))
	for _, f := range found {
		if f.Impact == "serious" || f.Impact == "critical" {
			grave = append(grave, f)
		}
	}
	return grave
}

// wantAccessible fails the test if axe-core has something serious or critical against the page that is shown.
func (b *tab) wantAccessible() {
	b.t.Helper()
	for _, f := range b.findings() {
		var where []string
		for _, n := range f.Nodes {
			where = append(where, n.HTML+": "+n.Summary)
		}
		b.t.Errorf("%s: %s (%s, %s)\n%.2000s", b.path(), f.Help, f.ID, f.Impact, strings.Join(where, "\n"))
	}
}

func TestAxeIsTakenOnlyWithTheSumThatIsKnown(t *testing.T) {
	t.Parallel()
	browser(t)
	cache := t.TempDir()
	if err := os.WriteFile(filepath.Join(cache, "axe-core-"+axeVersion+".js"), []byte("window.axe = {run: () => ({violations: []})}"), 0o600); err != nil {
		t.Fatal(err)
	}
	script, err := axe(cache)
	if err != nil || sum([]byte(script)) != axeSum {
		t.Errorf("got %d bytes with the sum %s, %v", len(script), sum([]byte(script)), err)
	}
}
