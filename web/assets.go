package web

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// assets are the static files under the names they are served by, which change with their content.
type assets struct {
	byName map[string]asset
	named  map[string]string // name in the folder to name served
}

type asset struct {
	content     []byte
	contentType string
}

func readAssets() (assets, error) {
	a := assets{byName: map[string]asset{}, named: map[string]string{}}
	static, err := fs.Sub(files, "static")
	if err != nil {
		return a, err
	}
	return a, fs.WalkDir(static, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(static, name)
		if err != nil {
			return err
		}
		contentType, ok := contentTypes()[path.Ext(name)]
		if !ok {
			return fmt.Errorf("static/%s: nobody has said what type of content %q is", name, path.Ext(name))
		}
		served := hashedName(name, content)
		a.byName[served], a.named[name] = asset{content, contentType}, served
		return nil
	})
}

// hashedName is style.css as style.0123456789abcdef.css.
func hashedName(name string, content []byte) string {
	sum := sha256.Sum256(content)
	extension := path.Ext(name)
	return strings.TrimSuffix(name, extension) + "." + hex.EncodeToString(sum[:8]) + extension
}

// contentTypes are ours and not the machine's, which differ between machines.
func contentTypes() map[string]string {
	return map[string]string{
		".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	}
}

// address is where a static file is served. It is called by templates: {{static "style.css"}}.
func (a assets) address(name string) (string, error) {
	served, ok := a.named[name]
	if !ok {
		return "", fmt.Errorf("there is no static file %q", name)
	}
	return "/static/" + served, nil
}
