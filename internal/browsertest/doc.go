// Package browsertest holds no product code. Its tests use both consoles as people do, in headless Chromium, against
// the real services on a real PostgreSQL, with lost answers in between. A page that writes an error to its console,
// breaks its content security policy, asks another host for anything or opens a dialog fails its test.
//
// Chromium is found in PATH (Debian: apt-get install chromium). BROWSER_TESTS=off switches the tests off where there
// is none; nothing else does. With SCREENSHOTS=<folder> every page is kept there as a picture, light and dark. The
// pictures of docs/operations.md are made by
//
//	go test ./internal/browsertest -run TestPicturesForTheManual -pictures ../../docs/pictures
package browsertest
