package browsertest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// switchVariable is the one way to do without a browser.
const switchVariable = "BROWSER_TESTS"

// pictures is where the pictures of the manual go; empty: they are not made.
var pictures = flag.String("pictures", "", "folder for the pictures of docs/operations.md")

func TestMain(m *testing.M) {
	flag.Parse()
	status := m.Run()
	stopBrowser()
	os.Exit(status)
}

// theBrowser is one for the process: each test has a profile of its own in it, and starting one costs a second.
var theBrowser = sync.OnceValues(startBrowser)

// stopBrowser ends the browser and removes its folder, if there is one.
var stopBrowser = func() {}

// startBrowser gives the context of a running browser.
func startBrowser() (context.Context, error) {
	program, err := findBrowser(exec.LookPath)
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "browsertest-")
	if err != nil {
		return nil, err
	}
	allocator, stopAll := chromedp.NewExecAllocator(context.Background(), browserFlags(program, filepath.Join(home, "profile"))...)
	ctx, closeIt := chromedp.NewContext(allocator)
	stopBrowser = func() {
		closeIt()
		stopAll()
		removeSoon(home)
	}
	if err := chromedp.Do(ctx); err != nil { // starts it, without a limit that would end it again
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return ctx, nil
}

func findBrowser(lookPath func(string) (string, error)) (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if program, err := lookPath(name); err == nil {
			return program, nil
		}
	}
	return "", fmt.Errorf("there is no chromium, chromium-browser or google-chrome in PATH: install one (Debian: apt-get install chromium), "+
		"or switch these tests off by %s=off", switchVariable)
}

func browserFlags(program, profile string) []chromedp.ExecAllocatorOption {
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(program),
		chromedp.Flag("user-data-dir", profile),
		// Nothing leaves this machine, whatever a page asks for.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("lang", "en-GB"),
		chromedp.Flag("window-size", "1280,900"),
		chromedp.Flag("force-color-profile", "srgb"),
		chromedp.Flag("hide-scrollbars", true),
	}
	for _, flag := range []string{
		"headless", "disable-gpu", "disable-quic", "no-first-run", "no-default-browser-check", "disable-background-networking",
		"disable-component-update", "disable-sync", "disable-default-apps", "disable-extensions", "disable-dev-shm-usage",
		"disable-background-timer-throttling", "disable-backgrounding-occluded-windows", "disable-renderer-backgrounding",
		"disable-breakpad", "disable-client-side-phishing-detection", "metrics-recording-only", "mute-audio",
	} {
		options = append(options, chromedp.Flag(flag, true))
	}
	if os.Geteuid() == 0 { // Chromium refuses its sandbox to root
		options = append(options, chromedp.NoSandbox)
	}
	return options
}

// removeSoon removes the browser's folder. Its processes may write for a moment after it has ended.
func removeSoon(folder string) {
	for deadline := time.Now().Add(5 * time.Second); os.RemoveAll(folder) != nil && time.Now().Before(deadline); {
		<-time.After(50 * time.Millisecond)
	}
}

// browser is the running browser. Without one the test fails, unless somebody has said that it should not.
func browser(t *testing.T) context.Context {
	t.Helper()
	if os.Getenv(switchVariable) == "off" {
		t.Skipf("the browser tests are switched off by %s=off", switchVariable)
	}
	ctx, err := theBrowser()
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

func TestMissingBrowserIsToldWithWhatToInstall(t *testing.T) {
	t.Parallel()
	if _, err := findBrowser(func(string) (string, error) { return "", exec.ErrNotFound }); err == nil {
		t.Error("no browser is no error")
	}
	got, err := findBrowser(func(name string) (string, error) {
		if name != "google-chrome" {
			return "", exec.ErrNotFound
		}
		return "/opt/" + name, nil
	})
	if err != nil || got != "/opt/google-chrome" {
		t.Errorf("got %q, %v", got, err)
	}
}
